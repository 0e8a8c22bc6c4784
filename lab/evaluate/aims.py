"""lab/evaluate/aims: what a policy must show (`aims` of policies/NAME/evaluate.yaml), played and judged.

An aim compares a figure of a method with a baseline's, seed by seed, as the mean over its scenarios; `at_most` and
`at_least` are limits of the ratio, or of the figure itself where there is no baseline; `more_by` is one of the
difference. `with` are limits that must hold beside it. An aim is met by its mean; `surely` says that its whole interval
is on that side, too. One with `open` is not played, and says why."""
import argparse
import dataclasses
import html
import pathlib
import sys

import yaml
from host import scenario

from . import __main__ as command
from . import methods, play, report, results, scenarios, spread, table, verdict

KEYS = {
    "name", "asks", "method", "baseline", "figure", "at_most", "at_least", "more_by", "with", "set", "scenarios", "open"
}
WHERE = {"set", "scenarios", "seeds"}
SHOWS = "figures"  # in `judge`: of a cell, which are shown of each method
KEEPS = "sessions"  # in `judge`: whether sessions of senders are kept with the results
RIVALS = "rivals"  # in `judge`: methods that are played there beside those of aims
ONE_SEED = "not judged: one seed"
FIRST_SEED = 1001  # none that anything was chosen on
SHOWN = ("throughput_mbps", "queueing_p95_ms", "delay_p95_ms", "ce_ratio", "kernel_loss_ratio", "jain_goodput")


class AimError(Exception):
    """What is wrong with an evaluate.yaml, and where."""


@dataclasses.dataclass(frozen=True)
class Limit:
    """Of a ratio or of the difference of two methods' figures, or of a figure."""

    figure: str
    at_most: float | None = None
    at_least: float | None = None
    more_by: float | None = None

    def __post_init__(self):
        if [self.at_most, self.at_least, self.more_by].count(None) != 2:
            raise AimError(f"{self.figure}: one of at_most, at_least and more_by")

    def met(self, value: float) -> bool:
        if self.at_most is not None:
            return value <= self.at_most
        return value >= (self.at_least if self.at_least is not None else self.more_by)

    def surely(self, found: spread.Figure) -> bool:
        return self.met(found.low) and self.met(found.high)

    @property
    def said(self) -> str:
        if self.at_most is not None:
            return f"≤ {self.at_most:g}"
        return f"≥ {self.at_least:g}" if self.at_least is not None else f"≥ +{self.more_by:g}"


