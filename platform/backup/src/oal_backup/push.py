"""The push service's store: a snapshot that the running service makes, or PostgreSQL dumped."""

from __future__ import annotations

import http.client
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from oal_backup import BackupError, postgres
from oal_backup.config import Push, secret

SNAPSHOT, DUMP = "state.db", "push.pgdump"


def create(config: Push, folder: Path) -> dict:
    """BackupError when the service refuses or does not answer, or with pg_dump's words."""
    if config.postgres_dsn_file:
        return postgres.dump(config.postgres_dsn_file, folder / DUMP)
    request = urllib.request.Request(config.admin_url + "/v1/state",
                                     headers={"Authorization": f"Bearer {secret(config.token_file)}"})
    context = ssl.create_default_context(
        cafile=config.ca_file or None) if config.admin_url.startswith("https:") else None
    try:
        with urllib.request.urlopen(request, timeout=300, context=context) as answer, open(folder / SNAPSHOT,
                                                                                           "wb") as file:
            shutil.copyfileobj(answer, file)
    except urllib.error.HTTPError as error:
        raise BackupError(
            f"the push service refused a snapshot: {error.code} {error.read().decode(errors='replace')[:500]}"
        ) from None
    # not what the disk says
    except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise BackupError(f"the push service at {config.admin_url} does not answer: {error}") from None
    return {"snapshot": SNAPSHOT}


def restore(config: Push, folder: Path) -> dict:
    """With the service stopped. The embedded store is put in place by `restore_command` with the snapshot as last
    argument; BackupError with its words, or when the configuration is of the other kind of store."""
    if (folder / DUMP).exists():
        if not config.postgres_dsn_file:
            raise BackupError("this backup is of PostgreSQL; give [push] postgres_dsn_file")
        postgres.restore(config.postgres_dsn_file, folder / DUMP)
        return {"into": "PostgreSQL"}
    if not config.restore_command:
        raise BackupError(
            '[push] restore_command is missing, such as ["oal-deploy", "restore", "--config", "deploy.yaml"]')
    done = subprocess.run([*config.restore_command, str(folder / SNAPSHOT)], capture_output=True, text=True)
    if done.returncode:
        raise BackupError(f"`{' '.join(config.restore_command)}` said: {(done.stderr or done.stdout).strip()[-1000:]}")
    return {"into": "store.path"}
