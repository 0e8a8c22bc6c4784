"""A ClickHouse server out of the chdb-core wheel.

The wheel's extension links clickhouse-local with ClickHouse's own HTTP and native-protocol handlers, and
`SYSTEM START LISTEN` opens them. The entry used (`_chdb.query` with a main query that never ends) is not documented,
so the wheel is pinned exactly and the tests start it for real.

The engine logs its own main session in as `default` without a password; that cannot be configured. So in
config/clickhouse/users.xml that user has only the right that MAIN_QUERIES need, and a quota of as many queries.
(The quota alone would not do: a scalar subquery of a query without tables is not counted. Nor would waiting in a query
that reads a pipe: that takes the right to read any file.)

usage: python -m oal_local.clickhouse_server DIRECTORY HTTP_URL PASSWORD_FILE
    DIRECTORY holds config.xml and users.xml; data goes to DIRECTORY/data. The URL and the password of `admin` are how a
    signal ends the main query, which is the graceful shutdown.

Exit codes: 0 after SIGTERM or SIGINT, 1 when the engine ended by itself.
"""
import importlib.machinery
import importlib.util
import os
import signal
import sys
import sysconfig
import threading
import urllib.error
import urllib.request
from pathlib import Path

MAIN_QUERIES = (
    "SYSTEM START LISTEN HTTP",
    "SYSTEM START LISTEN TCP",
    "SELECT count() FROM system.numbers WHERE sleepEachRow(0.2) SETTINGS max_block_size = 1, max_threads = 1",
)
END_MAIN_QUERY = "KILL QUERY WHERE user = '' SYNC"  # the embedded session has no name in the process list


def load_engine():
    """Load the extension alone: chdb/__init__.py would open a throw-away engine on the same path."""
    so = os.path.join(sysconfig.get_path("platlib"), "chdb", "_chdb.abi3.so")
    if not os.path.exists(so):
        sys.exit(f"clickhouse: {so} is missing; run `local/oal-local setup` (it installs chdb-core)")
    spec = importlib.util.spec_from_file_location("_chdb", so, loader=importlib.machinery.ExtensionFileLoader("_chdb", so))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def end_main_query(url: str, password_file: str, finished: threading.Event) -> None:
    """Kill the main query, again while it has not begun; returns when the engine has ended."""
    request = urllib.request.Request(url, data=END_MAIN_QUERY.encode(), headers={
        "X-ClickHouse-User": "admin", "X-ClickHouse-Key": Path(password_file).read_text().strip()})
    while not finished.is_set():
        try:
            urllib.request.urlopen(request, timeout=10).close()
        except urllib.error.HTTPError as error:
            print(f"clickhouse: stopping: {error.read(500).decode(errors='replace')}", file=sys.stderr, flush=True)
        except OSError:
            pass  # the port is not open yet, or closed already
        finished.wait(0.2)


def serve(directory: str, url: str, password_file: str) -> int:
    """Run the server in DIRECTORY until a signal comes; the exit code."""
    engine = load_engine()
    os.chdir(directory)  # clickhouse-local reads ./config.xml
    asked_to_stop = threading.Event()
    finished = threading.Event()

    def run():
        try:
            # The format named here becomes the default of HTTP answers as well: TabSeparated is the server's own default.
            engine.query("; ".join(MAIN_QUERIES), "TabSeparated", path=os.path.join(directory, "data"))
        except BaseException as error:  # the engine raises its own types; whatever it is ends the process
            if not asked_to_stop.is_set():
                print(f"clickhouse: the engine failed: {error}", file=sys.stderr, flush=True)
        finally:
            finished.set()

    threading.Thread(target=run, daemon=True).start()
    # clickhouse-local installs its own handlers while it starts, so ours are put back on every turn of the loop.
    while not finished.is_set() and not asked_to_stop.is_set():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: asked_to_stop.set())
        finished.wait(0.5)
    if asked_to_stop.is_set():
        end_main_query(url, password_file, finished)
        return 0
    return 1


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    code = serve(os.path.abspath(sys.argv[1]), *sys.argv[2:])
    sys.stderr.flush()
    os._exit(code)  # the engine's static destructors crash in a normal interpreter exit
