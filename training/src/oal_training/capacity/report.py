"""The figures of `oal-train capacity` as a table, and as they are committed."""

from __future__ import annotations

GROUPS = {"all": "all", "new": "data began within half a second", "moving": "PHY rate moved within a second"}


def interval(found: dict, percent: bool = False) -> str:
    """`.81 (.59 to 1.03)`; of a share, `+8 % (-9 to 26)`."""
    if percent:
        value, low, high = (round(100 * found[k]) for k in ("value", "low", "high"))
        return f"{value:+d} % ({low} to {high})"
    return f"{found['value']:.2f} ({found['low']:.2f} to {found['high']:.2f})"


def table(judged: list[dict]) -> str:
    """Markdown: a row for each horizon, group and kind of error."""
    lines = ["| ms ahead | samples of `test` | error | best rule on `validation` | its error | model's | taken off |",
             "|--:|---|---|---|--:|--:|--:|"]
    for one in judged:
        for name, group in one["groups"].items():
            for kind in ("ratio", "rate"):
                at = group[kind]
                lines.append(
                    f"| {one['horizon_ms']} | {GROUPS[name]}, {group['samples']} | {kind} | {at['rival']} |"
                    f" {interval(at['errors'][at['rival']])} | {interval(at['errors']['model'])} |"
                    f" {interval(at['gain'], percent=True)}{' *' if at['clear'] else ''} |")
    return "\n".join(lines)


def rounded(value, digits: int = 4):
    """The same with floats of so many digits after the point."""
    if isinstance(value, dict):
        return {k: rounded(v, digits) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v, digits) for v in value]
    return round(value, digits) if isinstance(value, float) else value
