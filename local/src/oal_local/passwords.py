"""Passwords of the ClickHouse users: random, made once, one file of mode 0600 each in the state folder."""
import hashlib
import secrets
from pathlib import Path

from oal_local.paths import State, write_private

CLICKHOUSE_USERS = ("admin", "ingest", "analyst")


def file(state: State, user: str) -> Path:
    return state.secrets / f"clickhouse-{user}.password"


def ensure(state: State) -> None:
    for user in CLICKHOUSE_USERS:
        if not file(state, user).exists():
            write_private(file(state, user), secrets.token_urlsafe(24))


def read(state: State, user: str) -> str:
    return file(state, user).read_text().strip()


def sha256_hex(state: State, user: str) -> str:
    """What users.xml holds."""
    return hashlib.sha256(read(state, user).encode()).hexdigest()
