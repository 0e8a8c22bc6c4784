"""The agent of hosts on nodes: what its pods may, where they send, and what their scripts do on a node's folder."""
import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from manifests import component, find, labels, name, pod, workloads

#: A program in place of oal-host, which takes the ticket "good" alone and says what it was asked.
STAND_IN = """#!/bin/sh
echo "$@" >>asked
[ "$(cat)" = good ] && touch "$STATE/host.pem"
"""


def agent(chart, *values: str) -> dict:
    [found] = [w for w in workloads(chart.objects("host-agent", *values)) if component(w) == "host-agent"]
    return found


def files(chart, *values: str) -> dict[str, str]:
    namespace = pod(agent(chart, *values))["volumes"][0]["configMap"]["name"]
    return find(chart.objects("host-agent", *values), "ConfigMap", namespace)["data"]


def containers_in_order(spec: dict) -> list[dict]:
    return spec["initContainers"] + spec["containers"]


def capabilities(container: dict) -> list[str]:
    assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
    return container["securityContext"]["capabilities"].get("add", [])


def test_nothing_of_it_is_there_unless_it_is_asked_for(chart):
    assert not [name(o) for o in chart.objects() if "host-agent" in o["metadata"]["name"]]
    assert "hostAgent.tickets" in chart.refusal("hostAgent.enabled=true")


def test_it_has_the_nodes_network_and_as_it_comes_no_right(chart):
    spec = pod(agent(chart))
    assert spec["hostNetwork"] is True and not spec.get("hostPID") and not spec.get("hostIPC")
    assert spec["securityContext"]["runAsNonRoot"] is True and spec["securityContext"]["runAsUser"] == 10001
    state, enrol, main = containers_in_order(spec)
    assert capabilities(main) == capabilities(enrol) == [] and capabilities(state) == ["CHOWN"]
    assert state["securityContext"]["runAsUser"] == 0 and "runAsUser" not in main["securityContext"]
    assert [v["hostPath"]["path"] for v in spec["volumes"] if "hostPath" in v] == ["/var/lib/oal-host"]
    assert "tickets" not in {m["name"] for m in main["volumeMounts"]}, "tickets of other nodes are none of its business"


def test_to_enforce_congestion_controls_it_has_two_capabilities_and_the_cgroups_to_read(chart):
    spec = pod(agent(chart, "hostAgent.congestionControl=enforce"))
    state, enrol, main = containers_in_order(spec)
    assert capabilities(main) == ["BPF", "NET_ADMIN"] and capabilities(enrol) == []
    assert spec["securityContext"]["runAsUser"] == 0, "a container's capabilities are root's alone"
    [cgroup] = [v for v in spec["volumes"] if v.get("hostPath", {}).get("path") == "/sys/fs/cgroup"]
    assert {"name": cgroup["name"], "mountPath": "/sys/fs/cgroup", "readOnly": True} in main["volumeMounts"]
    for c in containers_in_order(spec):
        assert c["securityContext"]["allowPrivilegeEscalation"] is False
        assert c["securityContext"]["readOnlyRootFilesystem"] is True


def test_in_shadow_it_has_no_more_rights_and_off_has_no_section(chart):
    shadow, off = agent(chart, "hostAgent.congestionControl=shadow"), agent(chart)
    assert [capabilities(c) for c in containers_in_order(pod(shadow))] == [["CHOWN"], [], []]
    assert pod(shadow)["volumes"] == pod(off)["volumes"] and pod(shadow)["securityContext"]["runAsUser"] == 10001
    assert "option mode 'shadow'" in files(chart, "hostAgent.congestionControl=shadow")["oal-host.conf"]
    assert "congestion" not in files(chart)["oal-host.conf"]
    assert "/hostAgent/congestionControl" in chart.refusal("host-agent", "hostAgent.congestionControl=true")


def test_all_of_it_is_in_the_namespace_of_the_values_and_takes_nothing_of_the_release(chart):
    own = [o for o in chart.objects("host-agent") if o["metadata"]["name"] == "oal-host-agent"]
    assert {o["kind"] for o in own} == {"ServiceAccount", "ConfigMap", "DaemonSet", "NetworkPolicy"}
    assert {o["metadata"]["namespace"] for o in own} == {"oal-hosts"}
    assert agent(chart, "hostAgent.namespace=")["metadata"]["namespace"] == "wifi"
    spec = pod(agent(chart))
    assert spec["serviceAccountName"] == "oal-host-agent" and spec["automountServiceAccountToken"] is False
    assert {v.get("secret", {}).get("secretName") for v in spec["volumes"]} <= {None, "oal-host-tickets"}


def test_it_sends_where_access_points_do(chart):
    said = files(chart)["oal-host.conf"]
    assert "list brokers 'oal.example.org:30950'" in said and "url 'https://oal-push.wifi.svc:8443'" in said
    three = files(chart, "kafka.replicas=3", "kafka.access.hosts={a,b,c}")["oal-host.conf"]
    assert [line.split("'")[1] for line in three.splitlines() if "list brokers" in line] == [
        "a:30950", "b:30951", "c:30952"]
    balanced = files(chart, "kafka.access.type=LoadBalancer")["oal-host.conf"]
    assert "list brokers 'oal.example.org:9095'" in balanced
    own = files(chart, "hostAgent.brokers={k:1}", "hostAgent.pushUrl=https://p:2")["oal-host.conf"]
    assert "list brokers 'k:1'" in own and "url 'https://p:2'" in own
    for values, key in ((("kafka.access.type=none",), "hostAgent.brokers"),
                        (("push.enabled=false",), "hostAgent.pushUrl"),
                        (("hostAgent.ports={0}",), "/hostAgent/ports"),
                        (("hostAgent.brokers={k}",), "/hostAgent/brokers"),
                        (("hostAgent.site=hall 1",), "/hostAgent/site")):
        assert key in chart.refusal("host-agent", *values), values


