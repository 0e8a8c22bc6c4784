"""What a case is: a network, what is played there, and what the captures must then show."""
from pathlib import Path

from .judge import Verdict, judge, load
from .network import Shape
from .switch import NAMES
from .timeline import Rules


class Case:
    """A case has `play(p)`, which runs in the guest, and `check(r)`, which runs on the host. `on`: backends; `quick`:
    those that the short run takes.
    """

    name = about = ""
    shape = Shape()
    on: tuple[str, ...] = NAMES
    quick: tuple[str, ...] = ()
    snaplen = 128
    at_port = False  # what leaves the AP's port for the client is captured too, before the kernel's own queues
    rewriter = True  # `ap-exporter rwnd` is started, else the case starts what it needs

    def prepare(self, p) -> None:
        """Settings of the two ends, before anything is captured."""


class Result:
    """What came of a case on a backend. `complaints` empty: it conforms."""

    def __init__(self, case: Case, backend: str, folder: Path, played: dict):
        self.case, self.backend, self.folder, self.facts, self.events = case, backend, folder, played["facts"], played[
            "events"]
        self.complaints: list[str] = []
        self.figures: list[str] = []
        self.numbers: dict = {}
        if played["error"]:
            self.complaints.append(f"it could not be played:\n{played['error']}")
        else:
            self.client, self.sender = load(folder, case.name)
            case.check(self)
            del self.client, self.sender  # tens of thousands of segments

    def rules(self) -> Rules:
        """bpf: the map is read by the next ACK. ovs: a flow-mod reaches the data path within a round trip, whose clock
        has milliseconds.
        """
        if self.backend == "bpf":
            return Rules(settle_us=1000, late_us=1000)
        return Rules(settle_us=max(20_000, int(self.case.shape.rtt_ms * 1000)),
                     late_us=int(self.case.shape.rtt_ms * 1000), early_us=2000)

    def expect(self, holds: bool, text: str) -> None:
        if not holds:
            self.complaints.append(text)

    def figure(self, text: str) -> None:
        self.figures.append(text)

    def flow(self, name: str, down: bool = False, **options) -> Verdict:
        """The verdict on a flow, its complaints taken over. `down`: on the server's ACKs on their way down."""
        ports = next(tuple(e["flow"]) for e in self.events if e["what"] == "flow" and e["name"] == name)
        ends = (self.sender, self.client) if down else (self.client, self.sender)
        verdict = judge(ports[::-1] if down else ports, *ends, self.events, self.rules(),
                        wire_us=int(self.case.shape.rtt_ms * 500), air=self.case.shape.wifi, down=down, **options)
        name = f"{name}, down" if down else name
        self.complaints += [f"{name}: {text}" for text in verdict.shown()]
        self.numbers[name] = {**verdict.figures, "spans": verdict.rates}
        return verdict

    def clamped(self, verdict: Verdict, at_least: int = 20) -> None:
        """So many ACKs were lowered, and their checksums were looked at."""
        f = verdict.figures
        self.expect(f["clamped"] >= at_least, f"only {f['clamped']} ACKs were clamped, expected {at_least}")
        self.expect(f["checksums"] >= at_least, f"only {f['checksums']} checksums could be verified")
        self.figure(f"{f['clamped']} of {f['acks']} ACKs clamped")

    def left_alone(self, verdict: Verdict, at_least: int = 20) -> None:
        f = verdict.figures
        self.expect(
            f["clamped"] == 0 and f["own"] >= at_least,
            f"{f['clamped']} windows changed, {f['own']} as the client sent them (expected 0, {at_least} or more)")
        self.figure(f"{f['own']} ACKs plain")

    def event(self, what: str) -> dict:
        return next(e for e in self.events if e["what"] == what)
