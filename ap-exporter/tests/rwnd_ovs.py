#!/usr/bin/env python3
"""The rewrite by Open vSwitch, from outside: real TCP through a bridge of the patched vswitchd (all in userspace: this
machine's kernel is
not the lab's), `ap-exporter rwnd`, and captures. What the kernel's data path does is tested in the lab's guest
(lab/conformance).

usage: tests/rwnd_ovs.py [BINARY COUNT_MALLOC_SO [NAME…]], as tests/outside.py. Needs root; builds Open vSwitch once
(lab/ovs/build.sh).
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import mark
from outside import BINARY, TAGS, Folder, run_here, sh, until
from rwnd import Air, Hand, Held, kill_clamped, refusal
from sentences import Skip, skip_all

LAB = Path(__file__).resolve().parents[2] / "lab/ovs"
DEBIAN = Path("/usr/sbin/ovs-vswitchd")
COOKIE = "0x4f414c72776e6400"


class Switch:
    """ovsdb-server and ovs-vswitchd, with all that they write in one folder. `unpatched`: vswitchd of the Debian
    package."""

    def __init__(self, folder: Path, ns: str | None = None, unpatched: bool = False):
        # Without a namespace to stand in it makes one: a bridge is a device too, and tests run side by side.
        self.rundir, self.own, self.ns = folder / "s", ns is None, ns or f"{next(TAGS)}ovs"
        self.built = Path(
            subprocess.run([LAB / "build.sh"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        )
        self.programs = self.built
        if unpatched:
            self.programs = folder / "p"
            self.programs.mkdir()
            for file in (*self.built.iterdir(), DEBIAN, Path("/usr/share/openvswitch/vswitch.ovsschema")):
                shutil.copy(file, self.programs)

    def __enter__(self) -> "Switch":
        if self.own:
            sh(f"ip netns add {self.ns}")
            sh("ip link set lo up", self.ns)
        self.start()
        return self

    def start(self) -> None:
        sh(f"{LAB}/start.sh {self.programs} {self.rundir}", self.ns)

    def kill(self, program: str = "ovs-vswitchd") -> None:
        """Ends it at once, and waits until it is gone."""
        pid_file = self.rundir / f"{program}.pid"
        pid = int(pid_file.read_text())
        os.kill(pid, signal.SIGKILL)
        until(
            lambda: not Path(f"/proc/{pid}").exists() or ") Z" in Path(f"/proc/{pid}/stat").read_text(),
            f"{program} ends",
        )
        pid_file.unlink()

    def __exit__(self, *_):
        for program in ("ovs-vswitchd", "ovsdb-server"):
            if (self.rundir / f"{program}.pid").exists():
                self.kill(program)
        if self.own:
            sh(f"ip netns del {self.ns}", check=False)

    def ctl(self, words: str) -> str:
        return sh(f"{self.built}/ovs-vsctl --db=unix:{self.rundir}/db.sock --timeout=20 {words}", self.ns)

    def add_bridge(self, ports: str = "") -> None:
        self.ctl(
            "add-br br-lan -- set bridge br-lan datapath_type=netdev"
            + "".join(f" -- add-port br-lan {p}" for p in ports.split())
        )

    def ofctl(self, words: str) -> str:
        command, *rest = words.split(maxsplit=1)
        return sh(
            f"{self.built}/ovs-ofctl -O OpenFlow13 {command} unix:{self.rundir}/br-lan.mgmt {' '.join(rest)}", self.ns
        )

    def flows(self, cookie: str = COOKIE) -> list[str]:
        """Ours, as operators see them."""
        return [line.strip() for line in self.ofctl("dump-flows").splitlines() if f"cookie={cookie}" in line]

    def appctl(self, words: str) -> str:
        done = subprocess.run(
            [self.built / "ovs-appctl", *words.split()],
            env={**os.environ, "OVS_RUNDIR": str(self.rundir)},
            capture_output=True,
            text=True,
        )
        return done.stdout

    def datapath(self) -> str:
        return self.appctl("dpctl/dump-flows")


class OvsAir(Air):
    """The AP's bridge is Open vSwitch's."""

    def __enter__(self) -> "OvsAir":
        super().__enter__()
        try:
            sh("ip link del br0", self.ap)
            self.switch = Switch(self.folder, self.ap)
            self.switch.start()
            self.switch.add_bridge("wifi0 lan0")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if hasattr(self, "switch"):
            self.switch.__exit__()
        super().__exit__()


class OvsHand(Hand):
    """`ap-exporter rwnd` at a bridge."""

    def __init__(self, switch: Switch, *options: str):
        self.env = None
        self.command = ["ip", "netns", "exec", switch.ns,
            str(BINARY), "rwnd", "--backend", "ovs", "--bridge", "br-lan", "--ovs-rundir", str(switch.rundir), *options]


def clamped_transfer(v6: bool) -> None:
    with Folder() as folder, OvsAir(folder) as air, OvsHand(air.switch) as hand:
        sender = air.capture(air.far, "eth0")
        ends = air.flow(v6)
        plain = max(p.window for p in sender.newer(50))
        scale = sender.scale()
        for size in (65536, 24000):
            assert plain << scale > size
            with Held(hand, ends, size, scale):
                until(lambda: sender.ups()[-1].window << scale <= size, "a lowered window arrives")
                assert all(p.window == size >> scale for p in sender.newer(100))
                assert f"rewrite_rwnd(max={size >> scale},ttl_ms=" in air.switch.flows()[0]
                until(
                    lambda: f"rewrite_rwnd({size >> scale},until_ms=" in air.switch.datapath(),
                    "the data path shows the action",
                )
        hand.ask(f"release {ends[0]} {ends[1]}")
        assert not air.switch.flows()
        until(lambda: sender.ups()[-1].window << scale > 65536, "the client's own window is back")
        wrong = [p for p in sender.packets() if not p.checksum_right and p.up]
        assert not wrong, f"{len(wrong)} checksums are wrong"
        seen = until(lambda: hand.stats()["acks_seen"], "the switch counts")
        assert 100 < seen <= len(sender.ups()), seen
        assert hand.stats()["errors"] == 0, hand.stats()


def t_ipv4():
    """IPv4: windows at the sender are as set, checksums right; ovs-ofctl and dpctl show the action; the switch counts
    the ACKs"""
    clamped_transfer(v6=False)


def t_ipv6():
    """IPv6: the same"""
    clamped_transfer(v6=True)


def t_bridge_flows_stay():
    """the bridge's own flows still say where clamped packets go, and flows of others stay"""
    with Folder() as folder, OvsAir(folder) as air, OvsHand(air.switch) as hand:
        for flow in ("priority=10,tcp,tp_dst=443,actions=resubmit(,5)", "table=5,priority=1,actions=normal"):
            air.switch.ofctl(f"add-flow {flow}")
        sender = air.capture(air.far, "eth0")
        ends = air.flow()
        scale = sender.scale()
        with Held(hand, ends, 24000, scale):
            until(lambda: sender.ups() and sender.ups()[-1].window << scale <= 24000, "a lowered window arrives")
            air.switch.ofctl("add-flow table=5,priority=2,tcp,tp_dst=443,actions=drop")
            until(
                lambda: re.search(r"table=5, n_packets=[1-9]\d*, .*actions=drop", air.switch.ofctl("dump-flows")),
                "the bridge's new flow drops what is clamped",
            )
            assert until(air.switch.flows, "the clamp is still there")
        hand.ask("release all")
        assert not air.switch.flows() and len(air.switch.ofctl("dump-flows").splitlines()) == 5


