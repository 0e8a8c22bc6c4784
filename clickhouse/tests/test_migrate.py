"""migrate: from nothing, from every earlier state, twice, two at once, and what it refuses."""

import hashlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import FOLDER, Database, run_migrate
from server import QueryError, Server

FILES = sorted((FOLDER / "migrations").glob("*.sql"))


def definition(database) -> list[list[str]]:
    """Everything that a database is: its tables and their columns. Names of the database itself are masked."""
    tables = database.rows(
        "SELECT name, engine, create_table_query, comment FROM system.tables WHERE database = currentDatabase() ORDER"
        " BY name"
    )
    columns = database.rows(
        "SELECT table, name, type, default_kind, default_expression, compression_codec, comment FROM system.columns"
        " WHERE database = currentDatabase() ORDER BY table, position"
    )
    return [[re.sub(rf"\b{database.name}\b", "DB", cell) for cell in row] for row in tables + columns]


@pytest.fixture
def copy(tmp_path):
    """A copy of the migrations that a test may change."""
    shutil.copytree(FOLDER / "migrations", tmp_path / "migrations")
    return tmp_path / "migrations"


@pytest.fixture
def few(tmp_path):
    """The first migrations, for what is the same with all of them."""
    (tmp_path / "few").mkdir()
    for f in FILES[:2]:
        shutil.copy(f, tmp_path / "few")
    return tmp_path / "few"


def migrate(database, *more):
    return run_migrate("--url", database.server.url, "--database", database.name, *more)


def test_from_empty_applies_every_file_in_order_and_status_says_what_is_pending(empty):
    before = migrate(empty, "--status")
    assert before.returncode == 1 and before.stdout.count("pending") == len(FILES) and "run migrate" in before.stderr
    done = migrate(empty)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"applied (\S+)", done.stdout) == [f.name for f in FILES]
    assert [int(r[0]) for r in empty.rows("SELECT version FROM schema_migrations ORDER BY version")
            ] == list(range(1,
                            len(FILES) + 1))
    after = migrate(empty, "--status")
    assert after.returncode == 0 and after.stdout.count("applied") == len(FILES)


def migrate_to(database, migrate_module, number: int) -> None:
    """As far as the file of that number."""
    server = migrate_module.Server(database.server.url, "default", "", database.name)
    migrate_module.migrate(server, migrate_module.load(FOLDER / "migrations")[:number])


def test_second_run_changes_nothing(database):
    before = definition(database)
    done = migrate(database)
    assert done.returncode == 0 and "nothing to do" in done.stdout
    assert definition(database) == before


@pytest.fixture(scope="module")
def walked(server, migrate_module):
    """A database that goes through every state, a run of migrate for each, and what was wrong on the way: after each
    run the file's statements are repeated, as after a run that was interrupted before it could note the file.
    """
    database, wrong = Database(server, "walked"), []
    for number, f in enumerate(FILES, start=1):
        migrate_to(database, migrate_module, number)
        before = definition(database)
        for statement in migrate_module.Migration(f).statements:
            try:
                database.query(statement.replace("{database}", database.name))
            except QueryError as e:
                wrong.append(f"{f.name}: {e}")
        if definition(database) != before:
            wrong.append(f"{f.name}, repeated, changed something")
    yield database, wrong
    server.query("DROP DATABASE walked SYNC")


def test_every_earlier_state_is_brought_up_to_date(walked, database):
    assert definition(walked[0]) == definition(database)
    assert walked[0].rows("SELECT count() FROM schema_migrations") == [[str(len(FILES))]]


def test_every_statement_can_be_repeated(walked):
    assert walked[1] == []


@pytest.mark.parametrize("state", [1, 9, 13, 18])
def test_from_an_earlier_state_in_one_run(empty, database, migrate_module, state):
    """Of each of the platform's stages: samples, labels, learning, control."""
    migrate_to(empty, migrate_module, state)
    done = migrate(empty)
    assert done.returncode == 0, done.stderr
    assert len(re.findall("applied", done.stdout)) == len(FILES) - state
    assert definition(empty) == definition(database)


#: The newest file of version 0.2.0, whose installations have rows.
OF_0_2_0 = 18


