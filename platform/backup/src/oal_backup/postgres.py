"""pg_dump and pg_restore. The password reaches them in a file of mode 0600, not in argv or the environment."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import urllib.parse
from pathlib import Path

from oal_backup import BackupError
from oal_backup.config import secret

#: A pg_dump dumps servers of its own version and of earlier ones.
NEWER = ("\nLeave this database to a backup of its own, by the server's pg_dump, and its section out of this"
         " configuration (in the chart: backup.enabled: false with an external PostgreSQL of a later version).")


def dump(dsn_file: str, to: Path) -> dict:
    """The database that the connection string in `dsn_file` names, in pg_dump's own format. BackupError with pg_dump's
    words.
    """
    _run(dsn_file, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--file", str(to))
    return {"dump": to.name}


def restore(dsn_file: str, dump_file: Path) -> None:
    """In one transaction: all of it or nothing. BackupError with pg_restore's words."""
    _run(dsn_file, "pg_restore", "--clean", "--if-exists", "--no-owner", "--no-privileges", "--single-transaction",
         "--exit-on-error", str(dump_file))


def split(dsn: str) -> tuple[str, str]:
    """A connection string (URI or `key=value …`) without its password, and the password."""
    if found := re.match(r"(\w+://)([^/@:]*):([^/@]*)@", dsn):
        return f"{found[1]}{found[2]}@{dsn[found.end():]}", urllib.parse.unquote(found[3])
    found = re.search(r"\bpassword=('(?:[^'\\]|\\.)*'|\S*)", dsn)
    if not found:
        return dsn, ""
    return (dsn[:found.start()] + dsn[found.end():]).strip(), re.sub(r"\\(.)", r"\1", found.group(1).strip("'"))


def _run(dsn_file: str, program: str, *arguments: str) -> None:
    dsn, password = split(secret(dsn_file))
    with tempfile.NamedTemporaryFile("w", prefix="pgpass") as passfile:  # made with mode 0600
        passfile.write("*:*:*:*:" + re.sub(r"([:\\])", r"\\\1", password) + "\n")
        passfile.flush()
        try:
            done = subprocess.run([program, "--dbname", dsn, *arguments], capture_output=True, text=True,
                                  env=os.environ | {"PGPASSFILE": passfile.name})
        except FileNotFoundError:
            raise BackupError(f"{program} is not installed; it comes with Debian's postgresql-client") from None
    if done.returncode:
        hint = NEWER if "server version mismatch" in done.stderr else ""
        raise BackupError(f"{program} with {dsn_file}: {done.stderr.strip()[-1000:]}{hint}")