@dataclasses.dataclass(frozen=True)
class Aim:
    name: str
    asks: str
    method: methods.Method
    baseline: methods.Method | None
    limits: tuple[Limit, ...]  # the aim itself, then what must hold with it
    set: str
    scenarios: tuple[str, ...]
    open: str = ""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What was measured of one limit; None: nothing of it was played."""

    limit: Limit
    found: spread.Figure | None

    @property
    def said(self) -> str:
        if self.found is None:
            return "not played"
        if self.found.runs < 2:
            return ONE_SEED
        met, sure = self.limit.met(self.found.value), self.limit.surely(self.found)
        if met:
            return "met, surely" if sure else "met"
        low, high = self.limit.met(self.found.low), self.limit.met(self.found.high)
        return "missed, within chance" if low or high else "missed"


def _aim(given: dict, where: str, common: dict) -> Aim:
    if unknown := set(given) - KEYS:
        raise AimError(f"{where}: unknown key {', '.join(sorted(unknown))}; known: {', '.join(sorted(KEYS))}")
    try:
        limits = [Limit(given["figure"], given.get("at_most"), given.get("at_least"), given.get("more_by"))]
        limits += [Limit(figure, **limit) for figure, limit in given.get("with", {}).items()]
        if given.get("open"):  # it may name what nothing plays yet
            return Aim(given["name"], given["asks"], methods.method(given["method"]), None, tuple(limits), "", (),
                       given["open"])
        of = given.get("set", common["set"])
        wanted = tuple(given.get("scenarios", common["scenarios"]))
        for name in wanted:
            scenarios.load(of, name)
        baseline = methods.to_play(given["baseline"]) if "baseline" in given else None
        if baseline is None and any(limit.more_by is not None for limit in limits):
            raise AimError("more_by needs a baseline")
        return Aim(given["name"], given["asks"], methods.to_play(given["method"]), baseline, tuple(limits), of, wanted)
    except KeyError as error:
        raise AimError(f"{where}: needs {error.args[0]}") from None
    except (AimError, methods.MethodError, scenario.ScenarioError, TypeError) as error:
        raise AimError(f"{where}: {error}") from None


def load(policy: str, folder: pathlib.Path = methods.POLICIES) -> tuple[list[Aim], int, tuple[str, ...]]:
    """(aims of a policy, in how many seeds they are judged, figures that are shown). AimError where the file does not
    say.
    """
    path = folder / policy / "evaluate.yaml"
    if not path.exists():
        raise AimError(f"there is no policies/{policy}/evaluate.yaml")
    said = yaml.safe_load(path.read_text(encoding="utf-8"))
    common, given = said.get("judge", {}), said.get("aims", [])
    if not given or set(common) - {SHOWS, KEEPS, RIVALS} != WHERE:
        raise AimError(f"policies/{policy}/evaluate.yaml: needs `aims`, and `judge` with {', '.join(sorted(WHERE))}")
    aims = [_aim(one, f"policies/{policy}/evaluate.yaml: aim {one.get('name', n)}", common)
            for n, one in enumerate(given)]
    of: dict[str, str] = {}
    for aim in aims:
        for name in aim.scenarios:
            if of.setdefault(name, aim.set) != aim.set:
                raise AimError(f"policies/{policy}/evaluate.yaml: {name} is of the sets {of[name]} and {aim.set}, and"
                               " results know scenarios by name")
    return aims, common["seeds"], tuple(common.get(SHOWS, SHOWN))


def _judge(policy: str) -> dict:
    return yaml.safe_load((methods.POLICIES / policy / "evaluate.yaml").read_text(encoding="utf-8"))["judge"]


def cells(aims: list[Aim], seeds: int) -> list[play.Cell]:
    """All that they need, each once; seeds are outermost, so that a stopped run is balanced."""
    return list(dict.fromkeys(
        play.Cell(aim.set, name, which, FIRST_SEED + n) for n in range(seeds) for aim in aims for name in aim.scenarios
        for which in (aim.baseline, aim.method) if which))


def rivals(policy: str, seeds: int) -> list[play.Cell]:
    """Cells of methods that no aim has to name."""
    said = _judge(policy)
    return [play.Cell(said["set"], name, methods.to_play(which), FIRST_SEED + n) for n in range(seeds)
            for name in said["scenarios"] for which in said.get(RIVALS, [])]


def measured(r: results.Results, aim: Aim, limit: Limit, where: tuple[str, ...]) -> spread.Figure | None:
    """The ratio of the aim's figures as the mean over scenarios; of an aim without a baseline the figure itself."""
    if aim.baseline is None:
        of = [r.values(name, aim.method, limit.figure) for name in where]
        seeds = sorted(set.intersection(*map(set, of))) if of else []
        return spread.mean([sum(one[seed] for one in of) / len(of) for seed in seeds])
    if limit.more_by is not None:
        return spread.mean_difference([(r.values(name, aim.method, limit.figure),
                                        r.values(name, aim.baseline, limit.figure)) for name in where])
    found = spread.mean_change([(r.values(name, aim.method, limit.figure), r.values(name, aim.baseline, limit.figure))
                                for name in where])
    return found and dataclasses.replace(found, value=found.value + 1, low=found.low + 1, high=found.high + 1)


def judge(r: results.Results, aim: Aim) -> list[Verdict]:
    """Of each limit."""
    return [Verdict(limit, measured(r, aim, limit, aim.scenarios)) for limit in aim.limits]


def verdict_of(found: list[Verdict]) -> str:
    """Of an aim: met if every limit is."""
    said = [one.said for one in found]
    return next((word for word in ("not played", ONE_SEED, "missed", "missed, within chance", "met") if word in said),
                "met, surely")


def figure(found: spread.Figure | None) -> str:
    if found is None:
        return "–"
    return f"{found.value:.3f}" + ("" if found.low != found.low else f" [{found.low:.3f}, {found.high:.3f}]")


def rows(r: results.Results, aims: list[Aim]) -> list[list[str]]:
    """Heading, then a row of each aim and limit; beside the mean, each scenario by itself."""
    out = [["aim", "asked", "method", "against", "figure", "limit", "measured", "seeds", "by scenario", "verdict"]]
    for aim in aims:
        if aim.open:
            out.append([aim.name, aim.asks, aim.method.name, "", aim.limits[0].figure, aim.limits[0].said, "–", "", "",
                        f"open: {aim.open}"])
            continue
        found = judge(r, aim)
        for n, one in enumerate(found):
            each = [f"{name} {figure(measured(r, aim, one.limit, (name,)))}" for name in aim.scenarios]
            out.append([aim.name, aim.asks if n == 0 else "with", aim.method.name,
                        aim.baseline.name if aim.baseline else "", one.limit.figure, one.limit.said,
                        figure(one.found), str(one.found.runs) if one.found else "0",
                        "; ".join(each) if len(each) > 1 else "",
                        one.said if n or len(found) == 1 else f"{one.said}; aim: {verdict_of(found)}"])
    return out


def harm(r: results.Results, aims: list[Aim]) -> list[list[str]]:
    """Stations of scenarios that lose more than a tenth of their goodput, of each pair that an aim compares."""
    out = [["method", "against", "stations × scenarios", "harmed", "by chance alone", "beyond chance", "worst"]]
    for which, old in dict.fromkeys((aim.method, aim.baseline) for aim in aims if aim.baseline):
        if not (found := verdict.stations(r, which, old)):
            continue
        worst = found[0]
        out.append([which.name, old.name, str(len(found)), str(sum(s.harmed for s in found)),
                    f"{sum(s.by_chance for s in found):.1f}", str(sum(s.sure for s in found)),
                    f"{worst.station} in {worst.scenario}: {table.interval(worst.change)}"])
    return out