def t_marks_at_a_port():
    """marks by the tc program work at a port of an Open vSwitch bridge: no flow of the bridge is needed for them"""
    with Folder() as folder, OvsAir(folder) as air, mark.Hand(air) as hand:
        datagrams = mark.Datagrams(air)
        for v6 in (False, True):
            for ecn in range(4):
                assert datagrams.through(ecn, v6) == ecn
                assert hand.ask(mark.set_line(air, 1))["ok"]
                assert datagrams.through(ecn, v6) == (mark.CE if ecn == mark.ECT1 else ecn)
                assert hand.ask("release all")["ok"]
        assert not air.switch.flows() and hand.packets()["marked_ect1"] == 2


def t_slow_path():
    """told not to let the data path do it, vswitchd rewrites ACK by ACK, says so, and still does after a restart"""
    with Folder() as folder, OvsAir(folder) as air:
        air.switch.ctl("set Open_vSwitch . other_config:rewrite-rwnd-native=false")
        air.switch.kill()
        air.switch.start()
        with OvsHand(air.switch) as hand:
            assert "TCP receive window rewrite: No" in air.switch.appctl("dpif/show-dp-features br-lan")
            sender = air.capture(air.far, "eth0")
            ends = air.flow()
            sender.newer(20)
            scale = sender.scale()
            with Held(hand, ends, 24000, scale):
                until(lambda: sender.ups()[-1].window << scale <= 24000, "a lowered window arrives")
                assert all(p.window == 24000 >> scale for p in sender.newer(50))
                until(lambda: "slow_path(action)" in air.switch.datapath(), "the data path shows where its packets go")
        assert all(p.checksum_right for p in sender.ups())


def t_agent_killed():
    """killed while it clamps: no lowered window leaves the AP after the deadline, the switch forgets the flow, the
    next one starts clean"""
    with Folder() as folder, OvsAir(folder) as air:
        at_ap = air.capture(air.ap, "lan0")
        with OvsHand(air.switch) as hand:
            ends = air.flow()
            at_ap.newer(20)
            scale = at_ap.scale()
            line = f"set {ends[0]} {ends[1]} 12000 1000 {scale} 1448"
            hand.ask(line)
            until(lambda: at_ap.ups()[-1].window << scale <= 12000, "a lowered window leaves")
            kill_clamped(hand, line, at_ap, scale, 1.5)  # half a second: the way through vswitchd on a busy machine
        until(lambda: not air.switch.flows(), "the flow is gone by itself")


