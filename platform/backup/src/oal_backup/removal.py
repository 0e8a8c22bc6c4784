"""Removing the data of a ClickHouse backup. BACKUP writes it where the server sees fit and no statement removes it, so
it is done where the data is: in a folder of this machine, in S3, or by `sweep` beside the server, which is told by way
of the server itself."""

from __future__ import annotations

import re
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from oal_backup import BackupError
from oal_backup.config import ClickHouse, secret

FOLDER = re.compile(r"File\('(/[^']+)'\)")
OBJECTS = re.compile(r"(?:Disk\('\w+'|S3\(\w+), '([^'/]+)/?'\)")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
LOOK_S = 2  # how often `sweep` looks
SWEPT_WITHIN_S = 120  # a removal of terabytes on a local disk takes seconds: it is of few files


def remove(location: str, config: ClickHouse, ask: Callable[[str], list[dict]]) -> bool:
    """Remove the data at LOCATION; False when nobody here can. `ask` is the server that wrote it. BackupError when it
    could not be removed."""
    if found := FOLDER.fullmatch(location):
        folder = Path(found[1])
        if folder.is_dir():
            shutil.rmtree(folder)
            return True
        if config.sweep_list:
            _have_swept(folder.name, config.sweep_list, ask)
            return True
    if (found := OBJECTS.fullmatch(location)) and config.s3_url:
        _remove_objects(found[1], config)
        return True
    return False


def _have_swept(name: str, sweep_list: str, ask: Callable[[str], list[dict]]) -> None:
    """Write the name where `sweep` reads it, and wait until it took it away."""
    ask(f"INSERT INTO FUNCTION file('{sweep_list}', 'TSV', 'name String') SETTINGS engine_file_truncate_on_insert = 1"
        f" VALUES ('{name}')")
    deadline = time.monotonic() + SWEPT_WITHIN_S
    while time.monotonic() < deadline:
        try:
            ask(f"SELECT count() FROM file('{sweep_list}', 'TSV', 'name String')")
        except BackupError as error:
            if re.search(r"FILE_DOESNT_EXIST|CANNOT_STAT|doesn't exist|CANNOT_EXTRACT_TABLE_STRUCTURE", str(error)):
                return
            raise
        time.sleep(LOOK_S / 4)
    raise BackupError(
        f"{name} was not removed within {SWEPT_WITHIN_S} s: is `oal-backup sweep` running beside the ClickHouse server,"
        f" with {sweep_list} of its user_files?"
    )


def sweep(folder: str, sweep_list: str, alive: str | None) -> None:
    """Remove the backups in FOLDER that SWEEP_LIST names, then the list; until a signal. BackupError when a name is
    none or a backup cannot be removed: the list stays, and whoever waits for it is told."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    while not ended.is_set():
        sweep_once(Path(folder), Path(sweep_list))
        if alive:
            Path(alive).touch()
        ended.wait(LOOK_S)


def sweep_once(folder: Path, sweep_list: Path) -> None:
    try:
        text = sweep_list.read_text()
    except FileNotFoundError:
        return
    if not text.endswith("\n"):  # the server has begun to write it
        return
    for name in text.splitlines():
        if not NAME.fullmatch(name):
            raise BackupError(f"{sweep_list} names `{name}`, which is no backup's name; nothing was removed for it")
        if (folder / name).is_dir():
            try:
                shutil.rmtree(folder / name)
            except OSError as error:
                raise BackupError(f"removing {folder / name}: {error}") from None
            print(f"removed {folder / name}", flush=True)
    sweep_list.unlink()


def _remove_objects(name: str, config: ClickHouse) -> None:
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        raise BackupError("removing a backup from S3 needs Python's boto3; `pip install boto3`") from None
    where = urlsplit(config.s3_url)
    bucket, _, path = where.path.strip("/").partition("/")
    keys = {}
    if config.s3_access_key_file:
        keys = {"aws_access_key_id": secret(config.s3_access_key_file),
                "aws_secret_access_key": secret(config.s3_secret_key_file)}
    prefix = f"{path}/{name}/" if path else f"{name}/"
    try:
        client = boto3.client("s3", endpoint_url=f"{where.scheme}://{where.netloc}", region_name=config.s3_region,
                              config=Config(s3={"addressing_style": "path"}, retries={"mode": "standard"}), **keys)
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            objects = [{"Key": one["Key"]} for one in page.get("Contents", ())]
            if objects and (failed := client.delete_objects(Bucket=bucket, Delete={"Objects": objects}).get("Errors")):
                raise BackupError(f"removing {failed[0]['Key']} from {config.s3_url}: {failed[0]['Message']}")
    except (BotoCoreError, ClientError) as error:
        raise BackupError(f"removing {prefix} from {config.s3_url}: {error}") from None
