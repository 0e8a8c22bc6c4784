"""ClickHouse over HTTP, as a user that may only read. Nothing but the standard library."""
import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass


class QueryError(Exception):
    """The server refused a query; the text is the server's."""


@dataclass(frozen=True)
class Answer:
    names: list[str]
    types: list[str]
    rows: list[list]
    ms: float
    read_rows: int


class ClickHouse:
    def __init__(self, url: str, user: str, password: str = "", timeout_s: float = 60):
        self._url, self._timeout_s = url, timeout_s
        self._login = base64.b64encode(f"{user}:{password}".encode()).decode()

    def ask(self, sql: str) -> Answer:
        # Without the wait an error in the middle of a result arrives inside an answer of status 200.
        settings = {
            "default_format": "JSONCompact", "wait_end_of_query": 1, "output_format_json_quote_64bit_integers": 0,
            "output_format_json_quote_denormals": 1
        }
        request = urllib.request.Request(f"{self._url}/?{urllib.parse.urlencode(settings)}", data=sql.encode(),
                                         headers={"Authorization": f"Basic {self._login}"})
        start = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as response:
                made = json.load(response)
        except urllib.error.HTTPError as error:
            raise QueryError(error.read().decode(errors="replace").strip()[:1500]) from None
        except OSError as error:
            raise QueryError(f"{self._url} does not answer: {error}") from None
        return Answer([c["name"] for c in made["meta"]], [c["type"] for c in made["meta"]], made["data"],
                      (time.monotonic() - start) * 1000, made["statistics"]["rows_read"])
