"""ClickHouse by its own BACKUP and RESTORE: consistent, while rows come in; the data goes where each server's location
says.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable

from oal_backup import BackupError, removal
from oal_backup.config import ClickHouse, secret

TIMEOUT_S = 600  # of a statement; BACKUP and RESTORE are begun and then asked about
POLL_S = 0.2
POLL_AT_MOST_S = 5


class Server:
    def __init__(self, url: str, config: ClickHouse):
        self.url, self.config = url, config
        try:
            self.context = ssl.create_default_context(cafile=config.ca_file or None)
        except (OSError, ssl.SSLError) as error:
            raise BackupError(f"[clickhouse] ca_file {config.ca_file}: {error}") from None

    def ask(self, sql: str) -> list[dict]:
        """Rows of one statement. BackupError with the server's words."""
        request = urllib.request.Request(
            f"{self.url.rstrip('/')}/?wait_end_of_query=1&default_format=JSONEachRow"
            "&output_format_json_quote_64bit_integers=0",
            data=sql.encode(),
            headers={"X-ClickHouse-User": self.config.user, "X-ClickHouse-Key": secret(self.config.password_file)},
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self.context) as answer:
                return [json.loads(line) for line in answer.read().decode().splitlines()]
        except urllib.error.HTTPError as error:
            raise BackupError(
                f"ClickHouse at {self.url} refused `{sql[:160]}`: {error.read().decode(errors='replace')[:1000]}"
            ) from None
        except OSError as error:
            raise BackupError(f"ClickHouse at {self.url} does not answer: {error}") from None

    def has(self, database: str) -> bool:
        return bool(self.ask(f"SELECT 1 FROM system.databases WHERE name = '{database}'"))

    def tables(self, database: str) -> dict[str, int]:
        """Rows by table that holds some."""
        return {
            row["table"]: row["rows"]
            for row in self.ask(
                f"SELECT table, sum(rows) AS rows FROM system.parts WHERE active AND database = '{database}' GROUP BY"
                " table ORDER BY table"
            )
        }

    def begin(self, sql: str) -> Callable[[], dict | None]:
        """Begin a BACKUP or RESTORE. What is given back says how it went, None while it runs; BackupError when it
        failed.
        """
        [begun] = self.ask(f"{sql} ASYNC")

        def ended() -> dict | None:
            found = self.ask(
                f"SELECT status, error, compressed_size AS bytes FROM system.backups WHERE id = '{begun['id']}'")
            if not found:
                raise BackupError(
                    f"ClickHouse at {self.url} knows no more of `{sql[:160]}`: was it restarted meanwhile?")
            if found[0]["status"] in ("CREATING_BACKUP", "RESTORING"):
                return None
            if found[0]["status"] not in ("BACKUP_CREATED", "RESTORED"):
                raise BackupError(
                    f"ClickHouse at {self.url} ended `{sql[:160]}` with {found[0]['status']}:"
                    f" {found[0]['error'][:1000]}"
                )
            return found[0]
        return ended