def t_next_agent():
    """what an agent that was killed left is gone when the next is ready"""
    with Folder() as folder, Switch(folder) as switch:
        switch.add_bridge()
        with OvsHand(switch) as hand:
            assert hand.ask("set 10.0.0.2:5000 10.0.0.1:443 65536 1000 7 1448")["ok"]
            assert hand.ask("set [fd00::2]:5000 [fd00::1]:443 65536 1000 7 1448")["ok"]
            until(lambda: len(switch.flows()) == 2, "two flows")
            hand.process.send_signal(signal.SIGKILL)
            hand.process.wait()
        switch.ofctl(f"add-flow cookie={COOKIE},priority=60000,tcp6,tp_src=1,actions=normal")  # one that no time ends
        with OvsHand(switch) as hand:
            until(lambda: hand.stats()["ready"] and not switch.flows(), "nothing is left")


def t_restart():
    """vswitchd restarted, the bridge deleted and made anew: sets say that the data path is away, and work again by
    themselves"""
    with Folder() as folder, Switch(folder) as switch:
        switch.add_bridge()
        with OvsHand(switch) as hand:
            line = "set 10.0.0.2:5000 10.0.0.1:443 65536 1000 7 1448"
            for away, back in ((switch.kill, switch.start), (lambda: switch.ctl("del-br br-lan"), switch.add_bridge)):
                assert hand.ask(line)["ok"]
                away()
                until(lambda: not hand.stats()["ready"], "the bridge is away")
                assert "away" in hand.ask(line)["error"]
                back()
                until(lambda: hand.ask(line)["ok"], "the bridge is back")
                until(switch.flows, "the clamp is there")
            assert hand.stats()["reconnects"] == 2, hand.stats()


def t_full():
    """a flow table that is full: counted, sets say so, and go on when there is room"""
    with Folder() as folder, Switch(folder) as switch:
        switch.add_bridge()
        switch.ctl(
            "-- --id=@t create Flow_Table flow_limit=3 overflow_policy=refuse -- set bridge br-lan flow_tables:0=@t"
        )
        with OvsHand(switch) as hand:
            def fill() -> dict:
                return hand.ask("set 10.0.0.2:5003 10.0.0.1:443 65536 1000 7 1448")
            until(
                lambda: [hand.ask(f"set 10.0.0.2:500{n} 10.0.0.1:443 65536 1000 7 1448") for n in (1, 2, 4)]
                and "full" in fill().get("error", ""),
                "it is full",
            )
            assert hand.stats()["errors_table_full"] > 0
            switch.ctl("clear bridge br-lan flow_tables")
            until(lambda: fill()["ok"], "sets are taken again")


def t_end():
    """the end of a session is the end of its clamps; flows of others stay"""
    with Folder() as folder, Switch(folder) as switch:
        switch.add_bridge()
        switch.ofctl("add-flow priority=60000,tcp,tp_src=1,actions=normal")
        with OvsHand(switch) as hand:
            hand.ask("set 10.0.0.2:5000 10.0.0.1:443 65536 1000 7 1448")
            hand.ask("set [fd00::2]:5000 [fd00::1]:443 65536 1000 7 1448")
            until(lambda: len(switch.flows()) == 2, "two flows")
        assert not switch.flows() and "tp_src=1" in switch.ofctl("dump-flows")


def t_refusals():
    """what cannot work says what to do: no switch, no such bridge, no OpenFlow 1.3, a folder with too long a name"""
    with Folder() as folder, Switch(folder) as switch:
        assert "is ovs-vswitchd running" in refusal(OvsHand(switch).command)  # there is no bridge yet
        switch.add_bridge()
        switch.ctl("set bridge br-lan protocols=OpenFlow10")
        assert "OpenFlow13" in until(lambda: refusal(OvsHand(switch).command), "")
        switch.kill()
        until(lambda: "is ovs-vswitchd running" in refusal(OvsHand(switch).command), "the switch is away")
        switch.rundir, kept = folder / ("x" * 100), switch.rundir
        assert "shorter" in refusal(OvsHand(switch).command)
        switch.rundir = kept


def t_unpatched():
    """Debian's own Open vSwitch, where it is installed, is refused with the name of what is missing"""
    if not DEBIAN.exists():
        raise Skip(f"there is no {DEBIAN}")
    with Folder() as folder, Switch(folder, unpatched=True) as switch:
        switch.add_bridge()
        assert "does not know the action rewrite_rwnd" in refusal(OvsHand(switch).command)


if __name__ == "__main__":
    if subprocess.run([LAB / "build.sh"], stdout=subprocess.DEVNULL).returncode == 77:
        sys.exit(skip_all("Debian no longer has the sources of the Open vSwitch that the patches are for"))
    sys.exit(run_here(globals()))
