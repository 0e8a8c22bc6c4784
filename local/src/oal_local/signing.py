"""The keys that sign bundles, one for each signer, and the file of public keys that APs trust.

usage: PYTHONPATH=schema/src python -m oal_local.signing SECRETS_FOLDER TRUSTED_KEYS_FILE
"""
import os
import subprocess
import sys
from pathlib import Path

from oal_local.errors import PlatformError
from oal_local.paths import REPO, SOURCE, State, python

SIGNERS = ("registry", "online")
SCHEMA = REPO / "schema" / "src"


def key_file(state: State, signer: str) -> Path:
    return state.secrets / f"sign-{signer}.pem"


def ensure(state: State) -> None:
    """Make the keys that are not there. Keys that an operator added to the trusted file stay in it."""
    if state.trusted_keys.exists() and all(key_file(state, signer).exists() for signer in SIGNERS):
        return
    done = subprocess.run([python(), "-m", "oal_local.signing", str(state.secrets), str(state.trusted_keys)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=dict(os.environ, PYTHONPATH=f"{SOURCE}:{SCHEMA}"))
    if done.returncode != 0:
        raise PlatformError(f"making signing keys in {state.secrets} failed: {done.stdout.strip()}")


def main(secrets_folder: str, trusted: str) -> None:
    from oal_schema import keys

    lines = Path(trusted).read_text().splitlines() if Path(trusted).exists() else ["# Keys whose bundles APs accept"]
    for signer in SIGNERS:
        path = Path(secrets_folder) / f"sign-{signer}.pem"
        if not path.exists():
            keys.make(path)
        line = keys.public_line(keys.load(path), signer)
        if line not in lines:
            lines.append(line)
    Path(trusted).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