def made_up(database, table: str) -> list[str]:
    """Rows of any values, some seconds old, in each column of the table; the columns' names."""
    columns = database.rows("SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table ="
                            f" '{table}' AND default_kind NOT IN ('MATERIALIZED', 'ALIAS', 'EPHEMERAL')"
                            " ORDER BY position")
    structure = ", ".join(f"`{name}` {kind}" for name, kind in columns)  # with its quotes escaped, as it came
    now = ", ".join(f"now64(6) - rowNumberInAllBlocks() AS {name}" for name, kind in columns
                    if kind.startswith("DateTime"))
    names = ", ".join(name for name, _ in columns)
    database.query(f"INSERT INTO {table} ({names}) SELECT * REPLACE ({now}) FROM generateRandom('{structure}', 7, 3, 2)"
                   " LIMIT 50", async_insert=0)
    return [name for name, _ in columns]


def values(database, table: str, columns: list[str]) -> list[list[str]]:
    """Every row as text; what a column has nothing to say of is empty, whether 0 was the word for it or NULL is."""
    return sorted(database.rows("SELECT " + ", ".join(f"ifNull(toString({c}), '')" for c in columns)
                                + f" FROM {table}"))


def test_every_row_of_an_earlier_release_is_there_after_an_upgrade(empty, migrate_module):
    migrate_to(empty, migrate_module, OF_0_2_0)
    tables = [name for name, in empty.rows(
        "SELECT name FROM system.tables WHERE database = currentDatabase() AND match(engine, '^(Replacing)?MergeTree$')"
        " AND name NOT LIKE 'schema_%'")]
    assert len(tables) >= 20
    columns = {table: made_up(empty, table) for table in tables}
    before = {table: values(empty, table, columns[table]) for table in tables}
    rollups = [name for name, in empty.rows(
        "SELECT name FROM system.tables WHERE database = currentDatabase() AND match(engine, '(Aggregating|Summing)')")]
    counted = {table: empty.rows(f"SELECT count() > 0 FROM {table}") for table in rollups}
    done = migrate(empty)
    assert done.returncode == 0, done.stderr
    for table in tables:
        assert len(before[table]) == 50 and values(empty, table, columns[table]) == before[table], table
    assert {table: empty.rows(f"SELECT count() > 0 FROM {table}") for table in rollups} == counted


REWRITES = (
    "INSERT INTO rewrite (ap_id, ts, boot_id, batch_seq, flow_id, backend, mac, bundle, class, reason, capacity_kbps,"
    " share_kbps, rate_kbps, cwnd_bytes, queue_us, window_bytes) SELECT 'a', now() - number, 1, number, number + 2, 3,"
    " 4, 5, 6, 7, 8, 9, 10, 11, 12, number * 13 FROM numbers(40)"
)


@pytest.fixture(scope="module")
def action_statements(migrate_module):
    return [s for f in FILES if "_action" in f.name and f.name < "0038" for s in migrate_module.Migration(f).statements]


@pytest.mark.parametrize("interrupted_after", range(9))
def test_rows_of_rewrite_become_rows_of_action_wherever_a_run_is_interrupted(empty, migrate_module, action_statements,
                                                                            interrupted_after):
    """The table of before with its rows, without the rest of the database."""
    server = empty.server
    server.query(f"CREATE DATABASE {empty.name}")
    for f, first in (("0013", "CREATE TABLE IF NOT EXISTS rewrite"), ("0016", "ALTER TABLE rewrite")):
        path, = (g for g in FILES if g.name.startswith(f))
        statement, = (s for s in migrate_module.Migration(path).statements if s.startswith(first))
        empty.query(statement)
    empty.query(REWRITES, async_insert=0, insert_deduplication_token="sent before")
    before = empty.query("SELECT * FROM rewrite ORDER BY ts FORMAT TSVWithNamesAndTypes")
    moving = [s for s in action_statements if "VIEW v_" not in s]
    assert len(moving) == 9 and moving[-1].startswith("CREATE OR REPLACE VIEW rewrite")
    first_file = moving[:-1]
    for statement in first_file[:interrupted_after] + moving:
        empty.query(statement)
    assert empty.query("SELECT * FROM rewrite ORDER BY ts FORMAT TSVWithNamesAndTypes") == before
    assert empty.rows("SELECT DISTINCT policy, kind FROM action") == [["rwnd-fair", "1"]]
    assert empty.rows("SELECT count(), sum(subject), sum(value) FROM action") == [["40", "860", "10140"]]
    # What a writer repeats after the migration adds nothing.
    columns = "ap_id, ts, boot_id, subject, value"
    empty.query(f"INSERT INTO action ({columns}) SELECT {columns} FROM action", async_insert=0,
                insert_deduplication_token="sent before")
    assert empty.rows("SELECT count() FROM action") == [["40"]]


