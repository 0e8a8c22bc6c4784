#!/usr/bin/env python3
"""Policies about destinations, from outside: a host's agent with a real push service (push_service.py), real
connections over loopback between networks of it, and the congestion control that the kernel gives the next ones.

usage: tests/destinations.py [BINARY COUNT_MALLOC_SO [NAME…]], as tests/outside.py; BINARY is build/host/oal-host. Needs
root, cgroup2 and the congestion controls reno, cubic. Elsewhere the tests are skipped, and say why.
"""

import json
import os
import signal
import struct
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

BINARY = Path(__file__).resolve().parent.parent / "build/host/oal-host"
if len(sys.argv) < 3:
    sys.argv[1:] = [str(BINARY), str(BINARY.parents[1] / "count_malloc.so")]

import agent as agents  # noqa: E402  (starts again under the Python of schema/, if need be)
import numpy as np  # noqa: E402
from congestion import cgroups  # noqa: E402
from outside import TAGS, Allocations, Daemon, Folder, run_here, until  # noqa: E402
from push_service import Service, bundles, policies  # noqa: E402
from sentences import skip_all  # noqa: E402

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "schema" / "src"))
from oal_schema import codec  # noqa: E402
from oal_schema.bundle_law import Law  # noqa: E402
from oal_schema.program_file import from_bytes, program_hash  # noqa: E402
from oal_schema.tree import Tree  # noqa: E402

CGROUPS = cgroups()
PROGRAM_FILE = TOP / "schema/generated/features/sessions.oalf"
PROGRAM = from_bytes(PROGRAM_FILE.read_bytes())
NAMES = policies.spec()["congestion_controls"]
REASONS, MODES = policies.spec()["rewrite_reasons"], policies.spec()["rewrite_backends"]
DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
OTHER = next(n for n in ("reno", "cubic") if n != DEFAULT)
ENOUGH = 3_000_000  # bytes: more than min_flow_bytes, and than sockets take without a reader

# The host's server: sends what is asked for to one that connects, and says which congestion control it has. Nobody
# reads before the next line: so long it has something to send, and shorter than a jiffy the kernel calls that no time.
SERVER = """
import socket, sys, threading
listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
print(listener.getsockname()[1], flush=True)
for line in sys.stdin:
    address, size = line.split()
    near = socket.create_connection((address, listener.getsockname()[1]), source_address=(address, 0))
    far, _ = listener.accept()
    print(far.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b"\\0")[0].decode(), flush=True)
    sending = threading.Thread(target=far.sendall, args=(bytes(int(size)),))
    sending.start()
    sys.stdin.readline()
    left = int(size)
    while left:
        left -= len(near.recv(left))
    sending.join()
    far.close()
    near.recv(1)
    near.close()
    print("done", flush=True)
"""


