"""The ClickHouse server and its users."""
import os
import subprocess
import urllib.error
import urllib.request

from oal_local import passwords
from oal_local.errors import PlatformError
from oal_local.paths import CONFIG, REPO, State, python, write_private
from oal_local.settings import Settings, short_lived
from oal_local.template import fill

NAME = "clickhouse"
DATABASE = "oal"
USERS = REPO / "clickhouse" / "users"
SHARED_USERS = ("analyst", "grafana", "ingest", "telegraf")  # those in there; `admin` is the local server's own
#: Parts merged at once where `settings.short_lived()`: a table that gets a small part every 2 s merges each row
#: some 15 times in the first minutes, most of the server's CPU. 40 are far from the 1,000 at which inserts would wait.
PARTS_SHORT_LIVED = 40
MIGRATE = REPO / "clickhouse" / "migrate"
# that the server may have
ENVIRONMENT = {
    "PATH", "HOME", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "XDG_CACHE_HOME", "LD_LIBRARY_PATH",
    "OAL_CLICKHOUSE_UNCONFINED"
}


def url(settings: Settings) -> str:
    return f"http://127.0.0.1:{settings.ports['clickhouse_http']}"


def render(state: State, settings: Settings) -> None:
    server_bytes = settings.clickhouse_memory_mib << 20
    write_private(
        state.clickhouse / "config.xml",
        fill(CONFIG / "clickhouse" / "config.xml", data=state.clickhouse / "data", backups=state.clickhouse / "backups",
             log=state.clickhouse / "server.log", http_port=settings.ports["clickhouse_http"],
             memory_bytes=server_bytes, least_merged=PARTS_SHORT_LIVED if short_lived() else 0))
    write_private(
        state.clickhouse / "users.xml",
        fill(CONFIG / "clickhouse" / "users.xml", query_memory_bytes=server_bytes * 2 // 3,
             admin_sha256=passwords.sha256_hex(state, "admin")))
    # The server merges users.d/ into users.xml.
    shared = state.clickhouse / "users.d"
    shared.mkdir(exist_ok=True)
    for user in SHARED_USERS:
        write_private(shared / f"{user}.xml", (USERS / f"{user}.xml").read_text())


def prepare(state: State, settings: Settings) -> None:
    """Hand the server the password hashes that clickhouse/users/*.xml take from its environment, and of the caller's
    nothing but what it needs: who may ask anything can read /proc/self/environ (confine.py)."""
    for name in set(os.environ) - ENVIRONMENT:
        del os.environ[name]
    for user in SHARED_USERS:
        os.environ[f"OAL_{user.upper()}_PASSWORD_SHA256"] = passwords.sha256_hex(state, user)


def command(state: State, settings: Settings) -> list[str]:
    return [python(), "-m", "oal_local.clickhouse_server", str(state.clickhouse), url(settings),
            str(passwords.file(state, "admin"))]


def files(state: State, settings: Settings) -> list:
    return [
        state.clickhouse / "config.xml", state.clickhouse / "users.xml", *sorted(
            (state.clickhouse / "users.d").iterdir())
    ]


def since(us: int) -> str:
    """SQL: rows from that moment on (realtime µs)."""
    return f"ts >= fromUnixTimestamp64Micro({us})"


def query(state: State, settings: Settings, sql: str, user: str = "admin", timeout_s: float = 60) -> str:
    """Run one statement over HTTP; the answer as text (TabSeparated unless the statement says otherwise)."""
    # Without the wait an error in the middle of a result arrives as text inside an answer of status 200.
    request = urllib.request.Request(url(settings) + "/?wait_end_of_query=1", data=sql.encode(), headers={
        "X-ClickHouse-User": user, "X-ClickHouse-Key": passwords.read(state, user)})
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        raise PlatformError(
            f"ClickHouse refused `{sql[:200]}` of user {user}: {error.read().decode(errors='replace')[:2000]}"
        ) from None


def client(state: State, settings: Settings, user: str) -> dict:
    """The `clickhouse` section of a service's configuration."""
    return {"url": url(settings), "user": user, "password_file": str(passwords.file(state, user)), "database": DATABASE}


def ready(state: State, settings: Settings) -> bool:
    try:
        return query(state, settings, "SELECT 1", timeout_s=5) == "1\n"
    except (OSError, PlatformError):
        return False


def migrate(state: State, settings: Settings) -> None:
    """Run the schema migrations of clickhouse/."""
    if not MIGRATE.exists():
        raise PlatformError(
            f"{MIGRATE} is missing, so the schema cannot be made; use `--only` without clickhouse or `--no-migrate`")
    command = [
        str(MIGRATE), "--url",
        url(settings), "--user", "admin", "--password-file",
        str(passwords.file(state, "admin"))
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise PlatformError(f"migrating ClickHouse failed: `{' '.join(command)}` said\n{done.stdout[-3000:]}")
