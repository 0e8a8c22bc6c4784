"""The table of all tests: each method's figures, and what control changes, paired by seed."""
from evaluate import spread
from evaluate.methods import Method
from evaluate.table import figure, markdown, marked

from . import catalogue, play, rpm

#: (name, title, digits) of a test's figures.
RPM = [("rpm", "RPM", 0), ("foreign_rpm", "on new connections", 0), ("loaded_rpm", "on loaded ones", 0),
       ("self_p50_ms", "loaded p50 ms", 0), ("self_p99_ms", "loaded p99", 0), ("page_p50_ms", "new p50 ms", 0),
       ("page_p99_ms", "new p99", 0), ("goodput_mbps", "Mbit/s", 2)]
FLENT = [("ping_p50_ms", "ping p50 ms", 1), ("ping_p99_ms", "ping p99", 1),
         ("ping_lost_ratio", "lost", 3), ("rtt_p50_ms", "TCP's RTT p50 ms", 1),
         ("rtt_p99_ms", "RTT p99", 1), ("down_mbps", "down Mbit/s", 2), ("up_mbps", "up Mbit/s", 2)]
FAIR = [("jain_down", "Jain, down", 3)]
TITLES = {
    "rpm_down": "RPM, download", "rpm_up": "RPM, upload", "rrul_be": "rrul_be", "rtt_fair4": "rtt_fair, 4 stations",
    "rtt_fair9": "rtt_fair, 9 stations"
}


def columns(test: str) -> list[tuple[str, str, int]]:
    return RPM if test.startswith("rpm") else FLENT + (FAIR if test.startswith("rtt_fair") else [])


def values(found: dict[play.Cell, dict], test: str, which: Method, name: str) -> dict[int, float]:
    """By seed."""
    return {c.seed: v for c, f in found.items()
            if (c.test, c.method) == (test, which) and (v := f.get(name)) is not None}


def pairs(methods: set[Method]) -> list[tuple[Method, Method]]:
    """(with, against): control against none, and all of it against the queue alone."""
    acting = sorted((m for m in methods if m.act), key=lambda m: (m.queue, m.act != "queue", m.act))
    against = [(m, m.baseline) for m in acting if m.baseline in methods]
    queues = [(m, Method(m.control, m.queue, "queue")) for m in acting if m.act == "oal"]
    return against + [(m, queue) for m, queue in queues if queue in methods]


def one(found: dict[play.Cell, dict], test: str) -> str:
    """A test's two tables."""
    methods, names = {c.method for c in found if c.test == test}, columns(test)
    rows = [["method", *(title for _, title, _ in names)]]
    for which in sorted(methods, key=lambda m: (m.queue, ("", "queue", "oal").index(m.act) if m.act in
                                                ("", "queue", "oal") else 9, m.name)):
        rows.append([which.name, *(figure(spread.mean(list(values(found, test, which, name).values())), digits)
                                   for name, _, digits in names)])
    changes = [["change", *(title for _, title, _ in names)]]
    for new, old in pairs(methods):
        changes.append([f"{new.name} against {old.name}", *(
            marked(spread.change(values(found, test, new, name), values(found, test, old, name)))
            for name, _, _ in names)])
    return markdown(rows) + "\n" + markdown(changes)


def confidence(found: dict[play.Cell, dict]) -> str:
    """How sure the draft is of its own result, by method, and what was not answered when the test ended."""
    rows = [["test, method", "high", "medium", "low", "ended after s", "connections", "probes", "unanswered"]]
    for test in [t for t in catalogue.NAMES if t.startswith("rpm")]:
        for which in sorted({c.method for c in found if c.test == test}, key=lambda m: m.name):
            mine = [f for c, f in found.items() if (c.test, c.method) == (test, which)]
            said = [f["confidence"] for f in mine]
            rows.append([f"{test}, {which.name}", *(str(said.count(s)) for s in ("high", "medium", "low")), *(
                figure(spread.mean([f[name] for f in mine]), 0)
                for name in ("end_s", "connections", "probes", "unanswered"))])
    return markdown(rows)


def table(found: dict[play.Cell, dict]) -> str:
    seeds = sorted({c.seed for c in found})
    parts = sorted({f"exporter {f['exporter']}, policy {f['policy']}, tree {f['tree']} ({c.method.act})"
                    for c, f in found.items() if f["exporter"]})
    text = f"""# Responsiveness

- {len(found)} cells, seeds {seeds[0]} to {seeds[-1]}; one access point, virtual time, CUBIC everywhere
- {'; '.join(parts)}
- RPM is of {rpm.DRAFT}, with intervals of {catalogue.RPM['interval_s']:.0f} s
- ± and [ ] are 95 % intervals of Student's t over seeds; changes are paired by seed, bold where the interval
  excludes 0

"""
    for test in [t for t in catalogue.NAMES if any(c.test == t for c in found)]:
        text += f"## {TITLES[test]}\n\n{one(found, test)}\n"
    if any(c.test.startswith("rpm") for c in found):
        text += "## The draft's confidence\n\n" + confidence(found)
    return text