class Host:
    """A server in a cgroup of its own, the agent that looks at its connections, and what both say."""

    def __init__(self, folder: Path, service: Service, site: "agents.Site", mode: str, user: str,
                 under: tuple):
        self.cgroup = CGROUPS[0] / next(TAGS)
        self.cgroup.mkdir()
        self.server = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       text=True, preexec_fn=lambda: (self.cgroup / "cgroup.procs").write_text("0"))
        port = int(self.server.stdout.readline())
        text = site.config(service.port, state=not user)
        if user:
            if not under:  # else it is that user from the start
                text = text.replace("@exporter", f"@exporter\n\toption user {user}", 1)
            folder.chmod(0o777)
            for file in folder.iterdir():
                file.chmod(0o755 if file.is_dir() else 0o644)
        text = text[:text.index("config replay")] + text[text.index("config agent"):] + (
            f"config tcp\n\toption port {port}\n\toption loopback 1\n\toption interval_ms 20\n"
            f"config congestion\n\toption mode {mode}\n\toption cgroup '{self.cgroup}'\n"
            f"\toption kill_file '{folder}/kill'\n")
        self.text = text
        self.daemon = Daemon(folder, text)

    def ask(self, line: str) -> str:
        self.server.stdin.write(line + "\n")
        self.server.stdin.flush()
        return self.server.stdout.readline().strip()

    def seen(self) -> dict:
        return self.daemon.answer()["table_rows"]

    def session(self, network: int, size: int = ENOUGH, to: str = "") -> str:
        """A connection to 127.0.NETWORK.1 from begin to end, as its agent saw it; the congestion control it had."""
        before = self.seen()
        had = self.ask(f"{to or f'127.0.{network}.1'} {size}")
        until(lambda: self.seen()["sender_tcp"] > before["sender_tcp"], "it is looked at")
        assert self.ask("end") == "done"
        until(lambda: self.seen()["sender_session"] > before["sender_session"], "its end is known")
        return had

    def says(self) -> dict:
        return self.daemon.answer()["congestion"]

    def gets(self, network: int, control: str) -> None:
        """Until a connection there begins with it. A connection of nothing is not judged."""
        until(lambda: self.session(network, 0) == control, f"127.0.{network}.0/24 has {control}: {self.says()}")

    def actions(self) -> list[tuple[str, str, str, str]]:
        """(network, reason, congestion control, backend) of each row, once the agent has ended."""
        return [("127.0.{}".format(r["subject"] & 255), REASONS[r["reason"]], NAMES[r["value"]], MODES[r["backend"]])
                for r in self.daemon.rows("action")]

    def programs(self) -> set[int]:
        """Feature programs that batches with decisions name, once the agent has ended."""
        data, at, out = self.daemon.capture.read_bytes(), 8, set()
        while at < len(data):
            _, topic, length, _, _ = struct.unpack_from("<4sB3xIQI", data, at)
            batch = codec.decode(topic, data[at + 24:at + 24 + length])
            if batch.tables.get("decision"):
                out.add(batch.header["feature_hash"])
            at += 24 + length
        return out

    def close(self) -> None:
        self.server.kill()
        self.server.wait()
        until(lambda: not (self.cgroup / "cgroup.procs").read_text(), "its processes are gone")
        self.cgroup.rmdir()


@contextmanager
def scene(mode: str = "enforce", env: dict | None = None, user: str = "", under: tuple = ()):
    """(service, host, maker of bundles), with the agent running."""
    with Folder() as folder:
        site = agents.Site(folder)
        (ap,) = site.aps(1)
        service = Service(site.authority)
        host = Host(folder, service, site, mode, user, under)
        host.daemon.env, host.daemon.under = env, under
        try:
            with host.daemon:
                host.daemon.under = ()  # what it was begun with has become it
                yield service, host, site.maker
        finally:
            host.close()
            service.stop()


def bundle(maker, values: tuple = (NAMES.index(OTHER),) * 4, mode: int = policies.ENFORCE, by: str = "cc",
           threshold: int = -1, law: Law | None = None, name: str = "cc-select", **numbers: int) -> bytes:
    """A policy whose tree says class 1, or 0 where feature `by` is at most `threshold`."""
    words, interval = PROGRAM
    maker.serial += 1
    features = [f["name"] for f in json.loads(PROGRAM_FILE.with_suffix(".json").read_text())["features"]]
    tree = Tree(
        feature=np.array([features.index(by), -1, -1], np.int32), threshold=np.array([threshold, 0, 0], np.int64),
        right=np.array([2, 0, 0], np.int32), missing_right=np.array([False] * 3),
        leaf_class=np.array([0, 0, 1], np.uint8),
        leaf_permille=np.array([[0, 0, 0], [100, 0, 0], [900, 0, 0]], np.uint16),
        feature_hash=int.from_bytes(program_hash(words, interval)[:8], "big"))
    policy = policies.make("cc-test", maker.serial % 1000, mode, {"cc_explore_permille": 0} | numbers)
    return maker.sign(bundles.encode(bundles.Bundle(
        maker.serial, "fleet", "registry", "cc-select", 1, [], words, interval, bundles.models_of(tree), policy=policy,
        law=law or Law("direct", "destination", "cc", values), of_policy=name)))


def in_force(host: Host, mode: str, name: str = "cc-select") -> None:
    until(lambda: host.says()["policies"].get(name) == mode, f"{name} is {mode}; {host.daemon.log.read_text()[-500:]}")


def give(service: Service, host: Host, mode: str = "enforce", **others: bytes) -> None:
    service.want_others("ap-test", **{name.replace("_", "-"): signed for name, signed in others.items()})
    for name in others:
        in_force(host, mode, name.replace("_", "-"))