def test_interrupted_run_is_finished_by_the_next(empty, few):
    last = few / FILES[1].name
    good = last.read_text()
    last.write_text(good + "\nSELECT no_such_function();\n")
    done = migrate(empty, "--folder", str(few))
    assert done.returncode == 1 and last.name in done.stderr and "no_such_function" in done.stderr
    last.write_text(good)
    assert migrate(empty, "--folder", str(few)).returncode == 0
    assert empty.rows("SELECT version FROM schema_migrations ORDER BY version") == [["1"], ["2"]]


def test_two_at_once_apply_each_file_once(empty):
    command = [sys.executable, str(FOLDER / "migrate"), "--url", empty.server.url, "--database", empty.name]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    out = [r.communicate(timeout=120) for r in runs]
    assert [r.returncode for r in runs] == [0, 0, 0], out
    assert len(re.findall("applied", "".join(o for o, _ in out))) == len(FILES)
    assert empty.rows("SELECT count(), uniqExact(version) FROM schema_migrations") == [[str(len(FILES))] * 2]
    assert empty.rows("EXISTS schema_migrations_lock") == [["0"]]


def test_a_lock_left_by_a_dead_run_lapses(empty, few, migrate_module, monkeypatch, capsys):
    monkeypatch.setattr(migrate_module, "LOCK_LAPSES_S", 0.3)
    empty.server.query(f"CREATE DATABASE {empty.name}")
    empty.query("CREATE TABLE schema_migrations_lock (held UInt8) ENGINE = Memory COMMENT 'gone:1:0 1'")
    server = migrate_module.Server(empty.server.url, "default", "", empty.name)
    migrate_module.migrate(server, migrate_module.load(few))
    assert "taking over the lock of gone:1:0" in capsys.readouterr().out
    assert empty.rows("SELECT count() FROM schema_migrations") == [["2"]]


def test_a_living_holder_keeps_its_lock(empty, migrate_module, monkeypatch):
    """The second run must wait longer than the lapse, because the first renews."""
    import threading

    monkeypatch.setattr(migrate_module, "LOCK_LAPSES_S", 1.0)
    monkeypatch.setattr(migrate_module, "HEARTBEAT_S", 0.1)
    empty.server.query(f"CREATE DATABASE {empty.name}")
    server = migrate_module.Server(empty.server.url, "default", "", empty.name)
    entered = threading.Event()

    def second():
        with migrate_module.Lock(server):
            entered.set()

    with migrate_module.Lock(server):
        first_mark = empty.rows(
            "SELECT comment FROM system.tables WHERE database = currentDatabase() AND name = 'schema_migrations_lock'")
        thread = threading.Thread(target=second)
        thread.start()
        assert not entered.wait(2.5)
        assert empty.rows(
            "SELECT comment FROM system.tables WHERE database = currentDatabase() AND name = 'schema_migrations_lock'"
        ) != first_mark
    assert entered.wait(30)
    thread.join(30)


def test_a_changed_migration_is_refused_and_nothing_is_done(database, copy):
    (copy / FILES[0].name).write_text(FILES[0].read_text() + "\n-- a harmless comment\n")
    (copy / f"{len(FILES) + 1:04d}_more.sql"
     ).write_text("CREATE TABLE IF NOT EXISTS more (a UInt8) ENGINE = MergeTree ORDER BY a;\n")
    done = migrate(database, "--folder", str(copy))
    assert done.returncode == 1
    assert f"{FILES[0].name} was changed after it was applied" in done.stderr and "write the change as" in done.stderr
    assert database.rows("EXISTS more") == [["0"]]
    assert "CHANGED" in migrate(database, "--folder", str(copy), "--status").stdout


def test_a_new_migration_is_applied_alone(own, copy):
    (copy / f"{len(FILES) + 1:04d}_more.sql").write_text(
        "-- one; two\nCREATE TABLE IF NOT EXISTS more (a UInt8 COMMENT 'x;y') ENGINE = MergeTree ORDER BY a;\nINSERT"
        " INTO more VALUES (7);\n"
    )
    done = migrate(own, "--folder", str(copy))
    assert done.returncode == 0 and re.findall(r"applied (\S+)", done.stdout) == [f"{len(FILES) + 1:04d}_more.sql"]
    assert own.rows("SELECT a FROM more") == [["7"]]
    older = migrate(own)  # the files of an older release, as after a rollback of the platform
    assert older.returncode == 0 and "it is ahead" in older.stdout


