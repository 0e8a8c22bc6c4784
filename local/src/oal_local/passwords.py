"""Passwords and tokens: random, made once, one file of mode 0600 each in the state folder."""
import hashlib
import secrets
from pathlib import Path

from oal_local.paths import State, write_private

CLICKHOUSE_USERS = ("admin", "ingest", "analyst", "telegraf")
MLFLOW_USERS = ("admin", "trainer", "model-registry")
TOKENS = ("push-admin.token", "mlflow-webhook.secret", "jolokia.password", "metrics.token")


def file(state: State, user: str, of: str = "clickhouse") -> Path:
    return state.secrets / f"{of}-{user}.password"


def token_file(state: State, name: str) -> Path:
    return state.secrets / name


def ensure(state: State) -> None:
    wanted = [*(file(state, user) for user in CLICKHOUSE_USERS), *(file(state, user, "mlflow") for user in MLFLOW_USERS),
              *(token_file(state, name) for name in TOKENS)]
    for path in wanted:
        if not path.exists():
            write_private(path, secrets.token_urlsafe(24))


def read(state: State, user: str, of: str = "clickhouse") -> str:
    return file(state, user, of).read_text().strip()


def sha256_hex(state: State, user: str) -> str:
    """What users.xml holds."""
    return hashlib.sha256(read(state, user).encode()).hexdigest()