def t_chosen():
    """a session that ended decides for connections that begin to its network, and for no other; what was decided is a
    row next to the decision; a session that delivered little decides nothing"""
    with scene() as (service, host, maker):
        give(service, host, cc_select=bundle(maker))
        assert host.session(1, 0) == DEFAULT and host.session(1) == DEFAULT
        host.gets(1, OTHER)
        assert host.session(2, 0) == DEFAULT
        says = host.says()
        assert (says["networks"], says["sets"], says["set_errors"], says["sessions_judged"]) == (1, 1, 0, 1), says
        assert says["kernel"]["choices"] == 1 and host.daemon.stop() == 0
        assert host.actions() == [("127.0.1", "class", OTHER, "bpf")]
        assert host.programs() == {int.from_bytes(program_hash(*PROGRAM)[:8], "big")}, "the platform knows whose it is"
        (decision,) = host.daemon.rows("decision")
        assert (decision["class"], decision["confidence_permille"], decision["features_missing"]) == (1, 900, 0)
        (judged,) = [r for r in host.daemon.rows("sender_session") if r["bytes_acked"] >= ENOUGH]
        assert judged["cc"] == NAMES.index(DEFAULT)


def t_by_what_the_session_was():
    """the tree sees the one session: after one with the system's congestion control the other is chosen, and after one
    with that the system's again; a class whose value is 0 chooses nothing"""
    with scene() as (service, host, maker):
        mine, other = NAMES.index(DEFAULT), NAMES.index(OTHER)
        least, most = sorted((mine, other))
        to = {least: most, most: least}
        give(service, host, cc_select=bundle(maker, (to[least], to[most], 0, 0), threshold=least))
        for _ in range(2):
            assert host.session(1) == DEFAULT
            assert host.session(1) == OTHER
        give(service, host, cc_select=bundle(maker, (0, 0, other, other)))
        until(lambda: host.says()["networks"] == 0, "what the bundle before chose is given up")
        judged = host.says()["sessions_judged"]
        assert host.session(1) == DEFAULT and host.session(1) == DEFAULT
        assert host.says()["sessions_judged"] == judged + 2 and host.says()["networks"] == 0


def t_shadow():
    """in shadow, by the bundle or by the host's own ceiling, everything is decided and reported and nothing set"""
    for ceiling, mode in (("enforce", policies.SHADOW), ("shadow", policies.ENFORCE)):
        with scene(ceiling) as (service, host, maker):
            give(service, host, "shadow", cc_select=bundle(maker, mode=mode))
            assert host.session(1) == DEFAULT and host.session(1) == DEFAULT
            assert host.says()["networks"] == 1 and host.daemon.stop() == 0
            assert host.actions() == [("127.0.1", "class", OTHER, "shadow")]
            assert len(host.daemon.rows("decision")) == 2


def t_kill_switches():
    """the service's kill switch, that of the policy and the kill file give every choice up, within a second; a policy
    that is no longer wanted does so too"""
    with scene() as (service, host, maker):
        signed = bundle(maker)
        file = host.daemon.folder / "kill"
        switches = (
            (lambda: service.switch("ap-test", "off"), lambda: service.switch("ap-test", "on")),
            (lambda: service.kill_policies("ap-test", "cc-select"), lambda: service.kill_policies("ap-test", "")),
            (file.touch, file.unlink),
        )
        give(service, host, cc_select=signed)
        for off, on in switches:
            host.session(1)
            host.gets(1, OTHER)
            off()
            until(lambda: not host.says()["policies"] and host.says()["kernel"]["choices"] == 0, "nothing is chosen")
            assert host.says()["killed"]
            assert host.session(1) == DEFAULT
            on()
            in_force(host, "enforce")
        host.session(1)
        host.gets(1, OTHER)
        service.want_others("ap-test")
        host.gets(1, DEFAULT)
        assert host.says()["networks"] == 0 and host.daemon.stop() == 0
        reasons = [reason for _, reason, _, _ in host.actions()]
        assert reasons == ["class", "killed"] * 3 + ["class", "bundle"], reasons


