"""`oal-backup`: create, list, verify, restore, prune."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sqlite3
import sys
import time
from contextlib import contextmanager

from oal_backup import BackupError, clickhouse, config, files, manifest, mlflow, push, removal

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# in FOLDER/NAME/PART; ClickHouse keeps its data where the server's location says
KEPT_HERE = {"mlflow": mlflow, "push": push, "files": files}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def attempting(what: str):
    """A full disk and what else a file system or SQLite complains of, as BackupError that says what was attempted."""
    try:
        yield
    except shutil.Error as error:  # of a whole tree: (from, to, why) of each file
        raise BackupError(
            f"{what}: {len(error.args[0])} files could not be copied; the first: {error.args[0][0][0]}:"
            f" {error.args[0][0][2]}"
        ) from None
    except (OSError, sqlite3.Error) as error:
        raise BackupError(f"{what}: {error}") from None


def create(settings: config.Config, name: str, base: str | None) -> None:
    """All parts into FOLDER/NAME. ClickHouse, whose data is not removed with the folder, comes after the others, and
    last the manifest. BackupError when a part fails or the name is taken; nothing stays of what was begun."""
    folder = settings.folder / name
    of_base = manifest.read(settings.folder / base)["parts"].get("clickhouse") if base else None
    started = time.time()
    if folder.exists():
        raise BackupError(f"{folder} is there already; choose another name")
    with attempting(f"backup {name}"):
        folder.mkdir(parents=True, mode=0o700)
    done = {}
    try:
        for part in reversed(config.SECTIONS):
            if (section := getattr(settings, part)) is None:
                continue
            say(f"backup {name}: {part}")
            with attempting(f"backup {name}, {part}"):
                (folder / part).mkdir(mode=0o700)
                done[part] = KEPT_HERE[part].create(section, folder
                                                    / part) if part in KEPT_HERE else clickhouse.Shards(section).create(
                                                        name, base, of_base)
        with attempting(f"backup {name}"):
            content = manifest.write(folder, name, started, done)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        remove_rows(settings, name, done.get("clickhouse"))
        raise
    if settings.clickhouse:
        try:
            clickhouse.Shards(settings.clickhouse).record(name, content["seconds"])
        except BackupError as error:  # the backup is whole; that its age is not seen is said
            say(f"backup {name} is made, but its time is not on the dashboard: {error}")
    print(f"{name}: {', '.join(done)}; {sums(content)}; {content['seconds']:.1f} s")


def sums(content: dict) -> str:
    """What a manifest says that there is."""
    said = f"{len(content['files'])} files, {sum(size for size, _ in content['files'].values()):,} bytes here"
    if part := content["parts"].get("clickhouse"):
        shards = part["shards"]
        said += (
            f"; {clickhouse.rows_of(part):,} rows of ClickHouse" +
            (f" in {len(shards)} shards" if len(shards) > 1 else "") +
            f", {sum(shard['bytes'] for shard in shards):,} bytes at {', '.join(shard['location'] for shard in shards)}"
        )
    return said


def remove_rows(settings: config.Config, name: str, part: dict | None) -> None:
    """ClickHouse's data of a backup; where nobody here can remove it, that is said."""
    if not part:
        return
    locations = [shard["location"] for shard in part["shards"]]
    here = len(clickhouse.urls(settings.clickhouse))  # a backup of more shards than there are servers leaves some
    left = clickhouse.Shards(settings.clickhouse).remove(locations) if here else []
    for location in left + locations[here:]:
        say(f"the data of {name} is at {location}, which is not a folder here; remove it there")


def newest_to_add_to(settings: config.Config, full_every: int) -> str | None:
    """The newest backup, when ClickHouse's part of the next may be what is new since it; None for a full one: the
    first, each FULL_EVERY-th, and when the servers or their location changed."""
    every = names(settings)
    if not every or not settings.clickhouse:
        return None
    parts = {name: manifest.read(settings.folder / name)["parts"].get("clickhouse") for name in every}
    if not clickhouse.Shards(settings.clickhouse).can_add_to(parts[every[-1]], every[-1]):
        return None
    chain, name = 0, every[-1]
    while name in parts and parts[name]:
        chain, name = chain + 1, parts[name]["base"]
    return every[-1] if name is None and chain < full_every else None


def names(settings: config.Config) -> list[str]:
    """Complete backups, oldest first."""
    found = [path.parent for path in settings.folder.glob(f"*/{manifest.FILE}")]
    return [path.name for path in sorted(found, key=lambda path: manifest.read(path)["started"])]


def show(settings: config.Config) -> None:
    for name in names(settings):
        content = manifest.read(settings.folder / name)
        base = content["parts"].get("clickhouse", {}).get("base")
        print(
            f"{name}\t{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(content['started']))}"
            f" UTC\t{', '.join(content['parts'])}{f', after {base}' if base else ''}\t{sums(content)}"
        )


def verify(settings: config.Config, name: str) -> dict:
    """Its manifest. BackupError names files that are not as they were written."""
    folder = settings.folder / name
    content = manifest.read(folder)
    if bad := manifest.damaged(folder, content):
        raise BackupError(f"{name} is damaged: {', '.join(bad[:10])}{' …' if len(bad) > 10 else ''}; use another one")
    return content


