"""Bad input and odd flows: what the issue lists, each as a case."""
from .case import Case, Result
from .cases_clamp import One
from .network import STATION_NS, Shape
from .rewriter import now_us
from .segment import CWR, ECE, FIN, OPTION_SACK, SYN

LARGE_BUFFERS = "4096 1048576 1073741824"


class ScaleNone(One):
    name, about, limit = "scale-0", "window scale 0: a client without window scaling", 14_000
    quick = ("bpf",)

    def prepare(self, p) -> None:
        p.network.sysctl(STATION_NS, "tcp_window_scaling", "0")

    def check(self, r: Result) -> None:
        verdict = r.flow("flow")
        r.clamped(verdict, 50)
        r.expect(not verdict.figures["scale"], f"the client's scale is {verdict.figures['scale']}")


class Scale14(One):
    name, about, limit = "scale-14", "window scale 14: windows in units of 16 KiB, and never 0", 40_000
    quick = ("bpf",)

    def prepare(self, p) -> None:
        p.network.sysctl(STATION_NS, "tcp_rmem", LARGE_BUFFERS)

    def check(self, r: Result) -> None:
        verdict = r.flow("flow")
        r.clamped(verdict, 20)
        r.expect(verdict.figures["scale"] == 14, f"the client's scale is {verdict.figures['scale']}")
        r.expect(any(seen.window == 2 for _, seen in verdict.changed()), "no window of 2 × 16 KiB was seen")


class ScaleTooLarge(Case):
    name, about = (
        "scale-15",
        "a scale above 14 is refused by rwnd_set, and a SYN that carries one makes its flow unknown",
    )
    on = ("bpf", "ovs-native")
    quick = ("bpf",)

    def play(self, p) -> None:
        flow, crafted = p.flow("flow"), p.crafted("crafted")
        p.run(0.3)
        p.facts["refused"] = p.rewriter.set(flow, 20_000, 500, scale=15, mss=1448, ok=False)
        crafted.syn(15)
        p.run(0.1)
        for scale in (15, 16, 255):
            p.facts[f"refused {scale}"] = p.rewriter.set(crafted, 20_000, 500, scale=scale, mss=1448, ok=False)
        if p.switch.backend == "bpf":  # that learns scales by itself
            p.facts["unknown"] = p.rewriter.set(crafted, 20_000, 900, ok=None)
        for n in range(60):
            crafted.ack(60_000, n)
            p.run(0.01)

    def check(self, r: Result) -> None:
        r.left_alone(r.flow("flow"))
        r.left_alone(r.flow("crafted", plain=True))
        r.expect(all(not r.facts[key].get("ok") for key in r.facts if key.startswith("refused")),
                 f"it was not refused: {r.facts}")


class MissedSyn(Case):
    name, about = (
        "missed-syn",
        "a flow older than the rewrite, of unknown scale, is left alone; with its scale told it is clamped",
    )
    on = ("bpf",)  # ovs never sees scales: there the agent tells, or does not ask
    quick = ("bpf",)
    rewriter = False

    def play(self, p) -> None:
        unknown, told = p.flow("unknown"), p.flow("told")
        p.run(0.5)
        p.start_rewriter()
        for _ in range(4):
            p.facts["unknown"] = p.rewriter.set(unknown, 20_000, 600, ok=None)
            p.set(told, 20_000)
            p.run(0.4)
        p.facts["stats"] = p.rewriter.stats()

    def check(self, r: Result) -> None:
        r.left_alone(r.flow("unknown", plain=True))
        r.clamped(r.flow("told"), 50)


