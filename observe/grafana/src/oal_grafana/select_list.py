"""Names of the columns of a SELECT, read from its text: what a panel needs to know of its query before it is asked."""
import re

_TOKEN = re.compile(
    r"""--[^\n]*|'(?:\\.|''|[^'\\])*'|`[^`]*`|[()\[\]]|\b(?:SELECT|DISTINCT|FROM|UNION)\b|,|\s+|[\w.$]+|.""", re.S)
_ALIAS = re.compile(r"\bAS\s+(`[^`]+`|\w+)\s*\Z")
_NAME = re.compile(r"(?:\w+\.)*(\w+)\s*\Z")


class SelectError(ValueError):
    """A statement whose columns do not all have a name that can be read."""


def columns(sql: str) -> list[str]:
    """Names in the list of the outermost SELECT, in order; of a UNION those of its first part."""
    depth, items, inside = 0, [""], False
    for token in _TOKEN.findall(sql):
        depth += (token in "([") - (token in ")]")
        if token.startswith("--"):
            continue
        if depth == 0 and token == "SELECT":
            inside = True
        elif depth == 0 and token in ("FROM", "UNION") and inside:
            break
        elif inside and depth == 0 and token == ",":
            items.append("")
        elif inside and not (depth == 0 and token == "DISTINCT"):
            items[-1] += token
    return [_name(item) for item in items]


def _name(item: str) -> str:
    found = _ALIAS.search(item) or _NAME.fullmatch(item.strip())
    if not found:
        raise SelectError(f"`{' '.join(item.split())}` needs a name: AS name")
    return found.group(1).strip("`")
