"""Run every query of the dashboards and alert rules against a platform that runs, and print what each returned.

Exit 0 when each returned rows of the shape that its panel needs, 1 when one returned nothing, something else, or
failed. A query that a healthy platform may have no rows for says why in its first line (`-- may be empty: …`); the
table repeats it.
"""
import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from oal_grafana import macros, shape
from oal_grafana.clickhouse import Answer, ClickHouse, QueryError
from oal_grafana.queries import Query, boards, everything


@dataclass(frozen=True)
class Result:
    board: str
    panel: str
    kind: str
    rows: int
    ms: float
    read_rows: int
    verdict: str  # ok, empty (with a reason), EMPTY, WRONG, FAILED
    said: str = ""

    @property
    def good(self) -> bool:
        return self.verdict in ("ok", "empty")


class Asker:
    """Asks a query as Grafana would, for one range of time."""

    def __init__(self, clickhouse: ClickHouse, from_s: int, to_s: int):
        self.clickhouse, self.from_s, self.to_s = clickhouse, from_s, to_s

    def expand(self, query: Query, values: dict[str, list[str]]) -> str:
        start = self.to_s - query.span_s if query.span_s else self.from_s
        return macros.expand(query.sql, values, start, self.to_s, macros.interval_s(self.to_s - start, query.finest_s))

    def answer(self, query: Query, values: dict[str, list[str]]) -> Answer:
        return self.clickhouse.ask(self.expand(query, values))

    def choose_all(self, board: dict) -> dict[str, list[str]]:
        """Values of the dashboard's variables when everything is chosen, and the first of those that take one value."""
        values: dict[str, list[str]] = {}
        for variable in board["templating"]["list"]:
            rows = self.answer(Query(board["title"], variable["name"], "variable", variable["query"]), values).rows
            values[variable["name"]] = [row[0] for row in rows][:None if variable["multi"] else 1]
        return values


def judge(query: Query, answer: Answer) -> tuple[str, str]:
    if said := shape.wrong(query, answer):
        return "WRONG", said
    empty = not answer.rows or (query.kind in ("stat", "gauge", "alert") and all(v is None for row in answer.rows
                                                                                 for v in row))
    if not empty:
        return "ok", ""
    return ("empty", query.may_be_empty) if query.may_be_empty else ("EMPTY", "no rows")


def run(asker: Asker) -> list[Result]:
    chosen = {}
    results = []
    for board in boards().values():
        try:
            chosen[board["title"]] = asker.choose_all(board)
        except QueryError:
            # its row in the table says why
            chosen[board["title"]] = {v["name"]: [] for v in board["templating"]["list"]}
    for query in everything():
        try:
            answer = asker.answer(query, chosen.get(query.board, {}))
            verdict, said = judge(query, answer)
            results.append(
                Result(query.board, query.name, query.kind, len(answer.rows), answer.ms, answer.read_rows, verdict,
                       said))
        except (QueryError, macros.MacroError) as error:
            results.append(Result(query.board, query.name, query.kind, 0, 0, 0, "FAILED", str(error)))
    return results


def table(results: list[Result]) -> str:
    lines = [f"{'dashboard':<33} {'panel':<46} {'kind':<14} {'rows':>6} {'ms':>7}  {'verdict'}"]
    for r in results:
        lines.append(
            f"{r.board[:33]:<33} {r.panel[:46]:<46} {r.kind:<14} {r.rows:>6} {r.ms:>7.0f} "
            f" {r.verdict}{': ' + r.said if r.said else ''}"
        )
    bad = sum(not r.good for r in results)
    slowest = max(results, key=lambda r: r.ms)
    lines.append(
        f"{len(results)} queries, {sum(r.verdict == 'ok' for r in results)} with data,"
        f" {sum(r.verdict == 'empty' for r in results)} rightly empty, {bad} wrong;"
        f" {sum(r.ms for r in results) / 1000:.1f} s in all, slowest {slowest.ms:.0f} ms ({slowest.panel})"
    )
    return "\n".join(lines)


def moment(text: str, now_s: float) -> int:
    """`now`, `now-2h`, seconds since 1970, or an ISO time (UTC unless it says otherwise)."""
    if text == "now":
        return int(now_s)
    if text.startswith("now-"):
        return int(now_s) - macros.seconds(text[4:])
    if text.isdigit():
        return int(text)
    when = datetime.fromisoformat(text)
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", required=True, help="ClickHouse over HTTP, such as http://127.0.0.1:8123")
    parser.add_argument("--user", default="grafana")
    parser.add_argument("--password-file", type=Path, help="file with the user's password (default: none)")
    parser.add_argument("--from", dest="start", default="now-15m",
                        help="now-2h, seconds, or an ISO time (default: now-15m)")
    parser.add_argument("--to", dest="end", default="now")


def asker(options: argparse.Namespace) -> Asker:
    password = options.password_file.read_text().strip() if options.password_file else ""
    now = time.time()
    return Asker(ClickHouse(options.url, options.user, password), moment(options.start, now), moment(options.end, now))


def main() -> int:
    parser = argparse.ArgumentParser(prog="check", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there too")
    options = parser.parse_args()
    results = run(asker(options))
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in results], indent=1) + "\n")
    return 0 if all(r.good for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
