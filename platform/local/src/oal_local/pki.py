"""Certificates, keys and passwords of an instance, made by the one tool that every deployment uses: security/ (README
there).

It runs on this folder's Python, in a process of its own: importers of Platform need no package.
"""
import os
import subprocess

from oal_local.errors import PlatformError
from oal_local.paths import REPO, State, python

SOURCES = (REPO / "platform" / "security" / "src", REPO / "schema" / "src")


def run(state: State, command: str, *arguments: str) -> str:
    """`oal-ca COMMAND FOLDER ARGUMENTS…`; what it printed."""
    done = subprocess.run(
        [python(), "-m", "oal_pki", command, str(state.dir), *arguments], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, env=dict(os.environ, PYTHONPATH=":".join(map(str, SOURCES))))
    if done.returncode != 0:
        raise PlatformError(done.stdout.strip())
    return done.stdout


def init(state: State) -> None:
    """Everything that is missing or lapses."""
    run(state, "init")


def access_points(state: State, *ap_ids: str, site: str = "") -> None:
    """Certificate and batch key of each; what is there stays."""
    run(state, "ap", *ap_ids, *(["--site", site] if site else []))


def files(state: State, *names: str) -> list:
    """What a service reads of its certificate; it is restarted when that was renewed."""
    return [state.pki / "ca.crt", *(state.pki / f"{name}.crt" for name in names)]
