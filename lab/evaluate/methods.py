"""What is compared: a sender's congestion control, the access point's queue, and what acts on top of it."""
import functools
import pathlib
from dataclasses import dataclass

import yaml
from host.scenario import CONGESTION_CONTROLS, QUIC

POLICIES = pathlib.Path(__file__).resolve().parents[2] / "policies"


@functools.cache
def _said(policy: str) -> dict:
    """`evaluate.yaml` of a policy: `controls`, `queues`, and `acts`, what acts on top of them; `act`: what the policy
    by itself is called among these, where not by its name.
    """
    return yaml.safe_load((POLICIES / policy / "evaluate.yaml").read_text(encoding="utf-8"))


#: Of rwnd-fair: what is played where no method is named.
CONTROLS, QUEUES = (tuple(_said("rwnd-fair")[key]) for key in ("controls", "queues"))
#: What senders may be, by name: (congestion control, whether they ask for ECN). DCTCP does so by itself, and QUIC as
#: quic-go does: packets are ECT(0) once the path has shown that it keeps them, a mark counts as a loss (NewReno). lc,
#: lc_…: by the policy loss-cause, le, le_…: by learned-ecn (sender_models.py). Those of CHOSEN: chosen.py.
SENDERS: dict[str, tuple[str, bool]] = {
    **{control: (control, False) for control in CONGESTION_CONTROLS if control not in ("oal_lc", "oal_ecn")},
    "cubic_ecn": ("cubic", True), "reno_ecn": ("reno", True), "l4s": ("dctcp", False), "cubic_mixed": ("cubic", False),
    "quic": (QUIC, False), **dict.fromkeys(("lc", "lc_paper", "lc_rtt", "lc_rule", "lc_truth"), ("oal_lc", False)),
    "lc_ap": ("oal_lc", True), "lc_told": ("cubic", True), "cs_speed": ("cubic", False), "cs_queue": ("cubic", False),
    **dict.fromkeys(("le", "le_rtt", "le_steep", "le_rtt_steep", "le_wait"), ("oal_ecn", False))
}
#: Senders whose flows have what an earlier session of the same flow with CUBIC says.
CHOSEN = ("cs_speed", "cs_queue", "lc_told", "le_wait")
#: Senders of which every second flow of a scenario asks for ECN, from the first on, and the others do not.
MIXED = ("cubic_mixed",)
#: Senders whose packets are ECT(1): DCTCP's law in the place of TCP Prague, which no kernel's own source has.
SCALABLE = ("l4s",)
#: The access point's queue, by name: a scenario's `ap.queue`. {fifo_pkts} is the scenario's.
QUEUE_KINDS: dict[str, dict] = {
    "fifo": {"mode": "qdisc", "kind": "pfifo limit {fifo_pkts}"},
    "fq": {"mode": "txq"},  # mac80211's, with FQ-CoDel and airtime fairness
    "fq-ce1": {"mode": "txq", "ce_us": 1000}, "fq-ce5": {"mode": "txq", "ce_us": 5000},  # marks from that wait on
    "cake": {"mode": "qdisc", "kind": "cake unlimited"},
    "cake-ack": {"mode": "qdisc", "kind": "cake unlimited ack-filter"}
}
#: The policy with a part left out, by name: numbers that replace the policy file's.
ABLATIONS: dict[str, dict[str, int]] = _said("rwnd-fair")["ablations"]
#: Ablations by numbers that the policy no longer has: read from kept results, never played.
PAST: tuple[str, ...] = tuple(_said("rwnd-fair").get("past", ()))
#: The one without a model, which the others are compared with.
NO_MODEL = "queue"
#: The oracle with a target of its own, by name: µs.
ORACLES: dict[str, int] = _said("rwnd-fair").get("oracles", {})
#: Windows by a forecast that takes so much off the error of the best rule without learning, by name: permille.
FORECASTS: dict[str, int] = _said("rwnd-fair").get("forecasts", {})
#: The policy with trees that each access point learned online, on its own items of earlier time (lessons.py).
ONLINE = _said("rwnd-fair")["online"]
_OTHERS = sorted({file.parent.name for file in POLICIES.glob("*/evaluate.yaml")} - {"rwnd-fair"})
#: Policies that only look on: act → policy. The exporter runs, the server's TCP is sampled, and nothing acts.
LOOKS_ON: dict[str, str] = {_said(name)["looks_on"]: name for name in _OTHERS if "looks_on" in _said(name)}
#: Other policies by themselves: act → (policy, numbers that replace the file's). `POLICY-PART` is an ablation of it.
#: One whose `acts` are [] acts at senders alone.
POLICY_ACTS: dict[str, tuple[str, dict[str, int]]] = {
    "-".join((act, part) if part else (act,)): (name, numbers)
    for name in _OTHERS if name not in LOOKS_ON.values() and _said(name).get("acts") != []
    for act in (_said(name).get("act", name),) for part, numbers in ({"": {}} | _said(name)["ablations"]).items()
}
ACTS = ("", *_said("rwnd-fair")["acts"], *POLICY_ACTS, *LOOKS_ON, *ORACLES, *ABLATIONS, *PAST, *FORECASTS, ONLINE)


