"""The configuration: TOML, see README.md. Secrets are in files of their own."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from oal_backup import BackupError


@dataclass(frozen=True)
class ClickHouse:
    """`location` is SQL, with {name} for the backup's name, as the server sees it: File('/…/{name}'), Disk('backups',
    '{name}'), S3(COLLECTION, '{name}'). It is kept in the manifest and printed, so no key may be in it. A cluster
    has `urls` in place of `url`, a server of each shard; {name} is then NAME-shard1, NAME-shard2, …

    ClickHouse cannot remove a backup. A location File(…) that is a folder of this machine is removed here; one of the
    server's by `oal-backup sweep` beside it, with `sweep_list`; one in S3 by its address and keys."""
    user: str
    password_file: str
    location: str
    url: str = ""
    urls: tuple[str, ...] = ()
    database: str = "oal"
    ca_file: str = ""  # of the authority behind https addresses; empty: those of the system
    sweep_list: str = ""  # file below the server's user_files that `oal-backup sweep` reads
    s3_url: str = ""  # https://HOST/BUCKET/PATH: where the location's disk or named collection is
    s3_region: str = "us-east-1"
    s3_access_key_file: str = ""  # without: what the environment has, a web identity's token for example
    s3_secret_key_file: str = ""


@dataclass(frozen=True)
class MLflow:
    """`state_dir` is that of `oal-registry server`. With PostgreSQL its databases are dumped in place of the SQLite
    files.
    """
    state_dir: str
    postgres_dsn_file: str = ""


@dataclass(frozen=True)
class Push:
    """Either the running service's admin interface, whose embedded store is copied, or the PostgreSQL that it uses."""
    admin_url: str = ""
    token_file: str = ""
    ca_file: str = ""
    restore_command: tuple[str, ...] = ()
    postgres_dsn_file: str = ""


@dataclass(frozen=True)
class Files:
    """Folders copied as they are: certificates and secrets. A backup with these must be kept as they are kept."""
    folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class Config:
    folder: Path
    clickhouse: ClickHouse | None
    mlflow: MLflow | None
    push: Push | None
    files: Files | None


#: In the order of a restore.
SECTIONS = {"clickhouse": ClickHouse, "mlflow": MLflow, "push": Push, "files": Files}


def load(path: str) -> Config:
    """BackupError names the setting that is wrong."""
    try:
        text = tomllib.loads(Path(path).read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BackupError(f"configuration {path}: {error}") from None
    if unknown := set(text) - set(SECTIONS) - {"folder"}:
        raise BackupError(
            f"configuration {path}: unknown: {', '.join(sorted(unknown))}; there are folder, {', '.join(SECTIONS)}")
    if not isinstance(text.get("folder"), str):
        raise BackupError(f"configuration {path}: `folder` must name the folder that takes the backups")
    made = {name: _section(path, name, kind, text[name]) if name in text else None for name, kind in SECTIONS.items()}
    if not any(made.values()):
        raise BackupError(f"configuration {path}: nothing to back up; give at least one of {', '.join(SECTIONS)}")
    if made["clickhouse"] and bool(made["clickhouse"].url) == bool(made["clickhouse"].urls):
        raise BackupError(
            f"configuration {path}: [clickhouse] needs url, or urls with a server of each shard, and not both")
    if made["clickhouse"] and (twice := _twice(made["clickhouse"].urls)):
        raise BackupError(
            f"configuration {path}: [clickhouse] urls has {', '.join(twice)} more than once; each shard has servers of"
            " its own"
        )
    if made["files"] and (same := _twice([Path(folder).name for folder in made["files"].folders])):
        raise BackupError(
            f"configuration {path}: [files] has several folders whose last name is {', '.join(same)}, by which a backup"
            " keeps them; rename all but one"
        )
    if made["files"] and (nameless := [folder for folder in made["files"].folders if Path(folder).name in ("", "..")]):
        raise BackupError(
            f"configuration {path}: [files] {', '.join(map(repr, nameless))} has no last name, by which a backup keeps"
            " it; write the folder out"
        )
    push = made["push"]
    if push and bool(push.admin_url and push.token_file) == bool(push.postgres_dsn_file):
        raise BackupError(f"configuration {path}: [push] needs admin_url and token_file, or postgres_dsn_file")
    keys = made["clickhouse"] and (made["clickhouse"].s3_access_key_file, made["clickhouse"].s3_secret_key_file)
    if keys and bool(keys[0]) != bool(keys[1]):
        raise BackupError(f"configuration {path}: [clickhouse] s3_access_key_file and s3_secret_key_file go together")
    if made["clickhouse"] and "{name}" not in made["clickhouse"].location:
        raise BackupError(
            f"configuration {path}: [clickhouse] location must have {{name}} in it, or every backup would take the same"
            " place"
        )
    return Config(folder=Path(text["folder"]), **made)


def _section(path: str, name: str, kind, values: dict):
    known = {field.name: field for field in fields(kind)}
    if unknown := set(values) - set(known):
        raise BackupError(
            f"configuration {path}: [{name}] has no `{', '.join(sorted(unknown))}`; there are {', '.join(known)}")
    try:
        made = kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})
    except TypeError as error:
        raise BackupError(f"configuration {path}: [{name}]: {str(error).split('__init__() ')[-1]}") from None
    for key, field in known.items():
        value, is_list = getattr(made, key), field.type.startswith("tuple")
        if not (isinstance(value, tuple) and all(isinstance(entry, str)
                                                 for entry in value) if is_list else isinstance(value, str)):
            raise BackupError(
                f"configuration {path}: [{name}] {key} must be a {'list of texts' if is_list else 'text'}")
    return made


def _twice(values: list[str] | tuple[str, ...]) -> list[str]:
    return sorted({value for value in values if values.count(value) > 1})


def secret(path: str) -> str:
    """What the file holds, without the end of line. BackupError when it cannot be read."""
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise BackupError(f"cannot read the secret {path}: {error.strerror}") from None
