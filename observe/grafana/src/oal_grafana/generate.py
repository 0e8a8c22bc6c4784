"""Write the JSON of the dashboards and the alert rules, or say which are stale."""
import argparse
import sys

from oal_grafana import alerts
from oal_grafana.board import text
from oal_grafana.dashboards import arriving, congested, control, home, hosts, model, platform, runbooks
from oal_grafana.queries import DASHBOARDS, HOME, RULES

MEND = "make -C observe/grafana gen"


def files() -> dict:
    """Content by path."""
    made = [m.board().json() for m in (home, arriving, congested, model, control, hosts, platform, runbooks)]
    return {DASHBOARDS / f"{board['uid']}.json": text(board) for board in made} | {
        RULES: alerts.text(made, runbooks.pages())
    }


def stale() -> list[str]:
    """Files that are not what the builders make, and files that no builder makes."""
    made = files()
    wrong = [path for path, content in made.items() if not path.exists() or path.read_text() != content]
    return [
        str(path.relative_to(HOME))
        for path in (*wrong, *(path for path in sorted(DASHBOARDS.glob("*.json")) if path not in made))
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is stale")
    if parser.parse_args().check:
        old = stale()
        if old:
            print(f"stale: {', '.join(old)}; `{MEND}` mends it", file=sys.stderr)
        return 1 if old else 0
    for path, content in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
