"""A ClickHouse server of one's own: real HTTP interface, free loopback port, data in a folder that the caller gives.

The server is the one inside the chdb-core package: clickhouse-local that is told to listen. It ends when its standard
input closes, so it cannot outlive the process that started it, not even one that was killed.
"""

from __future__ import annotations

import base64
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

# Runs in the child. chdb/__init__.py is passed by on purpose: it would open a second engine on the same folder.
CHILD = """
import glob, importlib.machinery, importlib.util, os, sys, sysconfig
so = glob.glob(os.path.join(sysconfig.get_path("platlib"), "chdb", "_chdb.abi3.so"))[0]
spec = importlib.util.spec_from_file_location("_chdb", so, loader=importlib.machinery.ExtensionFileLoader("_chdb", so))
engine = importlib.util.module_from_spec(spec)
spec.loader.exec_module(engine)
os.chdir(sys.argv[1])  # clickhouse-local reads ./config.xml
# The main query waits for the end of standard input; that ends the server in order.
wait = "SELECT * FROM file('/proc/self/fd/0', 'LineAsString', 'l String') FORMAT Null"
engine.query(f"SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP; {wait}", "TabSeparated", path="data")
os._exit(0)
"""

_CONFIG = """<clickhouse>
  <path>{home}/data/</path>
  <listen_host>127.0.0.1</listen_host>
  <http_port>{port}</http_port>
  <tcp_port>{native_port}</tcp_port>
  {cluster}
  <users_config>users.xml</users_config>
  <user_directories><users_xml><path>users.xml</path></users_xml></user_directories>
  <max_server_memory_usage>4000000000</max_server_memory_usage>
  <background_pool_size>4</background_pool_size>
  <background_schedule_pool_size>8</background_schedule_pool_size>
  <log-level>warning</log-level>
  <logger><level>warning</level><log>{home}/server.log</log></logger>
</clickhouse>
"""

_USERS = """<clickhouse>
  <profiles><default>
    <max_threads>2</max_threads>
    <!-- Machine code pays where there are many rows; making it takes more than a test's queries do. -->
    <compile_expressions>{compiled:d}</compile_expressions>
    <compile_aggregate_expressions>{compiled:d}</compile_aggregate_expressions>
    <compile_sort_description>{compiled:d}</compile_sort_description>
    <!-- A power cut loses a test; waiting for the disk at every CREATE TABLE takes most of a migration's time. -->
    <fsync_metadata>0</fsync_metadata>
    <distributed_foreground_insert>1</distributed_foreground_insert>
    <distributed_product_mode>global</distributed_product_mode>
  </default></profiles>
  <users><default>
    <password></password>
    <networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile>
    <quota>default</quota>
  </default></users>
  <quotas><default/></quotas>
</clickhouse>
"""


class QueryError(Exception):
    """The server refused a query; the text is the server's."""


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """`start()` returns once the server answers; `stop()` ends it in order, `kill()` does not. `compiled`: expressions
    become machine code, as on a server that nobody configured.
    """

    def __init__(self, home: Path, extra_users: list[Path] = (), environment: dict[str, str] | None = None,
                 compiled: bool = False):
        self.home = Path(home)
        self.port, self.native_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = environment
        self._process: subprocess.Popen | None = None
        (self.home / "users.d").mkdir(parents=True, exist_ok=True)
        self.join([])
        (self.home / "users.xml").write_text(_USERS.format(compiled=compiled))
        for path in extra_users:
            (self.home / "users.d" / path.name).write_text(path.read_text())

    def join(self, servers: list["Server"], secret: str = "of the tests") -> None:
        """Before the start: be one shard of cluster `oal`, which these are (none: of no cluster)."""
        self.cluster = servers or [self]
        shards = "".join(f"<shard><replica><host>127.0.0.1</host><port>{s.native_port}</port></replica></shard>"
                         for s in servers)
        cluster = f"<remote_servers><oal><secret>{secret}</secret>{shards}</oal></remote_servers>" if servers else ""
        (self.home / "config.xml").write_text(
            _CONFIG.format(home=self.home, port=self.port, native_port=self.native_port, cluster=cluster))

    def start(self, timeout_s: float = 120) -> "Server":
        self.launch()
        return self.wait(timeout_s)

    def launch(self) -> None:
        """Start its process; it does not answer yet."""
        out = open(self.home / "output.log", "ab")
        self._process = subprocess.Popen([sys.executable, "-c", CHILD, str(self.home)], stdin=subprocess.PIPE,
                                         stdout=out, stderr=out, env=self._environment)

    def wait(self, timeout_s: float = 120) -> "Server":
        """Until it answers."""
        deadline = time.monotonic() + timeout_s
        while True:
            if self._process.poll() is not None:
                raise RuntimeError(f"ClickHouse ended while starting: {self.log()}")
            try:
                self.query("SELECT 1")
                return self
            except (OSError, QueryError):
                if time.monotonic() > deadline:
                    self.kill()
                    raise RuntimeError(f"ClickHouse not ready after {timeout_s} s: {self.log()}") from None
                time.sleep(0.05)

    def stop(self) -> None:
        if self._process and self._process.poll() is None:
            self._process.stdin.close()
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def keep_expired(self) -> None:
        """From here on nothing expires in the tables that there are: tests and samples have rows of fixed days."""
        self.query("SYSTEM STOP TTL MERGES")

    def log(self) -> str:
        return "".join((self.home / n).read_text(errors="replace")[-3000:] for n in ("output.log", "server.log")
                       if (self.home / n).exists())

    def query(self, sql: str, data: bytes | None = None, user: str | None = None, password: str = "",
              timeout_s: float = 300, **settings) -> str:
        """Run one statement. `data` is the body of an INSERT; settings go with the query."""
        parameters = {k: str(v) for k, v in settings.items()}
        if data is not None:
            parameters["query"] = sql
        request = urllib.request.Request(self.url + "/?" + urllib.parse.urlencode(parameters),
                                         data=sql.encode() if data is None else data)
        if user:
            request.add_header("Authorization", "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as e:
            raise QueryError(e.read().decode(errors="replace")) from None

    def rows(self, sql: str, **settings) -> list[list[str]]:
        return [line.split("\t") for line in self.query(sql, **settings).splitlines()]
