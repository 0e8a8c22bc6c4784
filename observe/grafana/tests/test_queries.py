"""Every query of panels, variables, annotations and alert rules, as user grafana, against a real migrated ClickHouse
with data.
"""
import pytest
from oal_grafana import check
from oal_grafana.check import Asker
from oal_grafana.queries import boards, everything

QUERIES = list(everything())


@pytest.fixture(scope="session", params=(900, 6 * 3600), ids=("last 15 minutes", "last 6 hours"))
def results(request, platform):
    """By query; printed as the table that the issue asks for."""
    made = check.run(Asker(platform.as_grafana(), platform.to_s - request.param, platform.to_s))
    print(f"\n{check.table(made)}")
    return {(r.board, r.panel, r.kind): r for r in made}


@pytest.mark.parametrize("query", [pytest.param(q, id=f"{q.board} {q.name} ({q.kind})") for q in QUERIES])
def test_a_query_returns_rows_of_the_shape_that_its_panel_draws(results, query):
    """The data hold every trouble, so not even a query that may be empty is."""
    result = results[query.board, query.name, query.kind]
    assert result.verdict == "ok", result.said
    assert result.rows > 0


def test_nothing_fails_on_a_platform_without_a_row(blank):
    """The first minute of a new installation: panels say "no data", none shows an error."""
    failed = [
        r for r in check.run(Asker(blank.as_grafana(), blank.from_s, blank.to_s)) if r.verdict in ("FAILED", "WRONG")
    ]
    assert failed == [], check.table(failed)


#: Tables with rows by the second or faster: what a panel over a month must not read a month of.
RAW = ("station", "station_ac", "channel", "queue", "beacon", "packet", "flow", "drop_event", "health", "label", "item",
       "batch", "decision", "prediction", "control", "neighbour_ap", "tree_decision", "station_1s", "station_ac_1s",
       "channel_1s", "queue_1s", "packet_1s")


@pytest.fixture(scope="session")
def month(platform):
    """The chosen values of each dashboard over thirty days, and how many rows the raw tables have of the last day."""
    asker = Asker(platform.as_grafana(), platform.to_s - 30 * 86400, platform.to_s)
    day = {
        table: int(rows)
        for table, rows in platform.server.rows(
            f"SELECT table, sum(rows) FROM system.parts WHERE active AND database = 'oal' AND table IN {RAW} AND"
            " toDate(partition) >= toDate(now('UTC')) - 1 GROUP BY table"
        )
    }
    old = platform.server.rows(
        f"SELECT table, sum(rows) FROM system.parts WHERE active AND database = 'oal' AND table IN {RAW} AND"
        " toDate(partition) < toDate(now('UTC')) - 1 GROUP BY table"
    )
    assert len(old) == len(RAW), "there are old rows of each, so that reading them would be seen"
    return asker, {board["title"]: asker.choose_all(board) for board in boards().values()}, day


@pytest.mark.parametrize("query",
                         [pytest.param(q, id=f"{q.board} {q.name} ({q.kind})") for q in QUERIES if q.kind != "alert"])
def test_a_panel_over_a_month_reads_no_month_of_raw_rows(platform, month, query):
    """With 1,000 access points that would be thirty billion rows. What the server says that it would read, table by
    table.
    """
    asker, chosen, day = month
    plan = platform.server.rows(f"EXPLAIN ESTIMATE {asker.expand(query, chosen[query.board])}", database="oal")
    old = {table: rows for _, table, _, rows, _ in plan if table in RAW and int(rows) > day.get(table, 0)}
    assert old == {}, "rows of days ago are read from raw tables"