class ZeroWindow(Case):
    name, about = (
        "zero-window",
        "a receiver that is full: zero windows and answers to window probes pass, and afterwards it is clamped again",
    )
    quick = ("bpf", "ovs-native")

    def play(self, p) -> None:
        flow = p.flow("flow", rcvbuf=200_000)
        p.run(0.5)
        p.keep(flow, 24_000)
        p.run(0.6)
        flow.pause()
        p.run(4.0)
        p.facts["paused_us"] = now_us()
        flow.resume()
        p.run(1.2)
        p.release(flow)
        p.run(0.3)

    def check(self, r: Result) -> None:
        verdict = r.flow("flow")
        r.clamped(verdict, 50)
        zero = [seen.t_us for own, seen in verdict.up if seen.window == 0 and not seen.flags & SYN]
        probes = sum(1 for s in verdict.down if zero and zero[0] < s.t_us < r.facts["paused_us"] and s.payload <= 1)
        r.expect(len(zero) >= 2, f"{len(zero)} zero windows reached the sender")
        r.expect(probes >= 1, "the sender sent no window probe")
        r.expect(any(own.t_us > r.facts["paused_us"] + 300_000 for own, _ in verdict.changed()),
                 "it was not clamped again after the pause")
        r.figure(f"{len(zero)} zero windows, {probes} probes")


class Sack(One):
    name, about = "sack", "lost data: ACKs with SACK blocks and time stamps"
    shape = Shape(loss="1%")

    def check(self, r: Result) -> None:
        verdict = r.flow("flow")
        r.clamped(verdict, 50)
        blocks = sum(OPTION_SACK in seen.options() for _, seen in verdict.changed())
        r.expect(blocks >= 10, f"only {blocks} clamped ACKs had SACK blocks")
        r.figure(f"{blocks} clamped ACKs with SACK blocks")


class NoTimestamps(One):
    name, about = "no-timestamps", "headers of 20 bytes: no options at all"

    def prepare(self, p) -> None:
        p.network.sysctl(STATION_NS, "tcp_timestamps", "0")

    def check(self, r: Result) -> None:
        verdict = r.flow("flow")
        r.clamped(verdict, 50)
        r.expect(verdict.figures["timestamps"] == 0, "there were time stamps")


class HalfClosed(Case):
    name, about = (
        "half-closed",
        "the client has closed its direction and still receives: ACKs after its FIN, and the FIN itself",
    )
    quick = ("bpf",)

    def play(self, p) -> None:
        flow = p.flow("flow")
        p.run(0.4)
        p.keep(flow, 24_000)
        p.run(0.4)
        flow.half_close()
        p.run(1.2)
        p.release(flow)
        p.run(0.3)

    def check(self, r: Result) -> None:
        verdict = r.flow("flow")
        fin = next((own.t_us for own, s in verdict.up if s.flags & FIN), None)
        r.expect(fin is not None, "the client's FIN was not seen")
        after = sum(own.t_us > fin for own, _ in verdict.changed()) if fin else 0
        r.expect(after >= 50, f"only {after} ACKs after the FIN were clamped")
        r.expect(any(s.flags & FIN for s in verdict.down),
                 "the server's own FIN was not seen: the flow did not end in order")
        r.figure(f"{after} ACKs after the FIN clamped")


class Ecn(One):
    name, about = "ecn", "ECN: SYN with ECE and CWR untouched, ECE on clamped ACKs stays"
    shape = Shape(loss="2% ecn")

    def prepare(self, p) -> None:
        for ns in (STATION_NS, p.server_ns):
            p.network.sysctl(ns, "tcp_ecn", "1")

    def check(self, r: Result) -> None:
        verdict = r.flow("flow")
        r.clamped(verdict, 50)
        echoed = sum(bool(seen.flags & ECE) for _, seen in verdict.changed())
        r.expect(any(s.flags & SYN and s.flags & (ECE | CWR) for _, s in verdict.up), "ECN was not negotiated")
        r.expect(echoed >= 10, f"only {echoed} clamped ACKs carried ECE")
        r.figure(f"{echoed} clamped ACKs with ECE")


class Reset(Case):
    name, about = "reset", "a client that gives up: its RST passes as it is"

    def play(self, p) -> None:
        flow = p.flow("flow")
        p.run(0.4)
        p.keep(flow, 24_000)
        p.run(0.8)
        p.drop(flow)
        flow.reset()
        p.run(0.3)

    def check(self, r: Result) -> None:
        verdict = r.flow("flow")
        r.clamped(verdict, 50)
        r.expect(verdict.figures["rst"] >= 1, "no RST was seen")
        r.figure(f"{verdict.figures['rst']} RST untouched")
