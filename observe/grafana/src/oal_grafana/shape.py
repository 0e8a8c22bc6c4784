"""Whether an answer is what a panel of its kind can draw."""
import re

from oal_grafana.clickhouse import Answer
from oal_grafana.queries import Query

#: Types that every plugin from 3.3 on turns into a number or a text; enums, LowCardinality numbers and
#: SimpleAggregateFunction came later or never.
_NUMBER = re.compile(r"(Nullable\()?(U?Int(8|16|32|64)|Float(32|64))\)?\Z")
_TEXT = re.compile(r"(String|LowCardinality\(String\)|Nullable\(String\)|LowCardinality\(Nullable\(String\)\))\Z")
_MOMENT = re.compile(r"(Nullable\()?DateTime(64)?(\(.*\))?\)?\Z")


def kind(column_type: str) -> str:
    for name, pattern in (("number", _NUMBER), ("text", _TEXT), ("time", _MOMENT)):
        if pattern.match(column_type):
            return name
    return "other"


def wrong(query: Query, answer: Answer) -> str | None:
    """What is wrong with the answer's columns and rows; None if nothing."""
    kinds = [kind(t) for t in answer.types]
    if "other" in kinds:
        i = kinds.index("other")
        return f"column {answer.names[i]} has type {answer.types[i]}, which not every version of the plugin can read"
    if query.kind == "variable":
        return None if kinds == ["text"] else f"a variable wants one column of text, not {kinds}"
    if query.kind == "annotation":
        return None if kinds[
            0] == "time" and "text" in answer.names else "an annotation wants a time first and a column `text`"
    if query.kind == "alert":
        numbers = kinds.count("number")
        return (
            None if numbers == 1 and "time" not in kinds else f"an alert rule wants one number and labels, not {kinds}"
        )
    if query.is_series:
        return _series(answer, kinds)
    if query.kind in ("stat", "gauge"):
        return None if kinds.count(
            "number") == 1 and "time" not in kinds else f"a figure wants one number and at most names, not {kinds}"
    if query.kind == "barchart":
        return None if kinds[0] == "text" and set(
            kinds[1:]) == {"number"} else f"a bar chart wants a text and numbers, not {kinds}"
    return None


def _series(answer: Answer, kinds: list[str]) -> str | None:
    if kinds[0] != "time" or answer.names[0] != "time" or kinds.count("time") != 1:
        return f"a series wants one time, first and named `time`, not {list(zip(answer.names, kinds))}"
    if "number" not in kinds:
        return "a series wants a number"
    times = [row[0] for row in answer.rows]
    if times != sorted(times):
        return "a series must be in order of time"
    labels = [i for i, k in enumerate(kinds) if k in ("time", "text")]
    keys = {tuple(row[i] for i in labels) for row in answer.rows}
    return None if len(keys) == len(answer.rows) else "two rows have the same time and labels"