def test_its_network_policy_names_what_it_connects_to(chart):
    policy = find(chart.objects("host-agent"), "NetworkPolicy", "oal-host-agent")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels(agent(chart)).items()
    assert policy["policyTypes"] == ["Ingress", "Egress"] and "ingress" not in policy
    assert sorted(p["port"] for rule in policy["egress"] for p in rule["ports"]) == [53, 53, 8443, 30444, 30950]


def test_a_changed_configuration_restarts_it(chart):
    assert agent(chart) != agent(chart, "hostAgent.ports={443,8443}")
    assert agent(chart) == agent(chart, "push.enrol.certificateDays=9")


def test_each_option_of_its_configuration_is_one_of_the_program(chart):
    source = (ROOT / "ap-exporter/src/base/config_options.c").read_text()
    known = set(re.findall(r"^\t[TNS]\((\w+), (\w+),", source, re.M))
    further = "config qdisc\n  option interface 'eth0'"
    said = files(chart, "hostAgent.congestionControl=enforce", "hostAgent.pseudonymKey=k",
                 "hostAgent.peers={192.168.0.0/16,2001:db8::/32}", f"hostAgent.config={further}")["oal-host.conf"]
    section, used = "", []
    for word, name_, _ in re.findall(r"^ *(config|option|list) (\w+)( .*)?$", said, re.M):
        section = name_ if word == "config" else section
        used += [(section, name_)] if word != "config" else []
    assert set(used) <= known and ("tcp", "peer") in used and ("qdisc", "interface") in used
    assert len(used) == sum(line.strip() != "" and "config " not in line for line in said.splitlines())


def script(chart, file: str, folder: Path, *values: str) -> Path:
    """One of its scripts, with the paths of a node in a folder."""
    text = files(chart, *values)[file]
    for path in ("/var/lib/oal-host", "/run/oal-host", "/run/secrets/oal/tickets", "/etc/oal/host"):
        (folder / path[1:]).mkdir(parents=True, exist_ok=True)
        text = text.replace(path, str(folder / path[1:]))
    (folder / "etc/oal/host/oal-host.conf").write_text(files(chart, *values)["oal-host.conf"])
    (folder / file).write_text(text)
    return folder / file


def test_a_node_enrols_once_by_its_own_ticket_and_not_without(chart, tmp_path):
    enrol = script(chart, "enrol.sh", tmp_path)
    state, tickets = tmp_path / "var/lib/oal-host", tmp_path / "run/secrets/oal/tickets"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/oal-host").write_text(STAND_IN)
    (tmp_path / "bin/oal-host").chmod(0o755)
    environment = os.environ | {"NODE_NAME": "node-1.example", "STATE": str(state),
                                "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}

    def run() -> subprocess.CompletedProcess:
        return subprocess.run(["sh", enrol], cwd=tmp_path, env=environment, capture_output=True, text=True)

    def asked() -> int:
        return len((tmp_path / "asked").read_text().splitlines()) if (tmp_path / "asked").exists() else 0
    done = run()
    assert done.returncode and "node-1.example is not enrolled: Secret oal-host-tickets" in done.stderr and not asked()
    (tickets / "node-2").write_text("good")
    assert run().returncode and not asked(), "another node's ticket"
    (tickets / "node-1.example").write_text("lapsed")
    assert run().returncode and asked() == 1
    (tickets / "node-1.example").write_text("good")
    assert run().returncode == 0 and asked() == 2 and (state / "bundles").is_dir()
    assert "option ap_id 'node-1.example'" in (tmp_path / "run/oal-host/oal-host.conf").read_text()
    assert run().returncode == 0 and asked() == 2, "a ticket is good once"
    (tickets / "node-1.example").write_text("lapsed, too")
    assert run().returncode == 0 and asked() == 3, "what it has goes on"
    (tickets / "node-1.example").unlink()
    assert run().returncode == 0 and asked() == 3


@pytest.mark.parametrize("before", [0, 10001])
@pytest.mark.parametrize("control", ["shadow", "enforce"])
def test_the_nodes_folder_is_given_to_the_agents_user_by_chown_alone(chart, tmp_path, before, control):
    """Root with CAP_CHOWN and nothing else reads no folder of others."""
    state = script(chart, "state.sh", tmp_path, f"hostAgent.congestionControl={control}")
    folder = tmp_path / "var/lib/oal-host"
    (folder / "bundles").mkdir()
    (folder / "host.pem").touch()
    uid = 0 if control == "enforce" else 10001
    for path in (folder, folder / "bundles", folder / "host.pem"):
        os.chown(path, before, before)
    if before:
        folder.chmod(0o700)
        (folder / "bundles").chmod(0o700)
    rights = ["setpriv", "--bounding-set=-all,+chown", "--inh-caps=-all", "--no-new-privs"]
    done = subprocess.run([*rights, "sh", state], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {p.stat().st_uid for p in (folder, *folder.rglob("*"))} == {uid}
    assert folder.stat().st_mode & 0o777 == 0o700
    again = subprocess.run([*rights, "sh", state], capture_output=True, text=True)
    assert again.returncode == 0, again.stderr


def test_a_folder_of_somebody_else_is_left_alone(chart, tmp_path):
    state = script(chart, "state.sh", tmp_path)
    os.chown(tmp_path / "var/lib/oal-host", 4242, 4242)
    done = subprocess.run(["sh", state], capture_output=True, text=True)
    assert done.returncode and "belongs to user 4242" in done.stderr
    assert (tmp_path / "var/lib/oal-host").stat().st_uid == 4242