def t_agent_gone():
    """an agent that is killed, one that ends, and a reload to shadow leave the system's congestion control"""
    with scene() as (service, host, maker):
        give(service, host, cc_select=bundle(maker))
        host.session(1)
        host.gets(1, OTHER)
        host.daemon.write(host.text.replace("mode enforce", "mode shadow"))
        host.daemon.process.send_signal(signal.SIGHUP)
        in_force(host, "shadow")
        assert host.session(1, 0) == DEFAULT
        host.daemon.write(host.text)
        host.daemon.process.send_signal(signal.SIGHUP)
        in_force(host, "enforce")
        host.session(1)
        host.gets(1, OTHER)
        host.daemon.process.kill()
        host.daemon.process.wait()
        assert host.ask("127.0.1.1 0") == DEFAULT and host.ask("end") == "done"


def t_forgotten():
    """a choice that no session says again is forgotten in its time; one that is said again stays"""
    with scene() as (service, host, maker):
        give(service, host, cc_select=bundle(maker, cc_keep_s=1))
        host.session(1)
        until(lambda: host.says()["networks"] == 0, "it is forgotten")
        assert host.session(1, 0) == DEFAULT and host.daemon.stop() == 0
        assert host.actions() == [("127.0.1", "class", OTHER, "bpf"), ("127.0.1", "released", "none", "bpf")]


def t_explores():
    """of so many sessions of a thousand the next congestion control is drawn by lot, and said to be"""
    with scene() as (service, host, maker):
        both = (NAMES.index(DEFAULT), NAMES.index(OTHER)) * 2
        give(service, host, cc_select=bundle(maker, both, cc_explore_permille=1000))
        had = {host.session(n) for n in (1, 2, 3) for _ in range(4)}
        assert had == {DEFAULT, OTHER}, had  # one of two million runs has one alone
        assert host.says()["explored"] == 12 and host.daemon.stop() == 0
        assert {reason for _, reason, _, _ in host.actions()} == {"explore"}


def t_absent_control():
    """a congestion control that the kernel does not have is not chosen: the network goes on as it is, and that is said;
    a leaf below the policy's share decides nothing"""
    there = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    absent = next(n for n in reversed(NAMES[1:]) if n not in there)
    with scene() as (service, host, maker):
        give(service, host, cc_select=bundle(maker, (NAMES.index(absent),) * 4))
        assert host.session(1) == DEFAULT and host.session(1, 0) == DEFAULT
        says = host.says()
        assert (says["networks"], says["set_errors"], says["kernel"]["choices"]) == (0, 1, 0), says
        give(service, host, cc_select=bundle(maker, cc_share_permille=901))
        host.session(1)
        until(lambda: host.says()["sessions_judged"] == 2, "it is judged")
        assert host.session(1, 0) == DEFAULT and host.says()["networks"] == 0 and host.daemon.stop() == 0
        assert host.actions() == [("127.0.1", "failed", "none", "bpf")]


def t_first_of_two():
    """of two policies the one with the lower place counts, and the other's choice comes back with its next session"""
    with scene() as (service, host, maker):
        mine = (NAMES.index(DEFAULT),) * 4
        give(service, host, a_first=bundle(maker, mine, name="a-first"))
        give(service, host, a_first=bundle(maker, mine, name="a-first"), b_second=bundle(maker, name="b-second"))
        assert host.session(1) == DEFAULT and host.session(1) == DEFAULT
        service.want_others("ap-test", **{"b-second": bundle(maker, name="b-second")})
        until(lambda: list(host.says()["policies"]) == ["b-second"], "the first is given up")
        host.session(1)
        host.gets(1, OTHER)


def t_shadow_beside_one_that_enforces():
    """a policy in shadow takes no choice from one that enforces, wherever their places are, so that what the kernel has
    is given up by the kill switch of the policy that chose it; and one that goes before gives the other's up"""
    with scene() as (service, host, maker):
        first = bundle(maker, (NAMES.index(DEFAULT),) * 4, name="a-first", mode=policies.SHADOW)
        second = bundle(maker, name="b-second")
        give(service, host, "shadow", a_first=first)
        service.want_others("ap-test", **{"a-first": first, "b-second": second})
        in_force(host, "enforce", "b-second")
        host.session(1)
        host.gets(1, OTHER)
        host.session(1)
        assert host.session(1, 0) == OTHER
        service.kill_policies("ap-test", "b-second")
        until(lambda: host.says()["kernel"]["choices"] == 0, "the kernel has nothing of it")
        assert host.session(1) == DEFAULT
        service.kill_policies("ap-test", "")
        in_force(host, "enforce", "b-second")
        host.session(1)
        host.gets(1, OTHER)
        assert host.daemon.stop() == 0
        assert ("127.0.1", "released", "none", "shadow") in host.actions()


