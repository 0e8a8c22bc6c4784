"""What a case has at hand while it plays in the guest: flows, the rewrite, the bridge; everything that it does is an
event with its time.
"""
from guest.connection import tcp_info

from .craft import CraftedFlow
from .network import STATION_NS, Network
from .rewriter import Rewriter, now_us
from .traffic import Flow, Loop

TTL_MS, RENEW_S = 600, 0.25
SERVER_PORT, CLIENT_PORT = 5000, 40000
NOBODY = "10.20.0.77"


class Play:
    def __init__(self, case, switch, binary: str, python: str, folder: str):
        self.case, self.switch, self.binary, self.python, self.folder = case, switch, binary, python, folder
        self.events: list[dict] = []
        self.facts: dict = {}
        self.network = Network(case.shape, switch)
        self.loop = Loop()
        self.kept: dict = {}
        self.rewriter: Rewriter | None = None
        self.number = 0

    @property
    def server_ns(self) -> str:
        return self.network.path.server_ns

    def begin(self) -> None:
        self.network.build()
        self.case.prepare(self)
        self.network.capture(self.folder, self.case.name, self.case.snaplen, self.case.at_port)
        if self.case.rewriter:
            self.start_rewriter()

    def start_rewriter(self, **options) -> None:
        self.rewriter = Rewriter(self.binary, {**self.switch.options(self.network.port), **options}, self.events,
                                 self.folder, self.case.name)
        self.loop.until(lambda: self.rewriter.stats()["ready"], f"the rewrite is ready: {self.switch.describe()}")

    def ports(self) -> tuple[int, int]:
        self.number += 1
        return CLIENT_PORT + self.number, SERVER_PORT + self.number

    def flow(self, name: str, *, family: int = 4, **options) -> Flow:
        """Opens a connection and sends as much as it takes."""
        flow = Flow((STATION_NS, self.server_ns), self.network.addresses(family), self.ports(), family=family,
                    **options)
        self.loop.flows.append(flow)
        self.events.append({"what": "flow", "name": name, "flow": list(flow.ports), "t_us": now_us()})
        return flow

    def crafted(self, name: str) -> CraftedFlow:
        flow = CraftedFlow((STATION_NS, self.server_ns), self.network.client_port,
                           (self.network.addresses(4)[0], NOBODY), self.ports())
        self.events.append({"what": "flow", "name": name, "flow": list(flow.ports), "t_us": now_us()})
        return flow

    def set(self, flow: Flow, limit_bytes: int, ttl_ms: int = TTL_MS, ok: bool | None = True,
            down: bool = False) -> dict:
        """With scale and segment size as the kernel of whoever sends the data knows them: what the exporter's flow
        tracker learns from the SYN.
        """
        info = tcp_info(flow.client if down else flow.server)
        return self.rewriter.set(flow, limit_bytes, ttl_ms, info["peer_scale"], info["mss"], ok, down)

    def keep(self, flow: Flow, limit_bytes: int, down: bool = False) -> None:
        """Clamped from now on, renewed like the agent does, until dropped or released."""
        self.drop(flow, down)
        self.set(flow, limit_bytes, down=down)
        self.kept[flow, down] = self.loop.repeat(RENEW_S, lambda: self.set(flow, limit_bytes, down=down))

    def drop(self, flow: Flow, down: bool = False) -> None:
        """No more renewals: the clamp ends by itself."""
        if (flow, down) in self.kept:
            self.loop.cancel(self.kept.pop((flow, down)))

    def release(self, flow: Flow, down: bool = False) -> None:
        self.drop(flow, down)
        self.rewriter.release(flow, down)

    def run(self, seconds: float) -> None:
        self.loop.run(seconds)

    def end(self) -> None:
        """Flows end in order, captures are closed, nothing is left."""
        for flow, down in list(self.kept):
            self.drop(flow, down)
        for flow in self.loop.flows:
            flow.stop()
        self.run(1.0)
        if self.rewriter:
            self.rewriter.close()
        self.network.end_capture()

    def remove(self) -> None:
        for flow in self.loop.flows:
            for end in (flow.client, flow.server):
                end.close()
        self.network.remove()
