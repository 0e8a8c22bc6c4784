"""From a host's own sessions to the congestion control of its next connection, on the running platform: oal-host →
Kafka → Flink → ClickHouse → `oal-train cc-select` → MLflow → promoted on its page → signed bundle → push → the agent,
and what `ss` says of a connection that begins.

The host serves two kinds of networks, each of which another congestion control suits: packets that get lost on the way,
and packets that come over in turns, where BBR takes the shortest of its round trips for all of them.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from flow import until
from looped import ROOT, Page
from oal_local import demo, loop, mlflow, registry
from oal_local.exporter import Exporter

BINARY = ROOT / "ap-exporter" / "build" / "host" / "oal-host"
MODEL, SITE, PORT = "cc-select", "hosts", 5201
LOSSY = {"mbps": 6, "delay_ms": 30, "loss": 0.05, "packets": 100}
TURNS = {"mbps": 10, "delay_ms": 1, "loss": 0, "packets": 300, "turn_ms": 200}
PATHS = [LOSSY, TURNS] * 4  # of fewer than eight networks the gate says that they are too few
SESSIONS, BYTES = 4, 600_000  # of each candidate to each network: one that asks, and three others to judge by
USUAL, OTHER = "reno", "bbr"  # a namespace may have reno as its default, whatever else the kernel allows

# Sends as many bytes as a line asks for, with the congestion control that it names ("-": as it began), and ends.
SERVER = """
import socket, sys, threading
def serve(s):
    words = s.makefile().readline().split()
    if words[0] != "-":
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, words[0].encode())
    s.sendall(bytes(int(words[1])))
    if len(words) > 2:
        s.recv(1)
    s.close()
listener = socket.create_server(("0.0.0.0", int(sys.argv[1])), backlog=64)
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""
# Side by side, to each address of the JSON object one request after the other; each is read to its end.
CLIENT = """
import json, socket, sys, threading
def ask(address, requests):
    for request in requests:
        with socket.create_connection((address, int(sys.argv[1]))) as s:
            s.sendall(request.encode() + b"\\n")
            while s.recv(65536):
                pass
threads = [threading.Thread(target=ask, args=item) for item in json.loads(sys.argv[2]).items()]
[t.start() for t in threads]
[t.join() for t in threads]
"""
# Asks once, reads what was asked for, and stays until its input ends.
STAYING = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as s:
    s.sendall(b"- 50000 stay\\n")
    left = 50000
    while left:
        left -= len(s.recv(65536))
    print("has it", flush=True)
    sys.stdin.read()
"""


def sh(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


class Host:
    """A host that serves networks from a namespace of its own, its far ends in another one."""

    def __init__(self, through: list[int], folder: Path):
        tag = f"oal{os.getpid()}"
        self.near, self.far, self.processes = f"{tag}h", f"{tag}f", []
        self.mounted = None if (found := cgroup2()) else folder / "cgroup"
        if self.mounted:
            self.mounted.mkdir()
            sh("mount", "-t", "cgroup2", "none", self.mounted)
        self.cgroup = (found or self.mounted) / self.near
        self.within = ("nsenter", f"--net=/run/netns/{self.near}")
        try:
            self.open(through)
        except BaseException:
            self.close()
            raise

    def open(self, through: list[int]) -> None:
        """Namespaces, paths, and the server."""
        self.cgroup.mkdir()
        for namespace in (self.near, self.far):
            sh("ip", "netns", "add", namespace)
            sh("ip", "-n", namespace, "link", "set", "lo", "up")
        sh(*self.within, "sh", "-c", f"echo {USUAL} > /proc/sys/net/ipv4/tcp_congestion_control")
        self.python((), (ROOT / "tests/far_networks.py").read_text(), self.near, self.far, json.dumps(through),
                    json.dumps(PATHS))
        for n in range(len(PATHS)):
            for namespace, last in ((self.near, 1), (self.far, 2)):
                sh("ip", "-n", namespace, "addr", "add", f"10.96.{n}.{last}/24", "dev", f"net{n}")
                sh("ip", "-n", namespace, "link", "set", f"net{n}", "up")
        self.python(self.within, SERVER, PORT, cgroup=True)

    def python(self, within: tuple, program: str, *arguments: object, cgroup: bool = False) -> subprocess.Popen:
        """A process whose first line has come."""
        into = (lambda: (self.cgroup / "cgroup.procs").write_text("0")) if cgroup else None
        process = subprocess.Popen([*within, sys.executable, "-c", program, *map(str, arguments)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=into)
        self.processes.append(process)
        assert process.stdout.readline(), "it ended"
        return process

    def serve(self, requests: dict[int, list[str]]) -> None:
        """Requests of each network, one after the other, to their end."""
        sh("nsenter", f"--net=/run/netns/{self.far}", sys.executable, "-c", CLIENT, PORT,
           json.dumps({f"10.96.{n}.1": lines for n, lines in requests.items()}))

    def begins_with(self, network: int) -> str:
        """The congestion control of a connection that has begun there, as `ss` says it of the host's end."""
        client = self.python(("nsenter", f"--net=/run/netns/{self.far}"), STAYING, f"10.96.{network}.1", PORT)
        try:
            said = sh(*self.within, "ss", "-Htin", "state", "established", "dst", f"10.96.{network}.2")
            return said.splitlines()[1].split()[0]
        finally:
            client.stdin.close()
            client.wait(60)

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        for namespace in (self.near, self.far):
            subprocess.run(["ip", "netns", "del", namespace], check=False)
        if self.cgroup.exists():
            until("its processes are gone", lambda: not (self.cgroup / "cgroup.procs").read_text())
            self.cgroup.rmdir()
        if self.mounted:
            sh("umount", self.mounted)