def t_no_network_of_ipv4():
    """a session with the host itself over IPv6 decides nothing: its /64 has all of IPv4 in it"""
    with scene() as (service, host, maker):
        give(service, host, cc_select=bundle(maker))
        host.session(0, to="::1")
        until(lambda: host.says()["sessions_unjudged"] == 1, "it is not judged")
        assert host.session(1, 0) == DEFAULT and host.says()["networks"] == host.says()["kernel"]["choices"] == 0


def t_no_allocation():
    """judging a session and setting a choice allocate nothing in the tick"""
    with Folder() as folder:
        counter = Allocations(folder)
        with scene(env=counter.env) as (service, host, maker):
            give(service, host, cc_select=bundle(maker))
            for n in range(4):
                host.session(n)
            before = counter.count()
            for n in range(4, 12):
                host.session(n)
            assert host.says()["networks"] == 12 and counter.count() == before


def t_without_privileges():
    """an agent that has become another user goes on choosing: what it chooses with was opened before, and it may load
    nothing any more"""
    with scene(user="nobody") as (service, host, maker):
        assert Path(f"/proc/{host.daemon.process.pid}").stat().st_uid != 0
        give(service, host, cc_select=bundle(maker))
        host.session(1)
        host.gets(1, OTHER)
        assert host.says()["set_errors"] == 0


def t_kill_file_out_of_sight():
    """a kill file in a folder that the agent may not look into may be there: nothing is chosen"""
    with scene(user="nobody") as (service, host, maker):
        give(service, host, cc_select=bundle(maker))
        assert not host.says()["killed"]
        host.daemon.folder.chmod(0o700)
        until(lambda: host.says()["killed"] and not host.says()["policies"], "it is off")
        host.daemon.folder.chmod(0o777)
        in_force(host, "enforce")


def t_with_the_units_rights():
    """with the rights of host/enforce.conf, as the unit's user from the start, it chooses; without them it does not
    begin, and says what it lacks"""
    rights = next(line.partition("=")[2].split() for line in (TOP / "ap-exporter/host/enforce.conf").read_text()
                  .splitlines() if line.startswith("AmbientCapabilities="))
    plus = ",".join("+" + r.removeprefix("CAP_").lower() for r in rights)
    who = ("setpriv", "--reuid=nobody", "--clear-groups", "--no-new-privs")
    with scene(user="nobody", under=(*who, f"--inh-caps={plus}", f"--ambient-caps={plus}")) as (service, host, maker):
        give(service, host, cc_select=bundle(maker))
        host.session(1)
        host.gets(1, OTHER)
        assert host.says()["set_errors"] == 0
        done = subprocess.run([*who, BINARY, "check-config", "-c", host.daemon.config], capture_output=True, text=True)
        assert done.returncode and "needs CAP_BPF and CAP_NET_ADMIN" in done.stderr, done


def t_configuration():
    """a mode that is none is refused; so is a cgroup that is not there, before anything begins"""
    for option, said in (("\toption mode maybe\n", "'mode' is off, shadow or enforce"),
                         ("\toption mode enforce\n\toption cgroup /nowhere\n", "/nowhere: No such file")):
        with Folder() as folder:
            site = agents.Site(folder)
            site.aps(1)
            text = site.config(1)
            (folder / "c").write_text(
                text[:text.index("config replay")].replace("@exporter", "config exporter\n\toption ap_id ap-test")
                + text[text.index("config agent"):] + f"config file\n\toption path '{folder}/f'\nconfig tcp\n"
                f"config congestion\n{option}")
            done = subprocess.run([BINARY, "check-config", "-c", folder / "c"], capture_output=True, text=True)
            assert done.returncode and said in done.stderr + done.stdout, done


def refusal() -> str:
    """Why none of this works here, or nothing."""
    if os.geteuid():
        return "needs root"
    if not CGROUPS:
        return "this kernel has no cgroup2"
    there = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    return "" if {"reno", "cubic"} <= set(there) else "this kernel lacks reno or cubic"


if __name__ == "__main__":
    if why := refusal():
        sys.exit(skip_all(why))
    sys.exit(run_here(globals()))