class Shards:
    """The servers of a configuration, one for each shard; most often it is a single one that holds all."""

    def __init__(self, config: ClickHouse):
        self.config = config
        self.servers = [Server(url, config) for url in urls(config)]

    def create(self, name: str, base: str | None, of_base: dict | None) -> dict:
        """Back up the database as NAME, of several servers all at once; with `base` and what its manifest says of
        ClickHouse only what is new since then. Rows are counted first, so the backup has no fewer. BackupError without
        the database, or with a server's words; then no data stays in folders of this machine."""
        database = self.config.database
        if base and not of_base:
            raise BackupError(f"{base} has nothing of ClickHouse, so nothing can be added to it")
        if base and len(of_base["shards"]) != len(self.servers):
            raise BackupError(
                f"shards of ClickHouse in {base}: {len(of_base['shards'])}, servers that [clickhouse] names:"
                f" {len(self.servers)}; make one without --base"
            )
        rows = [server.tables(database) for server in self.servers]
        for server in self.servers:
            if not server.has(database):
                raise BackupError(f"there is no database `{database}` at {server.url}")
        locations = self.locations(name)
        since = [f" SETTINGS base_backup = {shard['location']}"
                 for shard in of_base["shards"]] if base else [""] * len(self.servers)
        made, failed = together(
            self.servers, [f"BACKUP DATABASE {database} TO {where}{after}" for where, after in zip(locations, since)])
        if failed:
            left = self.remove([where for where, one in zip(locations, made) if one])
            raise BackupError("; ".join(failed)
                              + (f"; remove what other servers wrote: {', '.join(left)}" if left else ""))
        return {
            "database": database, "base": base,
            "shards": [{"server": server.url, "location": where, "bytes": one["bytes"], "rows_at_least": held}
                       for server, where, one, held in zip(self.servers, locations, made, rows)]
        }

    def locations(self, name: str) -> list[str]:
        """Of each server, as SQL."""
        return [
            self.config.location.format(name=f"{name}-shard{n}" if self.config.urls else name)
            for n in range(1, len(self.servers) + 1)
        ]

    def can_add_to(self, part: dict | None, name: str) -> bool:
        """Could a backup be made of what is new since that of NAME, whose manifest says this of ClickHouse?"""
        return bool(part) and [shard["location"] for shard in part["shards"]] == self.locations(name)

    def remove(self, locations: list[str]) -> list[str]:
        """Remove the data of these locations, each of the server at its place in the list; those that nobody here can.
        BackupError when one that can be is not."""
        return [where for where, server in zip(locations, self.servers)
                if not removal.remove(where, self.config, server.ask)]

    def record(self, name: str, seconds: float) -> None:
        """Say in `platform_metric` that backup NAME was made, and how long it took: its age is on a dashboard, and an
        alert when it is old. BackupError with the server's words.
        """
        tags = f"map('component', 'backup', 'host', '{socket.gethostname()}', 'backup', '{name}')"
        self.servers[0].ask(f"INSERT INTO {self.config.database}.platform_metric (name, timestamp, tags, fields) SELECT"
                            f" 'backup', toUnixTimestamp64Milli(now64(3)), {tags}, '{{\"seconds\": {seconds:.1f}}}'")

    def restore(self, part: dict, database: str | None) -> dict:
        """Bring the database back, each shard to its server, under another name for a rehearsal. BackupError before
        anything is written when there are more or fewer servers than shards, one does not answer, or one has rows in a
        database of that name; and when fewer come back than the backup must have."""
        shards, kept = part["shards"], part["database"] or self.config.database
        target = database or self.config.database
        if len(shards) != len(self.servers):
            raise BackupError(
                f"shards of ClickHouse in the backup: {len(shards)}, servers that [clickhouse] names:"
                f" {len(self.servers)}; each shard needs one, in the same order"
            )
        if kept != self.config.database:
            raise BackupError(
                f"the backup is of database `{kept}`, and [clickhouse] database is `{self.config.database}`")
        for server in self.servers:
            if held := server.tables(target):
                raise BackupError(
                    f"database `{target}` at {server.url} holds {sum(held.values()):,} rows in {len(held)} tables, and"
                    " a restore overwrites nothing. Restore beside it (--as NAME) and compare; or, when it is to go:"
                    f" DROP DATABASE {target} SYNC, with stream-jobs stopped"
                )
        for server in self.servers:
            if server.has(target):
                # a schema without rows, as a migration of a new server leaves it
                server.ask(f"DROP DATABASE {target} SYNC")
        _, failed = together(self.servers,
                             [f"RESTORE DATABASE {kept} AS {target} FROM {shard['location']}" for shard in shards])
        if failed:
            raise BackupError("; ".join(failed))
        back = [server.tables(target) for server in self.servers]
        for server, shard, rows in zip(self.servers, shards, back):
            # Merges of aggregating tables make fewer rows of more: only the others keep their number.
            merged = {
                row["name"]
                for row in server.ask(
                    f"SELECT name FROM system.tables WHERE database = '{target}' AND engine LIKE"
                    " '%AggregatingMergeTree'"
                )
            }
            if short := {
                    table: (rows.get(table, 0), wanted) for table, wanted in shard["rows_at_least"].items()
                    if table not in merged and rows.get(table, 0) < wanted
            }:
                raise BackupError(f"fewer rows at {server.url} than when the backup was made: {short}")
        return {
            "database": target, "rows": sum(sum(rows.values()) for rows in back), "tables": len(set().union(*back)),
            "servers": len(back)
        }


def together(servers: list[Server], statements: list[str]) -> tuple[list[dict | None], list[str]]:
    """Each server's statement, all at once: what each said at its end, None where it failed; and the complaints. One
    that fails does not end the others.
    """
    made: list[dict | None] = [None] * len(servers)
    failed: list[str] = []
    running = {}
    for n, (server, sql) in enumerate(zip(servers, statements)):
        try:
            running[n] = server.begin(sql)
        except BackupError as error:
            failed.append(str(error))
            break  # the others need not begin
    pause = POLL_S
    while running:
        for n, ended in list(running.items()):
            try:
                made[n] = ended()
            except BackupError as error:
                failed.append(str(error))
                del running[n]
            else:
                if made[n]:
                    del running[n]
        if running:
            time.sleep(pause)
            pause = min(pause * 1.5, POLL_AT_MOST_S)
    return made, failed


def urls(config: ClickHouse | None) -> tuple[str, ...]:
    """Of the servers that hold the rows, one for each shard."""
    return (config.urls or (config.url,)) if config else ()


def rows_of(part: dict) -> int:
    """Of the whole backup, at least."""
    return sum(sum(shard["rows_at_least"].values()) for shard in part["shards"])
