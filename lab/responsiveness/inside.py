"""The guest's main program of these tests: one access point, its stations, and the test of the plan. What it sees goes
to /run/out/NAME.seen.json.
"""
import json
import sys
import time

from guest.__main__ import HOST, OUT, Ap, set_channel
from guest.net import address
from guest.sh import run, write


def rpm(plan: dict, ap: Ap) -> dict:
    """The responsiveness test, by the station that the plan names, against the wired server."""
    sys.path.insert(0, HOST + plan["test"]["libraries"])
    from . import channel, client, loop, server
    test, moving = plan["test"], loop.Loop()
    station = next(s for s in ap.stations if s["name"] == test["station"])
    mine, theirs = channel.contexts(HOST + test["certificate"], HOST + test["key"])
    there = server.Server(moving, ap.wired.server_ns, address(0, 1), theirs, test["control"])
    it = client.Test(moving, station["ns"], there, mine, test, plan["seed"])
    it.begin()
    moving.run(it.start_s + plan["duration_s"])
    return {"probes": it.probes, "intervals": it.intervals, "failures": it.failures + there.failures}


def flent(plan: dict, ap: Ap) -> dict:
    """Pings from before the flows until after them; the flows are the plan's."""
    from . import pings, throughput
    test, begun_s = plan["test"], time.time()
    by_name = {s["name"]: s for s in ap.stations}
    specs = []
    for spec in test["pings"]:
        station = by_name[spec["station"]]
        ends = ((station["ns"], address(0, station["host"])), (ap.wired.server_ns, address(0, 1)))
        source, target = ends if test["from"] == "station" else ends[::-1]
        specs.append({"kind": spec["kind"], "from_ns": source[0], "to_ns": target[0], "to": target[1]})
    asking = pings.Pings(specs, test["step_s"], plan["duration_s"])
    counting = throughput.Sampler(ap.traffic.flows, test["step_s"])
    asking.begin()
    counting.begin()
    answered, counted = asking.end(), counting.end()
    return {"t0_s": begun_s, "pings": answered, "flows": counted}


def main() -> int:
    with open(sys.argv[1]) as f:
        plan = json.load(f)
    run("mount -t tmpfs lab /run/lab")
    set_channel(plan["medium"])
    ap = Ap(plan, 0, plan["stations"])
    ap.build()
    ap.join()
    ap.begin()
    ap.begin_ns = time.time_ns()
    ap.traffic.begin()
    seen = {"rpm": rpm, "flent": flent}[plan["test"]["kind"]](plan, ap)
    problems = ap.end()
    write(f"{OUT}/{plan['name']}.seen.json", json.dumps(seen))
    print("guest: test done", flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
