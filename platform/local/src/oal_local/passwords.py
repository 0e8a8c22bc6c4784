"""Where passwords, tokens and keys are: one file of mode 0600 each in the state folder, made by pki.init()."""
import hashlib
from pathlib import Path

from oal_local.paths import State


def file(state: State, user: str, of: str = "clickhouse") -> Path:
    return state.secrets / f"{of}-{user}.password"


def token_file(state: State, name: str) -> Path:
    return state.secrets / name


def signing_key(state: State, signer: str) -> Path:
    """Of those who sign bundles: `registry`, `online`."""
    return state.secrets / f"sign-{signer}.pem"


def read(state: State, user: str, of: str = "clickhouse") -> str:
    return file(state, user, of).read_text().strip()


def sha256_hex(state: State, user: str) -> str:
    """What users.xml holds."""
    return hashlib.sha256(read(state, user).encode()).hexdigest()
