"""ClickHouse by its own BACKUP and RESTORE: consistent, while rows come in; the data goes where the server's location says."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from oal_backup import BackupError
from oal_backup.config import ClickHouse, secret

TIMEOUT_S = 6 * 3600


class Server:
    def __init__(self, config: ClickHouse):
        self.config = config

    def ask(self, sql: str) -> list[dict]:
        """Rows of one statement. BackupError with the server's words."""
        request = urllib.request.Request(f"{self.config.url}/?wait_end_of_query=1&default_format=JSONEachRow&output_format_json_quote_64bit_integers=0",
                                         data=sql.encode(), headers={"X-ClickHouse-User": self.config.user, "X-ClickHouse-Key": secret(self.config.password_file)})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return [json.loads(line) for line in answer.read().decode().splitlines()]
        except urllib.error.HTTPError as error:
            raise BackupError(f"ClickHouse refused `{sql[:160]}`: {error.read().decode(errors='replace')[:1000]}") from None
        except OSError as error:
            raise BackupError(f"ClickHouse at {self.config.url} does not answer: {error}") from None

    def tables(self, database: str) -> dict[str, int]:
        """Rows by table that holds some."""
        return {row["table"]: row["rows"] for row in self.ask(
            f"SELECT table, sum(rows) AS rows FROM system.parts WHERE active AND database = '{database}' GROUP BY table ORDER BY table")}

    def create(self, name: str, base: str | None) -> dict:
        """Back up the database as NAME; with `base`, only what is new since that backup. Rows are counted first, so the backup has no fewer.
        BackupError without the database, or with the server's words."""
        database, where = self.config.database, self.config.location.format(name=name)
        rows = self.tables(database)
        if not self.ask(f"SELECT 1 FROM system.databases WHERE name = '{database}'"):
            raise BackupError(f"there is no database `{database}` at {self.config.url}")
        since = f" SETTINGS base_backup = {self.config.location.format(name=base)}" if base else ""
        [made] = self.ask(f"BACKUP DATABASE {database} TO {where}{since}")
        [size] = self.ask(f"SELECT total_size AS bytes FROM system.backups WHERE id = '{made['id']}'")
        return {"location": where, "base": base, "bytes": size["bytes"], "rows_at_least": rows}

    def restore(self, part: dict, database: str | None) -> dict:
        """Bring the database back, under another name for a rehearsal. BackupError while a database of that name has rows, and when fewer
        come back than the backup must have."""
        target = database or self.config.database
        if held := self.tables(target):
            raise BackupError(f"database `{target}` holds {sum(held.values()):,} rows in {len(held)} tables, and a restore overwrites nothing. "
                              f"Restore beside it (--as NAME) and compare; or, when it is to go: DROP DATABASE {target} SYNC, with stream-jobs stopped")
        if self.ask(f"SELECT 1 FROM system.databases WHERE name = '{target}'"):
            self.ask(f"DROP DATABASE {target} SYNC")  # a schema without rows, as a migration of a new server leaves it
        self.ask(f"RESTORE DATABASE {self.config.database} AS {target} FROM {part['location']}")
        rows = self.tables(target)
        # Merges of aggregating tables make fewer rows of more: only the others keep their number.
        merged = {row["name"] for row in self.ask(f"SELECT name FROM system.tables WHERE database = '{target}' AND engine LIKE '%AggregatingMergeTree'")}
        if short := {table: (rows.get(table, 0), wanted) for table, wanted in part["rows_at_least"].items() if table not in merged and rows.get(table, 0) < wanted}:
            raise BackupError(f"fewer rows than when the backup was made: {short}")
        return {"database": target, "rows": sum(rows.values()), "tables": len(rows)}