def cgroup2() -> Path | None:
    """Where it is mounted."""
    lines = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return next((Path(line[1]) for line in lines if line[2] == "cgroup2"), None)


@pytest.fixture
def host(looped, tmp_path):
    ports = [int(address.rpartition(":")[2]) for address in
             [*looped.platform.kafka.bootstrap.split(","), looped.platform.push.ap_url]]
    made = Host(ports, tmp_path)
    yield made
    made.close()


@pytest.fixture
def page(looped):
    opened = Page(looped)
    yield opened
    opened.close()


def agent_of(looped, host: Host, name: str, folder: Path) -> Exporter:
    """oal-host of the namespace: what it sees goes to the platform, and what comes from there it carries out."""
    kind, section, options = demo.kafka_section(looped.platform, name, SITE)
    return Exporter(folder, name, name, SITE, [
        ("tcp", "", {"port": PORT, "interval_ms": 50}), (kind, section, options),
        loop.agent_section(looped.platform, [name]),
        ("congestion", "", {"mode": "enforce", "cgroup": host.cgroup, "kill_file": folder / "kill"}),
    ], BINARY, host.within)


def trained(looped, name: str, folder: Path) -> int:
    """The version that training made of the host's sessions."""
    platform = looped.platform
    sh(loop.TRAIN, "cc-select", "--host", name, "--utility", "speed", "--least-lessons", len(PATHS) * 2 * SESSIONS - 8,
       "--config", registry.config_file(platform.state), "--tracking-uri",
       mlflow.url(platform.settings), "--register", "--out", folder, "--result", folder / "made.json")
    return json.loads((folder / "made.json").read_text())["version"]


def in_force_at(looped, agent: Exporter, version: int) -> bool:
    """Does the agent carry the policy out? An error of the registry ends the wait."""
    found = looped.platform.mlflow.api(f"model-versions/get?name={MODEL}&version={version}")["model_version"]
    tags = {tag["key"]: tag["value"] for tag in found.get("tags", [])}
    assert "oal.error" not in tags, tags
    return (agent.status() or {})["congestion"]["policies"].get(MODEL) == "enforce"


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces take root")
def test_a_hosts_next_connection_has_the_congestion_control_that_its_sessions_taught(looped, host, page, tmp_path):
    name = f"host-{secrets.token_hex(3)}"
    in_force = yaml.safe_load((ROOT / "policies/in-force/examples/cc-select.yaml").read_text())
    in_force |= {"applies_to": f"site/{SITE}", "mode": "enforce"}
    in_force["control"]["cc_explore_permille"] = 0
    (looped.policies / "cc-select.yaml").write_text(yaml.safe_dump(in_force))
    agent = agent_of(looped, host, name, tmp_path)
    agent.start()
    try:
        host.serve({n: [f"{cc} {BYTES}" for _ in range(SESSIONS) for cc in (USUAL, OTHER)] for n in range(len(PATHS))})
        wanted = len(PATHS) * 2 * SESSIONS
        until(f"{wanted} sessions are stored", lambda: looped.count(
            f"SELECT count() FROM oal.sender_session WHERE ap_id = '{name}' AND bytes_acked >= {BYTES}") == wanted)
        version = trained(looped, name, tmp_path)
        assert host.begins_with(0) == host.begins_with(1) == USUAL, "nobody has promoted anything"

        page.do(version, "alias", "champion", model=MODEL)
        until("the agent has the policy", lambda: in_force_at(looped, agent, version))
        host.serve({n: [f"- {BYTES}"] for n in range(len(PATHS))})
        until("each network has a choice", lambda: agent.status()["congestion"]["networks"] == len(PATHS))
        began = {n: host.begins_with(n) for n in range(len(PATHS))}
        assert began == {n: OTHER if path == LOSSY else USUAL for n, path in enumerate(PATHS)}

        chosen = {f"10.96.{n}.0/24": cc for n, cc in began.items()}
        until(f"rows say so: {chosen}", lambda: chosen == {
            row["subject"]: row["congestion_control"] for row in looped.platform.clickhouse.rows(
                "SELECT subject, congestion_control FROM oal.v_actions(from = now() - INTERVAL 1 HOUR, to = now() +"
                f" INTERVAL 1 HOUR) WHERE ap_id = '{name}' AND action = 'cc' AND reason = 'class' AND backend = 'bpf'")
        })
        until("and by which version", lambda: looped.count(
            f"SELECT count() FROM oal.decision WHERE ap_id = '{name}' AND version = {version}") >= len(PATHS))
    finally:
        assert agent.stop(120) == 0, agent.log.read_text()[-2000:]
    assert host.begins_with(0) == USUAL, "without its agent the host has what it had"
