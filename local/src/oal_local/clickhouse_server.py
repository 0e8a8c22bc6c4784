"""A ClickHouse server out of the chdb-core wheel.

The wheel's extension links clickhouse-local with ClickHouse's own HTTP and native-protocol handlers, and
`SYSTEM START LISTEN` opens them. The entry used (`_chdb.query` with a blocking main query) is not documented,
so the wheel is pinned exactly and the tests start it for real.

The engine logs its own main session in as `default` without a password; that cannot be configured. That user's quota
in config/clickhouse/users.xml is as many queries as this session makes (MAIN_QUERIES), so the name is of no use to
anyone else: the first query of another client is refused with QUOTA_EXCEEDED.

usage: python -m oal_local.clickhouse_server DIRECTORY      (holds config.xml and users.xml; data in DIRECTORY/data)

Exit codes: 0 after SIGTERM or SIGINT, 1 when the engine ended by itself.
"""
import importlib.machinery
import importlib.util
import os
import signal
import sys
import sysconfig
import threading

# The main session. It blocks in the last query, which reads a pipe: closing the pipe is the graceful shutdown.
MAIN_QUERIES = (
    "SYSTEM START LISTEN HTTP",
    "SYSTEM START LISTEN TCP",
    "SELECT * FROM file('/proc/self/fd/{fd}', 'LineAsString', 'line String') FORMAT Null",
)


def load_engine():
    """Load the extension alone: chdb/__init__.py would open a throw-away engine on the same path."""
    so = os.path.join(sysconfig.get_path("platlib"), "chdb", "_chdb.abi3.so")
    if not os.path.exists(so):
        sys.exit(f"clickhouse: {so} is missing; run `local/oal-local setup` (it installs chdb-core)")
    spec = importlib.util.spec_from_file_location("_chdb", so, loader=importlib.machinery.ExtensionFileLoader("_chdb", so))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def serve(directory: str) -> int:
    """Run the server in DIRECTORY until a signal comes; the exit code."""
    engine = load_engine()
    os.chdir(directory)  # clickhouse-local reads ./config.xml
    read_end, write_end = os.pipe()
    sql = "; ".join(MAIN_QUERIES).format(fd=read_end)
    asked_to_stop = threading.Event()
    finished = threading.Event()

    def run():
        try:
            # The format named here becomes the default of HTTP answers as well: TabSeparated is the server's own default.
            engine.query(sql, "TabSeparated", path=os.path.join(directory, "data"))
        except BaseException as error:  # the engine raises its own types; whatever it is ends the process
            print(f"clickhouse: the engine failed: {error}", file=sys.stderr, flush=True)
        finally:
            finished.set()

    def stop(*_):
        if not asked_to_stop.is_set():
            asked_to_stop.set()
            os.close(write_end)

    threading.Thread(target=run, daemon=True).start()
    # clickhouse-local installs its own handlers while it starts, so ours are put back on every turn of the loop.
    while not finished.is_set():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        finished.wait(0.5)
    return 0 if asked_to_stop.is_set() else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m oal_local.clickhouse_server DIRECTORY")
    code = serve(os.path.abspath(sys.argv[1]))
    sys.stderr.flush()
    os._exit(code)  # the engine's static destructors crash in a normal interpreter exit
