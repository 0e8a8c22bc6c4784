#!/usr/bin/env python3
"""Marks by Open vSwitch, from outside: real packets through a bridge of the patched vswitchd (all in userspace, as in
rwnd_ovs.py), `ap-exporter mark`, and what a station receives of them. The kernel's data path is tested in the lab's
guest (lab/conformance).

usage: tests/mark_ovs.py [BINARY COUNT_MALLOC_SO [NAME…]], as tests/outside.py. Needs root; builds Open vSwitch once
(lab/ovs/build.sh).
"""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import mark
from mark import CE, ECT0, ECT1, NAMES, Datagrams, marks_end, set_line, spaced
from outside import BINARY, Folder, run_here, sh, until
from rwnd import Held, refusal
from rwnd_ovs import DEBIAN, LAB, OvsAir, OvsHand, Switch
from sentences import Skip, skip_all

COOKIE = "0x4f414c6d61726b00"
CLAMPS_DOWN = "0x4f414c72776e6401"


class Hand(mark.Hand):
    """`ap-exporter mark` at a bridge."""

    def __init__(self, switch: Switch, kill_file: Path | str = ""):
        self.lock = threading.Lock()
        self.command = [
            "ip", "netns", "exec", switch.ns, str(BINARY), "mark", "--backend", "ovs", "--bridge", "br-lan",
            "--ovs-rundir", str(switch.rundir), "--kill-file", str(kill_file)
        ]

    def stats(self) -> dict:
        return self.ask("stats")["stats"]


def t_datagrams():
    """of datagrams to a marked station those with ECT(1) arrive with CE, over IPv4 and IPv6; Not-ECT and CE as they
    were; before and after, all as they were; the switch shows the action and counts packets, but no changes"""
    with Folder() as folder, OvsAir(folder) as air, Hand(air.switch) as hand:
        datagrams = Datagrams(air)
        for v6 in (False, True):
            for ecn in range(4):
                assert datagrams.through(ecn, v6) == ecn, f"{NAMES[ecn]} was changed before anything was asked"
            line = set_line(air, 1)
            for ecn in range(4):
                assert hand.ask(line)["ok"]
                came = datagrams.through(ecn, v6)
                assert came == (CE if ecn == ECT1 else ecn), f"{NAMES[ecn]} came as {NAMES[came]}"
            (flow,) = air.switch.flows(COOKIE)
            assert "mark_ce(marks=1,ttl_ms=" in flow and "hard_timeout=1" in flow, flow
            assert "mark_ce(marks=1,interval_us=0,since=0,until_ms=" in air.switch.datapath()
            assert hand.ask("release all")["ok"]
            until(lambda: not air.switch.flows(COOKIE), "the flow is gone")
            for ecn in range(4):
                assert datagrams.through(ecn, v6) == ecn, f"{NAMES[ecn]} was changed after the release"
        stats = until(lambda: (now := hand.stats())["packets_seen"] >= 8 and now, "the switch counts")
        assert "packets_marked" not in stats and stats["errors"] == 0, stats


def t_spaced():
    """datagrams with ECT(0) are marked now and then, the first at once, and more often the longer it lasts, over flows
    that replace each other"""
    with Folder() as folder, OvsAir(folder) as air, Hand(air.switch) as hand:
        spaced(air, hand)


def t_begun_again():
    """marks of ECT(0) that were released and begin at once again go on with their spacing"""
    with Folder() as folder, OvsAir(folder) as air, Hand(air.switch) as hand:
        datagrams = Datagrams(air)
        line, began = set_line(air, 2, 1000, 1_000_000), time.monotonic()
        assert datagrams.through(ECT0) == ECT0
        assert hand.ask(line)["ok"] and datagrams.through(ECT0) == CE
        marked = 0
        for _ in range(20):
            assert hand.ask("release all")["ok"] and hand.ask(line)["ok"]
            marked += datagrams.through(ECT0) == CE
        assert marked <= int(time.monotonic() - began), f"{marked} marks in {time.monotonic() - began:.2f} s"


def t_slow_path():
    """told not to let the data path do it, vswitchd marks packet by packet, and says so"""
    with Folder() as folder, OvsAir(folder) as air:
        air.switch.ctl("set Open_vSwitch . other_config:mark-ce-native=false")
        air.switch.kill()
        air.switch.start()
        with Hand(air.switch) as hand:
            assert "ECN marks: No" in air.switch.appctl("dpif/show-dp-features br-lan")
            datagrams = Datagrams(air)
            for v6 in (False, True):
                for ecn in range(4):
                    assert datagrams.through(ecn, v6) == ecn
                    assert hand.ask(set_line(air, 1))["ok"]
                    assert datagrams.through(ecn, v6) == (CE if ecn == ECT1 else ecn)
                    assert hand.ask("release all")["ok"]
            assert hand.ask(set_line(air, 1))["ok"] and datagrams.through(ECT1) == CE
            until(
                lambda: hand.ask(set_line(air, 1))["ok"] and datagrams.through(ECT1) == CE
                and "slow_path(action)" in air.switch.datapath(), "the data path shows where its packets go"
            )


