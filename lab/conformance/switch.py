"""The bridges under test: Linux with the tc program on its port (backend bpf), Open vSwitch with three data paths
(backend ovs).
"""
import contextlib
import os
import time

from guest.sh import batch, run, start

from .rewriter import now_us

FOLDER = "/run/lab/ovs"


class LinuxBridge:
    kind, backend, name = "linux", "bpf", "bpf"

    def begin(self) -> None:
        pass

    def make(self, bridge: str, ports: list[str]) -> None:
        batch("ip", [
            f"link add {bridge} type bridge", *(f"link set {p} master {bridge}" for p in ports), f"link set {bridge} up"
        ])

    def add(self, bridge: str, port: str) -> None:
        batch("ip", [f"link set {port} master {bridge}"])

    def remove(self, bridge: str) -> None:
        batch("ip", [f"link del {bridge}"])

    def options(self, port: str) -> dict:
        """Of the sections `rwnd` and `mark`."""
        return {"backend": "bpf", "interface": port}

    def shown(self) -> str:
        return run("tc -s filter show dev wifi0 ingress", check=False) + run("tc filter show dev wlan0 ingress",
                                                                             check=False)

    def describe(self) -> str:
        return run("bridge link", check=False)


class OpenVSwitch:
    """`path`: native (the kernel module carries the action out), slow (it asks vswitchd, packet by packet), netdev (all
    in vswitchd).
    """

    kind, backend = "ovs", "ovs"

    def __init__(self, build: str, path: str):
        self.build, self.path, self.name = build, path, f"ovs-{path}"

    def begin(self) -> None:
        os.makedirs(FOLDER, exist_ok=True)
        os.environ.update(OVS_RUNDIR=FOLDER, OVS_DBDIR=FOLDER, OVS_LOGDIR=FOLDER, OVS_SYSCONFDIR=FOLDER,
                          PATH=f"{self.build}:{os.environ['PATH']}")
        run(f"ovsdb-tool create {FOLDER}/conf.db {self.build}/vswitch.ovsschema")
        run(
            f"ovsdb-server {FOLDER}/conf.db --remote=punix:{FOLDER}/db.sock --pidfile={FOLDER}/ovsdb-server.pid"
            f" --detach --log-file={FOLDER}/ovsdb.log"
        )
        self.ctl("--no-wait init")
        self.ctl("--no-wait set Open_vSwitch . other_config:vlan-limit=2")
        self.start()

    def ctl(self, words: str) -> str:
        return run(f"ovs-vsctl --db=unix:{FOLDER}/db.sock --timeout=20 {words}")

    def start(self) -> None:
        self.process = start([
            "ovs-vswitchd", f"unix:{FOLDER}/db.sock", f"--pidfile={FOLDER}/ovs-vswitchd.pid",
            f"--log-file={FOLDER}/vswitchd.log", "-vconsole:off"
        ], f"{FOLDER}/vswitchd.out")

    def kill(self) -> int:
        """SIGKILL to vswitchd; the moment in µs."""
        self.process.kill()
        at_us = now_us()
        self.process.wait()
        return at_us

    def restarted(self, bridge: str) -> None:
        self.start()
        self.choose(bridge)

    def choose(self, bridge: str) -> None:
        """The data path knows the actions; the slow path is taken because it is told so, as where the module does
        not know them.
        """
        if self.path != "slow":
            return
        for _ in range(100):
            with contextlib.suppress(SystemExit):  # after a restart the bridge is not there at once
                for action in ("rewrite_rwnd", "mark_ce"):
                    run(f"ovs-appctl dpif/set-dp-features {bridge} {action} false")
                return
            time.sleep(0.05)
        raise SystemExit(
            f"conformance: the data path of {bridge} cannot be told what it does not know: {self.describe()}"
        )

    def make(self, bridge: str, ports: list[str]) -> None:
        kind = "netdev" if self.path == "netdev" else "system"
        self.ctl(f"--may-exist add-br {bridge} -- set bridge {bridge} datapath_type={kind} "
                 + " ".join(f"-- add-port {bridge} {p}" for p in ports))
        batch("ip", [f"link set {bridge} up"])
        self.choose(bridge)

    def add(self, bridge: str, port: str) -> None:
        self.ctl(f"--may-exist add-port {bridge} {port}")

    def remove(self, bridge: str) -> None:
        self.ctl(f"--if-exists del-br {bridge}")

    def options(self, port: str) -> dict:
        return {"backend": "ovs", "bridge": "br-lan", "ovs_rundir": FOLDER}

    def shown(self) -> str:
        """Clamps and marks as operators see them."""
        return (run(f"ovs-ofctl dump-flows unix:{FOLDER}/br-lan.mgmt", check=False)
                + run("ovs-appctl dpctl/dump-flows", check=False)
                + run("ovs-appctl dpif/show-dp-features br-lan", check=False))

    def describe(self) -> str:
        with open(f"{FOLDER}/vswitchd.log") as log:
            return self.shown() + "".join(log.readlines()[-20:])


def switch(name: str, ovs_build: str):
    return LinuxBridge() if name == "bpf" else OpenVSwitch(ovs_build, name.removeprefix("ovs-"))


NAMES = ("bpf", "ovs-native", "ovs-slow", "ovs-netdev")
