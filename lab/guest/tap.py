"""Header capture of an evaluation: every server's wired port and every station's radio, by one process
(lab/evaluate/tap.c).
"""
import time

from .sh import start


def places(plan: dict) -> list[str]:
    """NAMESPACE:INTERFACE of each tap: AP after AP, its server and then its stations, in the plan's order."""
    return [place for ap in range(plan["aps"]) for place in
            [f"server{ap}:eth0", *(f"{s['ns']}:wlan{s['radio']}" for s in plan["stations"] if s["ap"] == ap)]]


class Tap:
    def __init__(self, plan: dict, out: str, host: str):
        self.log = f"{out}/{plan['name']}.tap.log"
        self.process = start([host + plan["tap"], f"{out}/{plan['name']}.tap", *places(plan)], self.log)
        while self.process.poll() is None and "ready" not in open(self.log).read():
            time.sleep(0.01)

    def end(self) -> int:
        """Stop; its exit status: not 0 where a packet was lost."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(timeout=20)
