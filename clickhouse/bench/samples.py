"""Write the answers of README.md's questions anew, from the data of dataset.py in a server of its own. `make samples`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(FOLDER / "bench"), str(FOLDER / "tests")]

import dataset  # noqa: E402
import questions  # noqa: E402
from server import Server  # noqa: E402

FORMAT = (
    "FORMAT PrettySpaceNoEscapesMonoBlock SETTINGS output_format_pretty_row_numbers = 0, "
    "output_format_pretty_single_large_number_tip_threshold = 0, output_format_pretty_squash_consecutive_ms = 0"
)


def answer(query, q: questions.Question, database: str) -> str:
    """The answer as README.md shows it. What depends on the time of asking is left out or asked of the fixed day."""
    sql = q.sql.strip().rstrip(";").replace("oal.", f"{database}.")
    if "within_s" in sql:
        sql = re.sub(r"within_s = \d+", "within_s = 4000000000", sql).replace("SELECT *", "SELECT * EXCEPT (age_s)")
    lines = query(f"{sql} {FORMAT}").split("\n")
    return "".join(line.rstrip() + "\n" for line in lines if line.strip())


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="oal-clickhouse-samples-") as home:
        server = Server(Path(home)).start()
        try:
            subprocess.run([sys.executable, str(FOLDER / "migrate"), "--url", server.url], check=True,
                           stdout=subprocess.DEVNULL)
            server.keep_expired()
            dataset.fill(lambda sql: server.query(sql, database="oal"))
            text = questions.README.read_text()
            for q in reversed(questions.load()):
                start, end = q.span
                block = re.sub(r"\n```text\n.*?```\n\Z", "", text[start:end], flags=re.S)
                text = text[:start] + block + "\n```text\n" + answer(server.query, q, "oal") + "```\n" + text[end:]
            questions.README.write_text(text)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
