"""Grafana, where one is installed: GRAFANA_HOME, or `grafana` or `grafana-server` on PATH. Provisioned from
observe/grafana/.
"""
import json
import os
import shutil
import urllib.request
from pathlib import Path

from oal_local import passwords
from oal_local.errors import PlatformError
from oal_local.paths import REPO, State, write_private
from oal_local.settings import Settings

NAME = "grafana"
OBSERVE = REPO / "observe" / "grafana"
PLUGIN = "grafana-clickhouse-datasource"
SECRETS = "/run/secrets/oal"  # where the files of observe/grafana expect them
# of the Debian and RPM packages
PACKAGE_HOME, PACKAGE_PLUGINS = Path("/usr/share/grafana"), Path("/var/lib/grafana/plugins")
HOW_TO_GET = (
    "Grafana is not installed here (9.3 or later: its Debian or RPM package, or its tarball with GRAFANA_HOME=…; then"
    f" `grafana cli plugins install {PLUGIN}`). Everything else is served; the dashboards' queries can be run without"
    " it: observe/grafana/check"
)


def home() -> Path | None:
    """The folder of the installation (with bin/, conf/, public/), None where there is none."""
    named = os.environ.get("GRAFANA_HOME")
    if named:
        if not (Path(named) / "conf" / "defaults.ini").is_file():
            raise PlatformError(f"GRAFANA_HOME={named} holds no Grafana: there is no conf/defaults.ini in it")
        return Path(named)
    for program in ("grafana", "grafana-server"):
        found = shutil.which(program)
        for folder in (Path(found).resolve().parent.parent, PACKAGE_HOME) if found else ():
            if (folder / "conf" / "defaults.ini").is_file():
                return folder
    return None


def installed() -> bool:
    """Whether there is a Grafana to start; a wrong GRAFANA_HOME is reported when it is to start."""
    return bool(os.environ.get("GRAFANA_HOME")) or home() is not None


def _program(folder: Path) -> list[str]:
    """From 9.4 on there is one program with a subcommand; before, grafana-server."""
    for name, arguments in (("grafana", ["server"]), ("grafana-server", [])):
        path = folder / "bin" / name
        found = str(path) if path.is_file() else shutil.which(name) if folder == PACKAGE_HOME else None
        if found:
            return [found, *arguments]
    raise PlatformError(f"neither grafana nor grafana-server is in {folder / 'bin'}")


def plugins(folder: Path) -> Path:
    """The folder of plugins that has the ClickHouse plugin."""
    places = [Path(p) for p in (os.environ.get("GF_PATHS_PLUGINS"), folder / "data" / "plugins", PACKAGE_PLUGINS) if p]
    for place in places:
        if (place / PLUGIN).is_dir():
            return place
    raise PlatformError(
        f"Grafana has no plugin {PLUGIN} in {', '.join(map(str, places))}; `grafana cli --pluginsDir {places[0]}"
        f" plugins install {PLUGIN}`, or name its folder in GF_PATHS_PLUGINS"
    )


def url(settings: Settings) -> str:
    return f"http://127.0.0.1:{settings.ports['grafana']}"


def password_file(state: State) -> Path:
    return passwords.file(state, "admin", "grafana")


def folder(state: State) -> Path:
    return state.dir / "grafana"


def render(state: State, settings: Settings) -> None:
    """The files of observe/grafana with this instance's secrets."""
    if home() is None:
        return
    sources = {
        OBSERVE / "grafana.ini": Path("grafana.ini"),
        **{path: path.relative_to(OBSERVE) for path in sorted((OBSERVE / "provisioning").rglob("*.yaml"))}
    }
    for source, target in sources.items():
        made = folder(state) / target
        made.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text().replace(f"{SECRETS}/ca.crt", str(state.pki / "ca.crt"))
        write_private(made, text.replace(SECRETS, str(state.secrets)))


def environment(state: State, settings: Settings) -> dict[str, str]:
    here = folder(state)
    return {
        "OAL_CLICKHOUSE_HOST": "127.0.0.1",
        "OAL_CLICKHOUSE_PORT": str(settings.ports["clickhouse_http"]),
        "OAL_CLICKHOUSE_PROTOCOL": "http",
        "OAL_CLICKHOUSE_SECURE": "false",
        "OAL_CLICKHOUSE_OWN_CA": "false",
        "OAL_GRAFANA_DASHBOARDS": str(OBSERVE / "dashboards"),
        "GF_SERVER_HTTP_ADDR": "127.0.0.1",
        "GF_SERVER_HTTP_PORT": str(settings.ports["grafana"]),
        "GF_SERVER_ROOT_URL": url(settings),
        "GF_SECURITY_COOKIE_SECURE": "false",
        "GF_SECURITY_STRICT_TRANSPORT_SECURITY": "false",  # loopback, without TLS
        "GF_PATHS_DATA": str(here / "data"),
        "GF_PATHS_LOGS": str(state.logs),
        "GF_PATHS_PROVISIONING": str(here / "provisioning"),
        "GF_PATHS_PLUGINS": str(plugins(home())),
    }


def prepare(state: State, settings: Settings) -> None:
    os.environ.update(environment(state, settings))


def command(state: State, settings: Settings) -> list[str]:
    there = home()
    return [*_program(there), f"--homepath={there}", f"--config={folder(state) / 'grafana.ini'}"]


def files(state: State, settings: Settings) -> list:
    here = folder(state)
    return [
        here / "grafana.ini", *sorted((here / "provisioning").rglob("*.yaml")), *sorted(
            (OBSERVE / "dashboards").glob("*.json")),
        password_file(state)
    ]


def ready(state: State, settings: Settings) -> bool:
    try:
        with urllib.request.urlopen(f"{url(settings)}/api/health", timeout=3) as answer:
            return json.load(answer).get("database") == "ok"
    except (OSError, ValueError):
        return False
