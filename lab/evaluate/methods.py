"""What is compared: a sender's congestion control, the access point's queue, and what acts on top of it."""
from dataclasses import dataclass

CONTROLS, QUEUES = ("cubic", "bbr"), ("fifo", "fq")
ACTS = ("", "oal", "clamp", "oracle")


class MethodError(Exception):
    """A name that stands for no method."""


@dataclass(frozen=True)
class Method:
    """`cubic-fq+oal`: CUBIC senders, mac80211's queues with FQ-CoDel and airtime fairness, OAL on the access points."""

    control: str
    queue: str
    act: str = ""

    @property
    def name(self) -> str:
        return f"{self.control}-{self.queue}" + (f"+{self.act}" if self.act else "")

    @property
    def baseline(self) -> "Method":
        return Method(self.control, self.queue)


def method(name: str) -> Method:
    base, _, act = name.partition("+")
    control, _, queue = base.partition("-")
    if control not in CONTROLS or queue not in QUEUES or act not in ACTS or name.endswith("+"):
        raise MethodError(
            f"no method {name}; a method is CONTROL-QUEUE or CONTROL-QUEUE+ACT: {'|'.join(CONTROLS)},"
            f" {'|'.join(QUEUES)}, {'|'.join(ACTS[1:])}"
        )
    return Method(control, queue, act)


ALL = [Method(control, queue, act) for act in ACTS for queue in QUEUES for control in CONTROLS]
