"""Telegraf, which reads how every part of the platform is and writes it to ClickHouse."""
import os
import subprocess

from oal_local import clickhouse, jolokia, mlflow, passwords, push, registry, trainer
from oal_local.errors import PlatformError
from oal_local.paths import REPO, State, write_private
from oal_local.settings import Settings

NAME = "telegraf"
FOLDER = REPO / "observe" / "telegraf"
STALE_S = 60  # several readings


def program() -> str:
    """Its path; builds it where that has not been done."""
    made = subprocess.run([str(FOLDER / "build")], stdout=subprocess.PIPE, text=True)
    if made.returncode != 0:
        raise PlatformError(f"building Telegraf failed: run {FOLDER / 'build'}")
    return made.stdout.strip()


def environment(state: State, settings: Settings) -> dict[str, str]:
    """The variables of observe/telegraf/README.md."""
    return {
        "OAL_WATCH": " ".join(settings.telegraf_watch),
        "OAL_TELEGRAF_INTERVAL": settings.telegraf_interval,
        "OAL_TELEGRAF_STATE": str(state.dir / NAME),
        "OAL_CLICKHOUSE_URL": clickhouse.url(settings),
        "OAL_CLICKHOUSE_PASSWORD_FILE": str(passwords.file(state, NAME)),
        "OAL_JOLOKIA_PASSWORD_FILE": str(passwords.token_file(state, "jolokia.password")),
        "OAL_METRICS_TOKEN_FILE": str(passwords.token_file(state, "metrics.token")),
        "OAL_KAFKA_JOLOKIA_URLS": jolokia.url(settings, "kafka"),
        "OAL_JOBMANAGER_JOLOKIA_URLS": jolokia.url(settings, "jobmanager"),
        "OAL_TASKMANAGER_JOLOKIA_URLS": jolokia.url(settings, "taskmanager"),
        "OAL_MLFLOW_URLS": mlflow.url(settings),
        "OAL_TRAINER_URLS": trainer.url(settings),
        "OAL_REGISTRY_URLS": registry.url(settings),
        "OAL_PUSH_URLS": push.admin_url(settings),
        "OAL_CA_FILE": str(state.pki / "ca.crt"),
        "OAL_CERTIFICATES": str(state.pki / "*.crt"),
    }


def environment_file(state: State):
    return state.run / "telegraf.environment"


def render(state: State, settings: Settings) -> None:
    write_private(environment_file(state),
                  "".join(f"{name}={value}\n" for name, value in environment(state, settings).items()))


def prepare(state: State, settings: Settings) -> None:
    os.environ.update(environment(state, settings), TELEGRAF=program())


def command(state: State, settings: Settings) -> list[str]:
    return [str(FOLDER / "oal-telegraf")]


def files(state: State, settings: Settings) -> list:
    return [
        environment_file(state), FOLDER / "oal-telegraf", FOLDER / "telegraf.conf", *sorted(
            (FOLDER / "telegraf.d").glob("*.conf")),
        passwords.file(state, NAME),
        passwords.token_file(state, "jolokia.password"),
        passwords.token_file(state, "metrics.token")
    ]


def ready(state: State, settings: Settings) -> bool:
    """Its rows arrive."""
    try:
        rows = clickhouse.query(
            state, settings,
            "SELECT count() FROM oal.platform_metric WHERE name = 'internal_write' AND ts > now64(3) - "
            f"INTERVAL {STALE_S} SECOND", timeout_s=5)
    except (OSError, PlatformError):
        return False
    return int(rows) > 0