def restore(settings: config.Config, name: str, only: list[str], as_database: str | None) -> None:
    """The parts `only` names, all if it names none. BackupError before anything is touched when the backup is damaged
    or has none of them.
    """
    content = verify(settings, name)
    folder = settings.folder / name
    wanted = [part for part in config.SECTIONS if part in content["parts"] and (not only or part in only)]
    if missing := set(only) - set(content["parts"]):
        raise BackupError(f"{name} has no {', '.join(sorted(missing))}; it has {', '.join(content['parts'])}")
    if as_database and wanted != ["clickhouse"]:
        raise BackupError("--as is for a rehearsal with ClickHouse: add --only clickhouse")
    for part in wanted:
        if getattr(settings, part) is None:
            raise BackupError(
                f"the configuration has no section [{part}], so there is nowhere to restore it to; add it, or name"
                " others with --only"
            )
    for part in wanted:
        say(f"restore {name}: {part}")
        section = getattr(settings, part)
        with attempting(f"restore {name}, {part}"):
            said = KEPT_HERE[part].restore(section, folder
                                           / part) if part in KEPT_HERE else clickhouse.Shards(section).restore(
                                               content["parts"][part], as_database)
        print(f"{part}: restored; " + ", ".join(f"{key} {value}" for key, value in said.items()), flush=True)
    if "clickhouse" in wanted and settings.clickhouse.urls and not as_database:
        print(
            f"Now make what everybody asks, the Distributed tables and views over `{settings.clickhouse.database}`,"
            f" anew on every server: clickhouse/migrate {' '.join(f'--url {url}' for url in settings.clickhouse.urls)}"
            " … --cluster NAME (and --replicated, where it was)"
        )


def prune(settings: config.Config, keep: int) -> None:
    """Remove all but the newest `keep` and what those build on; the manifest last, so what fails is tried again."""
    every = names(settings)
    kept = set(every[-keep:])
    todo = list(kept)
    while todo:
        base = manifest.read(settings.folder / todo.pop())["parts"].get("clickhouse", {}).get("base")
        if base and base not in kept:
            kept.add(base)
            todo.append(base)
    for name in every:
        if name in kept:
            continue
        with attempting(f"prune {name}"):
            remove_rows(settings, name, manifest.read(settings.folder / name)["parts"].get("clickhouse"))
            shutil.rmtree(settings.folder / name)
        print(f"removed {name}")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="oal-backup", description=
        "Back up ClickHouse, MLflow, the push service and keys, and bring them back. A restore overwrites nothing.")
    parser.add_argument("--config", default=os.environ.get("OAL_BACKUP_CONFIG", "/etc/oal/backup.toml"),
                        help="TOML, see README.md (default: %(default)s, or OAL_BACKUP_CONFIG)")
    commands = parser.add_subparsers(dest="command", required=True)
    c = commands.add_parser("create", help="back up everything that the configuration names, while it runs")
    c.add_argument("name", nargs="?", default=time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()), help="default: the time")
    c.add_argument("--base", help="an earlier backup: of ClickHouse only what is new since then is written")
    c.add_argument("--full-every", type=int, metavar="N",
                   help="take the newest backup for --base, but for each N-th, which is a full one")
    commands.add_parser("list", help="complete backups, oldest first")
    c = commands.add_parser("verify", help="are all files there, as they were written?")
    c.add_argument("name")
    c = commands.add_parser("restore",
                            help="bring a backup back; services that own the state must be stopped (README.md)")
    c.add_argument("name")
    c.add_argument("--only", default="", help=f"comma list of {', '.join(config.SECTIONS)}")
    c.add_argument("--as", dest="as_database", metavar="DATABASE",
                   help="a rehearsal: ClickHouse under another name, beside the live one")
    c = commands.add_parser("prune", help="remove old backups")
    c.add_argument("--keep", type=int, required=True, metavar="N")
    c = commands.add_parser("sweep", help="beside a ClickHouse server: remove the backups that `prune` asks it to; runs"
                            " until a signal ends it, and reads no configuration")
    c.add_argument("folder", help="holds the server's backups")
    c.add_argument("list", help="sweep_list of the configuration, below the server's user_files")
    c.add_argument("--alive", help="file that is touched at each look")
    arguments = parser.parse_args()
    try:
        if arguments.command == "sweep":
            removal.sweep(arguments.folder, arguments.list, arguments.alive)
            return 0
        settings = config.load(arguments.config)
        for name in filter(None, (getattr(arguments, "name", None), getattr(arguments, "base", None))):
            if not NAME.fullmatch(name):
                raise BackupError(
                    f"`{name}` cannot name a backup: letters, digits, dots, dashes and underscores, 64 at most")
        if arguments.command == "create":
            if arguments.full_every is not None and (arguments.base or arguments.full_every < 1):
                raise BackupError("--full-every must be 1 or more, and goes without --base")
            base = newest_to_add_to(settings, arguments.full_every) if arguments.full_every else arguments.base
            create(settings, arguments.name, base)
        elif arguments.command == "list":
            show(settings)
        elif arguments.command == "verify":
            print(f"{arguments.name}: whole; {sums(verify(settings, arguments.name))}")
        elif arguments.command == "restore":
            restore(settings, arguments.name, [part for part in arguments.only.split(",") if part],
                    arguments.as_database)
        elif arguments.keep < 1:
            raise BackupError("--keep must be 1 or more")
        else:
            prune(settings, arguments.keep)
    except BackupError as error:
        print(f"oal-backup: {error}", file=sys.stderr)
        return 1
    return 0