class MethodError(Exception):
    """A name that stands for no method."""


@dataclass(frozen=True)
class Method:
    """`cubic-fq+oal`: CUBIC senders, mac80211's queues with FQ-CoDel and airtime fairness, OAL on the access points."""

    control: str
    queue: str
    act: str = ""

    @property
    def cc(self) -> str:
        """The senders' congestion control, as the kernel calls it."""
        return SENDERS[self.control][0]

    @property
    def ecn(self) -> bool:
        """Whether all senders ask for ECN."""
        return SENDERS[self.control][1]

    @property
    def mixed(self) -> bool:
        """Whether every second sender asks for ECN."""
        return self.control in MIXED

    @property
    def ect1(self) -> bool:
        """Whether DCTCP's packets are ECT(1)."""
        return self.control in SCALABLE

    def ap_queue(self, fifo_pkts: int) -> dict:
        """`ap.queue` of a scenario; `fifo_pkts`: what a FIFO holds."""
        return {key: value.format(fifo_pkts=fifo_pkts) if isinstance(value, str) else value
                for key, value in QUEUE_KINDS[self.queue].items()}

    @property
    def name(self) -> str:
        return f"{self.control}-{self.queue}" + (f"+{self.act}" if self.act else "")

    @property
    def policy(self) -> dict[str, int] | None:
        """Numbers that the method has instead of the policy file's; None where no policy acts. MethodError for one of
        PAST: nobody has its numbers.
        """
        if self.act in PAST:
            raise MethodError(f"{self.name} is no longer played: the policy has not its numbers any more")
        if self.act in POLICY_ACTS:
            return POLICY_ACTS[self.act][1]
        return {} if self.act in ("oal", ONLINE) else ABLATIONS.get(self.act)

    @property
    def of_policy(self) -> str:
        """The policy (folder) whose bundle the access points have, where one acts, or that looks on."""
        return LOOKS_ON.get(self.act) or POLICY_ACTS.get(self.act, ("rwnd-fair",))[0]

    @property
    def looks_on(self) -> bool:
        """Whether causes of losses are told (diagnosis.py), and nothing acts."""
        return self.act in LOOKS_ON

    @property
    def oracle(self) -> bool:
        """Windows from what nobody can know."""
        return self.act == "oracle" or self.act in ORACLES or self.act in FORECASTS

    @property
    def before(self) -> "Method | None":
        """The method of the earlier session by which its senders choose."""
        return Method("cubic", self.queue) if self.control in CHOSEN else None

    @property
    def baseline(self) -> "Method":
        return Method(self.control, self.queue)


def method(name: str) -> Method:
    base, _, act = name.partition("+")
    control, _, queue = base.partition("-")
    if control not in SENDERS or queue not in QUEUE_KINDS or act not in ACTS or name.endswith("+"):
        raise MethodError(
            f"no method {name}; a method is CONTROL-QUEUE or CONTROL-QUEUE+ACT: {'|'.join(SENDERS)},"
            f" {'|'.join(QUEUE_KINDS)}, {'|'.join(ACTS[1:])}"
        )
    return Method(control, queue, act)


def to_play(name: str) -> Method:
    """A method that can be played. MethodError for any other, with the reason."""
    found = method(name)
    _ = found.policy
    return found


#: Played where none is named: those that need no lessons and answer no question of their own.
ALL = [Method(control, queue, act) for act in ACTS if act not in (*PAST, *FORECASTS, *POLICY_ACTS, *LOOKS_ON, ONLINE)
       for queue in QUEUES for control in CONTROLS]