def t_ends():
    """marks end by their time to live while the agent does nothing, with the kill file, and within a second of the
    agent's death; the switch forgets the flow, and the next agent starts clean"""
    with Folder() as folder, OvsAir(folder) as air, Hand(air.switch, folder / "kill") as hand:
        marks_end(air, hand, folder / "kill")
        until(lambda: not air.switch.flows(COOKIE), "the flow is gone by itself")
        air.switch.ofctl(f"add-flow cookie={COOKIE},priority=60001,dl_dst=02:00:00:00:00:09,actions=normal")
        with Hand(air.switch) as following:
            until(lambda: following.stats()["ready"] and not air.switch.flows(COOKIE), "nothing is left")


def t_both():
    """a clamp and marks that concern the same packets both hold, and the flows of each end without the other's"""
    with Folder() as folder, OvsAir(folder) as air, Hand(air.switch) as marks, OvsHand(air.switch) as clamps:
        for ns in (air.far, air.sta):
            sh("sysctl -qw net.ipv4.tcp_ecn=1", ns)
        station = air.capture(air.sta, "eth0")
        ends = air.flow()

        def downs() -> list:
            return [p for p in station.packets() if not p.up and not p.syn and not p.rst]

        until(lambda: len(downs()) > 50, "data")
        scale = next(p for p in station.packets() if not p.up and p.syn).scale()
        held, raw = Held(clamps, ends, 24000, scale), 24000 >> scale
        held.line += " down"
        with held:
            def both() -> bool:
                assert marks.ask(set_line(air, 2, 1000, 5000))["ok"]
                return any(p.ecn == CE and p.window == raw for p in downs())

            until(both, "a segment with CE and a lowered window")
            assert len(air.switch.flows(CLAMPS_DOWN)) == len(air.switch.flows(COOKIE)) == 1
            path = [line for line in air.switch.datapath().splitlines() if "mark_ce(" in line]
            assert any("rewrite_rwnd(" in line for line in path), path
            assert marks.ask("release all")["ok"]
            until(lambda: not air.switch.flows(COOKIE), "the marks' flow is gone")
            assert len(air.switch.flows(CLAMPS_DOWN)) == 1, "the marks took the clamp with them"
        assert all(p.checksum_right for p in downs())


def t_restart():
    """vswitchd restarted: sets say that the data path is away, and work again by themselves"""
    with Folder() as folder, Switch(folder) as switch:
        switch.add_bridge()
        with Hand(switch) as hand:
            line = "set 02:00:00:00:00:01 3 1000 100000"
            assert hand.ask(line)["ok"]
            switch.kill()
            until(lambda: not hand.stats()["ready"], "the bridge is away")
            assert "away" in hand.ask(line)["error"]
            switch.start()
            until(lambda: hand.ask(line)["ok"], "the bridge is back")
            until(lambda: switch.flows(COOKIE), "the marks are there")
            assert hand.stats()["reconnects"] == 1, hand.stats()


def t_auto():
    """`auto` does not take the bridge, also where there is no Wi-Fi port for a tc program: it may be slow there"""
    with Folder() as folder, Switch(folder) as switch:
        switch.add_bridge()
        hand = Hand(switch)
        hand.command[hand.command.index("ovs")] = "auto"
        said = refusal(hand.command)
        assert "bpf: " in said and "ovs: " not in said, said


def t_unpatched():
    """Debian's own Open vSwitch, where it is installed, is refused with the name of what is missing"""
    if not DEBIAN.exists():
        raise Skip(f"there is no {DEBIAN}")
    with Folder() as folder, Switch(folder, unpatched=True) as switch:
        switch.add_bridge()
        assert "does not know the action mark_ce" in refusal(Hand(switch).command)


def t_killed_session():
    """a flow that a killed agent left is gone when the next is ready; the end of a session is the end of its marks"""
    with Folder() as folder, Switch(folder) as switch:
        switch.add_bridge()
        switch.ofctl("add-flow priority=60001,dl_dst=02:00:00:00:00:07,actions=normal")
        with Hand(switch) as hand:
            assert hand.ask("set 02:00:00:00:00:01 1 1000")["ok"]
            until(lambda: switch.flows(COOKIE), "a flow")
            hand.process.send_signal(signal.SIGKILL)
            hand.process.wait()
        with Hand(switch) as hand:
            until(lambda: hand.stats()["ready"] and not switch.flows(COOKIE), "nothing is left")
            assert hand.ask("set 02:00:00:00:00:01 1 1000")["ok"]
            until(lambda: switch.flows(COOKIE), "a flow")
        assert not switch.flows(COOKIE) and "02:00:00:00:00:07" in switch.ofctl("dump-flows")


if __name__ == "__main__":
    if subprocess.run([LAB / "build.sh"], stdout=subprocess.DEVNULL).returncode == 77:
        sys.exit(skip_all("Debian no longer has the sources of the Open vSwitch that the patches are for"))
    sys.exit(run_here(globals()))
