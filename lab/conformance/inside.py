"""The guest's main program of the suite: plays the cases of a plan one after another on one backend. Captures and
events go to /run/out.
"""
import json
import os
import sys
import time
import traceback

from guest.sh import run, write
from guest.steps import STOP

from .cases import CASES
from .play import Play
from .switch import switch

OUT, HOST = "/run/out", "/run/host"


def play(case, backend, plan: dict) -> dict:
    """Events and facts of a case; `error` if it could not be played."""
    began, it = time.monotonic(), Play(case, backend, HOST + plan["exporter"], HOST + plan["python"], OUT)
    error = None
    try:
        try:
            it.begin()
            case.play(it)
        finally:
            it.end()
    except (Exception, SystemExit):
        error = traceback.format_exc()
    try:
        it.remove()
    except (Exception, SystemExit):
        error = (error or "") + traceback.format_exc()
    return {
        "case": case.name, "events": it.events, "facts": it.facts, "error": error, "seconds": time.monotonic() - began
    }


def main() -> int:
    with open(sys.argv[1]) as f:
        plan = json.load(f)
    run("mount -t tmpfs lab /run/lab")
    backend = switch(plan["switch"], HOST + plan["ovs"] if plan["ovs"] else "")
    backend.begin()
    by_name = {case.name: case for case in CASES}
    for name in plan["cases"]:
        if os.path.exists(STOP):
            print("conformance: stopped", flush=True)
            break
        print(f"conformance: {name}", flush=True)
        write(f"{OUT}/{name}.json", json.dumps(play(by_name[name], backend, plan)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
