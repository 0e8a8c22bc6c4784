"""The demo's second person: what waits at the push service for an approval gets one, and that is said.

On a real platform somebody looks first: docs/gates.md.
"""
import threading
from http.client import HTTPException

from oal_local.errors import PlatformError

REASON = "the demo approves what it is shown"
EVERY_S = 0.3  # a promotion is in force a second after it


class Approver:
    """Approves on a thread of its own between `start` and `stop`; `said` are lines that nobody has printed yet."""

    def __init__(self, platform):
        self._push, self.said = platform.push, []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> "Approver":
        self._thread.start()
        return self

    def stop(self) -> None:
        self._end.set()
        self._thread.join()

    def look(self) -> None:
        """Once. A push service that does not answer is asked again the next time."""
        try:
            for rollout in self._push.get("/v1/rollouts")["rollouts"]:
                if rollout["step"] == "held":
                    done = self._push.approve(rollout["id"], REASON)
                    self.said.append(
                        f"push: {rollout['slot']} {rollout['model']}/{rollout['version']} in mode {rollout['mode']} for"
                        f" {rollout['scope']} was held; {done['detail']} (`oal-deploy ctl approve`)")
        except (PlatformError, OSError, ValueError, HTTPException):
            pass

    def lines(self) -> list[str]:
        """Those that were not given before."""
        lines, self.said = self.said, []
        return lines

    def _run(self) -> None:
        while not self._end.wait(EVERY_S):
            self.look()
