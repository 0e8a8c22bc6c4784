"""A ClickHouse server out of the chdb-core wheel.

The wheel's extension links clickhouse-local with ClickHouse's own HTTP handlers, and `SYSTEM START LISTEN` opens them.
The entry used (`_chdb.query` with a main query that never ends) is not documented, so the wheel is pinned exactly and
the tests start it for real.

The engine logs its own main session in as `default` without a password; that cannot be configured. clickhouse-local
lets whoever may ask anything at all read every file of its owner with the function `file`, which no grant forbids and
no quota counts. So
- the main session drops the database that is this user's default before it opens a port: nobody after it can begin a
  session as
  `default` (config/clickhouse/users.xml);
- the process gives up every folder but its own (confine.py), for `file` works for the users with a password as well.

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

from oal_local import confine

#: In the environment: TCP beside HTTP, for servers of a cluster that ask each other; config.xml then has a tcp_port.
LISTEN = "OAL_CLICKHOUSE_LISTEN"
MAIN_QUERIES = (
    "DROP DATABASE default",
    *(f"SYSTEM START LISTEN {protocol}" for protocol in os.environ.get(LISTEN, "HTTP").split()),
    "SELECT count() FROM system.numbers WHERE sleepEachRow(0.2) SETTINGS max_block_size = 1, max_threads = 1",
)
#: What the engine reads outside its folder, none of it secret: libraries, time zones, names of hosts, figures of the
#: machine.
READABLE = ("/usr", "/lib", "/lib64", "/etc/localtime", "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf",
            "/etc/ssl/certs", "/proc/self",
            *(f"/proc/{name}"
              for name in ("cpuinfo", "meminfo", "stat", "loadavg", "uptime", "vmstat", "diskstats", "net", "sys",
                           "cgroups", "filesystems", "mounts")), "/sys", "/dev/urandom", "/dev/random", "/dev/zero")
WRITABLE = ("/dev/null",)
LEAST_LANDLOCK = 2
UNCONFINED = "OAL_CLICKHOUSE_UNCONFINED"
END_MAIN_QUERY = "KILL QUERY WHERE user = '' SYNC"  # the embedded session has no name in the process list


def load_engine():
    """Load the extension alone: chdb/__init__.py would open a throw-away engine on the same path."""
    so = os.path.join(sysconfig.get_path("platlib"), "chdb", "_chdb.abi3.so")
    if not os.path.exists(so):
        sys.exit(f"clickhouse: {so} is missing; run `platform/local/oal-local setup` (it installs chdb-core)")
    spec = importlib.util.spec_from_file_location("_chdb", so,
                                                  loader=importlib.machinery.ExtensionFileLoader("_chdb", so))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def confine_to(directory: str) -> None:
    """Nothing but this folder from here on."""
    if os.environ.get(UNCONFINED):
        return
    if confine.version() < LEAST_LANDLOCK:
        sys.exit(
            f"clickhouse: this kernel has no Landlock version {LEAST_LANDLOCK} (Linux 5.19, and `landlock` in"
            " /sys/kernel/security/lsm), without which every local user could read every file of yours through the"
            f" database; on a machine of your own or in a container set {UNCONFINED}=1"
        )
    # data may be a link
    confine.to((*READABLE, sys.prefix, sys.base_prefix), (*WRITABLE, directory, os.path.join(directory, "data")))


def end_main_query(url: str, password: str, finished: threading.Event) -> None:
    """Kill the main query, again while it has not begun; returns when the engine has ended."""
    request = urllib.request.Request(url, data=END_MAIN_QUERY.encode(),
                                     headers={"X-ClickHouse-User": "admin", "X-ClickHouse-Key": password})
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
    password = Path(password_file).read_text().strip()
    confine_to(directory)
    os.chdir(directory)  # clickhouse-local reads ./config.xml
    asked_to_stop = threading.Event()
    finished = threading.Event()

    def run():
        try:
            # The format named here becomes the default of HTTP answers as well: TabSeparated is the server's own
            # default.
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
        end_main_query(url, password, finished)
        return 0
    return 1


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    code = serve(os.path.abspath(sys.argv[1]), *sys.argv[2:])
    sys.stderr.flush()
    os._exit(code)  # the engine's static destructors crash in a normal interpreter exit