def values(r: results.Results, shown: tuple[str, ...]) -> list[list[str]]:
    """What was measured, a row a scenario and method: mean over seeds, and half of its interval."""
    out = [["scenario", "method", *shown]]
    for name in r.scenarios:
        for which in r.methods:
            found = [verdict.mean(r, name, which, f) for f in shown]
            if any(found):
                out.append([name, which.name, *(table.figure(f, 3 if "jain" in key else 2,
                                                             100 if key.endswith("_ratio") else 1)
                                                for f, key in zip(found, shown))])
    return out


HARM = ("A station of a scenario is harmed when it loses more than 10 % of its goodput on average; beyond chance: its"
        " whole interval is a loss, too. Ratios (`_ratio`) are in %.")


def write(
    r: results.Results, aims: list[Aim], folder: pathlib.Path, policy: str, shown: tuple[str, ...] = SHOWN
) -> pathlib.Path:
    """Parquet, table.md and report.html; the page's path."""
    r.write(folder, bool(_judge(policy).get(KEEPS)))
    title = f"What the policy {policy} must show"
    how = [f"{len(r.found)} cells, {len(r.seeds)} seeds, made of {report.parts(r)}", report.INTERVALS, HARM]
    tables = [(heading, table.markdown(found)) for heading, found in (
        ("Aims", rows(r, aims)), ("Whom it costs", harm(r, aims)), ("Figures", values(r, shown)))]
    (folder / "table.md").write_text("\n".join(
        [f"# {title}\n", *(f"- {line}" for line in how), *(f"\n## {heading}\n\n{text}" for heading, text in tables)]))
    page = folder / "report.html"
    page.write_text("\n".join([
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(title)}</title>",
        f"<style>{report.STYLE}</style><h1>{html.escape(title)}</h1>",
        "<ul class=note>" + "".join(f"<li>{html.escape(line)}" for line in how) + "</ul>",
        *(f"<h2>{heading}</h2>{report.as_html(text)}" for heading, text in tables)]))
    return page


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="lab/evaluate/aims", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("policy", help="a folder of policies/")
    p.add_argument("--seeds", type=int, help="instead of those that the file asks for")
    p.add_argument("--aim", action="append", help="only this one (several times: these)")
    p.add_argument("--jobs", type=int, default=2, help="guests at a time (2)")
    p.add_argument("--build", type=pathlib.Path, default=play.BUILD,
                   help="folder in which results of cells are kept (build/evaluate): a run that was stopped goes on")
    p.add_argument("--report", type=pathlib.Path, help="folder for table, page and Parquet (BUILD/POLICY)")
    p.add_argument("--report-only", action="store_true", help="play nothing: judge what was played before")
    p.add_argument("--from", dest="kept", type=pathlib.Path, metavar="FOLDER",
                   help="play nothing: judge the results that an earlier report wrote to FOLDER")
    p.add_argument("--policy-file", type=pathlib.Path, help="numbers in force (policies/in-force/default.yaml)")
    p.add_argument("--override", dest="overrides", action="append", default=[], metavar="NAME=VALUE",
                   help="a number of the policy, instead of the file's")
    p.add_argument("--exporter", type=pathlib.Path, default=play.EXPORTER)
    return p.parse_args()


def main() -> int:
    args = arguments()
    try:
        aims, seeds, shown = load(args.policy)
        if unknown := set(args.aim or ()) - {aim.name for aim in aims}:
            raise AimError(f"{args.policy} has no aim {', '.join(sorted(unknown))}")
        aims = [aim for aim in aims if not args.aim or aim.name in args.aim]
        if args.kept:
            r, failures = results.Results.read(args.kept), {}
        else:
            how = command.settings(_settings(args))
            wanted = cells(aims, args.seeds or seeds)
            if not args.aim:
                wanted = list(dict.fromkeys([*wanted, *rivals(args.policy, args.seeds or seeds)]))
            play.kernel()
            failures = {} if args.report_only else command.run(wanted, how, args.jobs)
            r = results.Results.played(wanted, how, failures)
    except (AimError, command.bundle.BundleMistake, ValueError) as error:
        print(f"aims: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("aims: interrupted; what was played is kept, and the same command goes on from there", file=sys.stderr)
        return 130
    print("\n" + table.markdown(rows(r, aims)) + "\n" + table.markdown(harm(r, aims)))
    if args.report or not args.kept:
        print(write(r, aims, args.report or args.build / args.policy, args.policy, shown))
    return 1 if failures else 0


def _settings(args: argparse.Namespace) -> argparse.Namespace:
    """As of lab/evaluate/run, whose other parts a policy's aims do not vary."""
    given = {f.name: f.default for f in dataclasses.fields(play.Settings)}
    return argparse.Namespace(**given | {
        "exporter": args.exporter, "build": args.build, "overrides": args.overrides, "window_model": None,
        "policy": args.policy_file or command.bundle.DEFAULT_POLICY})


if __name__ == "__main__":
    sys.exit(main())