def test_a_file_added_in_between_is_refused(own, copy):
    own.query("ALTER TABLE schema_migrations DELETE WHERE version = 2 SETTINGS mutations_sync = 2")
    done = migrate(own)
    assert done.returncode == 1 and "was never applied" in done.stderr


@pytest.mark.parametrize("name, complaint", [("0009_hole.sql", "was expected"), ("6_short.sql", "NNNN_name.sql"),
                                             ("0001_twice.sql", "was expected")])
def test_bad_file_names_are_refused(empty, copy, name, complaint):
    (copy / name).write_text("SELECT 1;\n")
    done = migrate(empty, "--folder", str(copy))
    assert done.returncode == 1 and complaint in done.stderr


def test_unreachable_server_is_named():
    from server import free_port

    done = run_migrate("--url", f"http://127.0.0.1:{free_port()}", "--wait", "0.3")
    assert done.returncode == 1 and "did not answer within 0.3 s" in done.stderr and "HTTP port" in done.stderr


@pytest.fixture
def own_server(tmp_path):
    """Not started."""
    return Server(tmp_path)


def test_waits_until_the_server_is_there(own_server, few):
    late = own_server
    run = subprocess.Popen(
        [sys.executable, str(FOLDER / "migrate"), "--url", late.url, "--wait", "100", "--folder", str(few)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert "waiting for" in run.stdout.readline()
        late.start()
        out, err = run.communicate(timeout=100)
        assert run.returncode == 0, err
        assert "is at" in out
    finally:
        if run.poll() is None:
            run.kill()
            run.wait()
        late.kill()


def test_wrong_password_is_refused_at_once(empty, tmp_path):
    (tmp_path / "password").write_text("wrong\n")
    done = run_migrate("--url", empty.server.url, "--user", "nobody", "--password-file", str(tmp_path / "password"))
    assert done.returncode == 1 and "refused user 'nobody'" in done.stderr
    done = run_migrate("--url", empty.server.url, "--password-file", str(tmp_path / "none"))
    assert done.returncode == 1 and "--password-file" in done.stderr


@pytest.mark.parametrize("arguments",
                         [["--database", "a b"], ["--url", "127.0.0.1:8123"], ["--folder", "/nowhere-at-all"]])
def test_wrong_arguments_are_explained(arguments):
    done = run_migrate(*arguments)
    assert done.returncode == 1 and arguments[1] in done.stderr


def test_help_names_every_option():
    out = run_migrate("--help").stdout
    assert all(o in out for o in ("--url", "--user", "--password-file", "--database", "--status", "--wait", "--folder"))


@pytest.mark.parametrize("text, statements", [
    ("SELECT 1;", ["SELECT 1"]),
    ("SELECT ';';\n-- no; not here\nSELECT 2 /* ; */;", ["SELECT ';'", "SELECT 2"]),
    (r"SELECT 'it\'s; so', 'it''s; so';", [r"SELECT 'it\'s; so', 'it''s; so'"]),
    ('SELECT "a;b", `c;d`;', ['SELECT "a;b", `c;d`']),
    ("SELECT 4 / 2 - 1;", ["SELECT 4 / 2 - 1"]),
    ("-- only a comment\n", []),
    (";;", []),
])
def test_statements_are_told_apart(migrate_module, text, statements):
    assert migrate_module.split(text, "x.sql") == statements


@pytest.mark.parametrize("text, complaint", [("SELECT 1", "does not end in ;"),
                                             ("SELECT 'a;\nSELECT 1;", "line 1: ' is never closed")])
def test_unfinished_statements_are_refused(migrate_module, text, complaint):
    with pytest.raises(migrate_module.Failure, match=complaint):
        migrate_module.split(text, "x.sql")


def test_no_committed_migration_was_changed():
    """Databases out there have the files as they are listed; a new file is listed once it is final."""
    listed = dict(reversed(line.split()) for line in (FOLDER / "migrations" / "SHA256SUMS").read_text().splitlines())
    for f in FILES:
        assert (
            f.name in listed
        ), f"list it once it is final: cd clickhouse/migrations && sha256sum {f.name} >> SHA256SUMS"
        assert hashlib.sha256(f.read_bytes()).hexdigest() == listed[f.name], (
            f"{f.name} was changed: put it back as it was, and write the change as {len(FILES) + 1:04d}_….sql")
    assert sorted(listed) == [f.name for f in FILES]
