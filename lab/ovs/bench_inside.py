"""In the guest: an ACK through the kernel's data path, plain, with rewrite_rwnd or mark_ce, and by way of vswitchd.
python3 -m ovs.bench_inside PLAN.json
"""
import json
import os
import sys
import time

from guest.sh import batch, run

RUNDIR = "/run/lab/ovs"
BURST, BURSTS, ROUNDS = 32, 1000, 5
WINDOW, CLAMP = 60000, 256
NOT_ECT, ECT1, ECT0 = range(3)
MARK = "mark_ce(marks=3,interval_us=100000,since=1,ttl_ms=60000),"


def build_network() -> None:
    """feed ends at a port of nobody; left and right at ports of the bridge. right's other end takes frames and has no
    use for them.
    """
    batch("ip", ["netns add far"] + [
        line for name, other in (("feed", "feed-end"), ("left", "left-end"), ("right", "right-end"))
        for line in (f"link add {name} type veth peer name {other}", f"link set {name} up", f"link set {other} up")
    ])
    batch("ip", ["link set right-end netns far"])
    batch("ip", ["link set right-end up"], "far")


class Bridge:
    def __init__(self, programs: str):
        self.programs = programs
        os.environ["OVS_RUNDIR"] = RUNDIR
        run(f"/bin/bash ovs/start.sh {programs} {RUNDIR}")
        run(
            f"{programs}/ovs-vsctl --db=unix:{RUNDIR}/db.sock --timeout=20 add-br br-lan -- add-port br-lan left --"
            " add-port br-lan right"
        )
        self.native(True)

    def native(self, on: bool) -> None:
        for action in ("rewrite_rwnd", "mark_ce"):
            run(f"{self.programs}/ovs-appctl dpif/set-dp-features br-lan {action} {'true' if on else 'false'}")

    def flow(self, action: str) -> None:
        """The ACK leaves by port `right`, after this."""
        run(
            f"{self.programs}/ovs-ofctl -O OpenFlow13 add-flow unix:{RUNDIR}/br-lan.mgmt"
            f" tcp,nw_src=10.0.0.2,tp_dst=443,actions={action}output:right"
        )

    def datapath(self) -> str:
        return run(f"{self.programs}/ovs-appctl dpctl/dump-flows")


def bursts(forward: str, port: str, out: str, count: int, size: int, ecn: int = NOT_ECT) -> list[tuple[int, int]]:
    """Nanoseconds a packet of each burst: until it was handed in (0: then it was not out yet), until it was out."""
    lines = run(f"{forward} {port} {out} {count} {size} {WINDOW} {ecn}").splitlines()
    return [(int(a), int(b)) for a, b in map(str.split, lines)]


def best_ns(forward: str, port: str, out: str, ecn: int = NOT_ECT) -> int:
    """Of many bursts the shortest: what others on this machine take from it only adds."""
    return min(ns for ns, _ in bursts(forward, port, out, BURSTS, BURST, ecn) if ns)


def through(bridge: Bridge, forward: str, action: str, shown: str, ecn: int = NOT_ECT) -> int:
    bridge.flow(action)
    end = time.monotonic() + 20
    while True:  # until the data path has learned the flow
        bursts(forward, "left-end", "right", 2, 1, ecn)
        if shown in bridge.datapath():
            return best_ns(forward, "left-end", "right", ecn)
        assert time.monotonic() < end, f"{shown} is not in {bridge.datapath()}"


def by_vswitchd(bridge: Bridge, forward: str, action: str, ecn: int = NOT_ECT) -> int:
    """Until the last of a burst is out, by way of userspace."""
    bridge.native(False)
    bridge.flow(action)
    best = min(ns for _, ns in bursts(forward, "left-end", "right", 60, BURST, ecn))
    assert "slow_path" in bridge.datapath(), bridge.datapath()
    bridge.native(True)
    return best


def main() -> None:
    with open(sys.argv[1]) as f:
        plan = json.load(f)
    forward = f"/run/host{plan['forward']}"
    build_network()
    bridge = Bridge(f"/run/host{plan['ovs']}")
    best: dict[str, int] = {}
    for _ in range(ROUNDS):  # taken in turns, so that a slow moment of the machine meets all of them
        for name, measure in (("handed_in", lambda: best_ns(forward, "feed", "feed")),
                              ("plain", lambda: through(bridge, forward, "", "actions:")),
                              ("lowered", lambda: through(bridge, forward, f"rewrite_rwnd(max={CLAMP},ttl_ms=60000),",
                                                          f"rewrite_rwnd({CLAMP},until")),
                              ("left_alone",
                               lambda: through(bridge, forward, f"rewrite_rwnd(max={WINDOW},ttl_ms=60000),",
                                               f"rewrite_rwnd({WINDOW},until")),
                              ("marked", lambda: through(bridge, forward, MARK, "mark_ce(marks=3", ECT1)),
                              ("spaced", lambda: through(bridge, forward, MARK, "mark_ce(marks=3", ECT0)),
                              ("not_ect", lambda: through(bridge, forward, MARK, "mark_ce(marks=3"))):
            ns = measure()
            best[name] = min(best.get(name, ns), ns)
    best["by_vswitchd"] = by_vswitchd(bridge, forward, f"rewrite_rwnd:{CLAMP},")
    best["marked_by_vswitchd"] = by_vswitchd(bridge, forward, MARK, ECT1)
    with open("/run/out/bench.json", "w") as f:
        json.dump(best, f)


if __name__ == "__main__":
    main()
