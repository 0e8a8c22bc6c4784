"""In the guest: an ACK through the kernel's data path, plain, with rewrite_rwnd, and by way of vswitchd. python3 -m ovs.bench_inside PLAN.json"""
import json
import os
import sys
import time

from guest.sh import batch, run

RUNDIR = "/run/lab/ovs"
BURST, BURSTS, ROUNDS = 128, 400, 5
WINDOW, CLAMP = 60000, 256


def build_network() -> None:
    """feed ends at a port of nobody; left and right at ports of the bridge. right's other end takes frames and has no use for them."""
    batch("ip", ["netns add far"] + [line for name, other in (("feed", "feed-end"), ("left", "left-end"), ("right", "right-end"))
                                     for line in (f"link add {name} type veth peer name {other}", f"link set {name} up", f"link set {other} up")])
    batch("ip", ["link set right-end netns far"])
    batch("ip", ["link set right-end up"], "far")


def sent(port: str) -> int:
    with open(f"/sys/class/net/{port}/statistics/tx_packets") as f:
        return int(f.read())


class Bridge:
    def __init__(self, programs: str):
        self.programs = programs
        os.environ["OVS_RUNDIR"] = RUNDIR
        run(f"/bin/bash ovs/start.sh {programs} {RUNDIR}")
        run(f"{programs}/ovs-vsctl --db=unix:{RUNDIR}/db.sock --timeout=20 add-br br-lan -- add-port br-lan left -- add-port br-lan right")
        self.native(True)

    def native(self, on: bool) -> None:
        run(f"{self.programs}/ovs-appctl dpif/set-dp-features br-lan rewrite_rwnd {'true' if on else 'false'}")
        features = run(f"{self.programs}/ovs-appctl dpif/show-dp-features br-lan")
        assert f"TCP receive window rewrite: {'Yes' if on else 'No'}" in features, features

    def flow(self, action: str) -> None:
        """The ACK leaves by port `right`, after this."""
        run(f"{self.programs}/ovs-ofctl -O OpenFlow13 add-flow unix:{RUNDIR}/br-lan.mgmt tcp,nw_src=10.0.0.2,tp_dst=443,actions={action}output:right")

    def datapath(self) -> str:
        return run(f"{self.programs}/ovs-appctl dpctl/dump-flows")


def best_ns(forward: str, port: str, bursts: int = BURSTS, burst: int = BURST) -> int:
    """Of many bursts the shortest: what others on this machine take from it only adds."""
    return min(map(int, run(f"{forward} {port} {bursts} {burst} {WINDOW}").split()))


def through(bridge: Bridge, forward: str, action: str, shown: str) -> int:
    bridge.flow(action)
    before = sent("right")
    best_ns(forward, "left-end", 20, 8)  # the data path learns the flow
    end = time.monotonic() + 20
    while shown not in bridge.datapath():
        assert time.monotonic() < end, f"{shown} is not in {bridge.datapath()}"
        best_ns(forward, "left-end", 2, 8)
        time.sleep(0.1)
    before = sent("right")
    ns = best_ns(forward, "left-end")
    assert sent("right") - before == BURST * BURSTS, f"{sent('right') - before} of {BURST * BURSTS} ACKs came through"
    return ns


def by_vswitchd(bridge: Bridge, forward: str) -> int:
    """Nanoseconds an ACK, in bursts that wait for the last to come out."""
    bridge.native(False)
    bridge.flow(f"rewrite_rwnd:{CLAMP},")
    times = []
    for _ in range(60):
        before, begin = sent("right"), time.monotonic_ns()
        run(f"{forward} left-end 1 64 {WINDOW}")
        while sent("right") < before + 64:
            assert time.monotonic_ns() - begin < 20e9, f"{sent('right') - before} of 64 ACKs came through"
        times.append((time.monotonic_ns() - begin) // 64)
    assert "slow_path" in bridge.datapath()
    bridge.native(True)
    return min(times)


def main() -> None:
    with open(sys.argv[1]) as f:
        plan = json.load(f)
    forward = f"/run/host{plan['forward']}"
    build_network()
    bridge = Bridge(f"/run/host{plan['ovs']}")
    best: dict[str, int] = {}
    for _ in range(ROUNDS):  # taken in turns, so that a slow moment of the machine meets all of them
        for name, measure in (("handed_in", lambda: best_ns(forward, "feed")),
                              ("plain", lambda: through(bridge, forward, "", "actions:")),
                              ("lowered", lambda: through(bridge, forward, f"rewrite_rwnd(max={CLAMP},ttl_ms=60000),", f"rewrite_rwnd({CLAMP},until")),
                              ("left_alone", lambda: through(bridge, forward, f"rewrite_rwnd(max={WINDOW},ttl_ms=60000),", f"rewrite_rwnd({WINDOW},until"))):
            ns = measure()
            best[name] = min(best.get(name, ns), ns)
    best["by_vswitchd"] = by_vswitchd(bridge, forward)
    with open("/run/out/bench.json", "w") as f:
        json.dump(best, f)


main()
