"""Every query of panels, variables, annotations and alert rules, as user grafana, against a real migrated ClickHouse
with data.
"""
import math
import re
import statistics

import hosts
import pytest
from oal_grafana import check
from oal_grafana.check import Asker
from oal_grafana.clickhouse import ClickHouse, QueryError
from oal_grafana.queries import Query, boards, everything, of_panel, panels_of
from oal_grafana.select_list import columns

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


@pytest.mark.parametrize("query", [
    pytest.param(q, id=f"{q.board} {q.name}") for q in QUERIES if q.kind in ("table", "timeseries", "state-timeline")
])
def test_a_querys_columns_are_those_that_its_text_names(platform, query):
    """Headers, links and holes are made from the names in the statement."""
    asker = Asker(platform.as_grafana(), platform.to_s - 900, platform.to_s)
    board = next(b for b in boards().values() if b["title"] == query.board)
    sql = query.sql.replace("SELECT * FROM (\nSELECT time,", "SELECT time,", 1)  # of a series with labels
    answer = asker.answer(query, asker.choose_all(board))
    assert columns(sql) == answer.names


#: What a cell may name that nobody has: an access point of another's records, or one that sent nothing in the time.
NAMED_BY_OTHERS = {"written_as"}


CHOSEN_BY_CELL = r"var-(site|ap|model|policy|in_force|host)=\$\{__data\.fields\.(\w+)\}"


def test_a_link_chooses_what_the_dashboard_it_leads_to_can_choose(platform):
    """`online 41`, `all` or an empty name would be a choice of nothing: a dashboard without data."""
    asker, there = Asker(platform.as_grafana(), platform.to_s - 900, platform.to_s), boards()
    chosen = {uid: asker.choose_all(board) for uid, board in there.items()}
    seen = set()
    for uid, board in there.items():
        for panel in panels_of(board):
            if panel["type"] != "table":
                continue
            answer = asker.answer(of_panel(board["title"], panel), chosen[uid])
            for override in panel["fieldConfig"]["overrides"]:
                urls = [link["url"] for p in override["properties"] if p["id"] == "links" for link in p["value"]]
                for url in urls:
                    for name, column in re.findall(CHOSEN_BY_CELL, url):
                        if column in NAMED_BY_OTHERS:
                            continue
                        can = {None, "All", *chosen[re.match(r"/d/([\w-]+)", url).group(1)][name]}
                        cells = {row[answer.names.index(column)] for row in answer.rows}
                        assert cells <= can, f"{panel['title']}, {column}: {cells - can} is no {name} there"
                        seen.add(name)
    assert seen == {"site", "ap", "model", "policy", "in_force", "host"}


def test_an_access_point_that_told_of_no_clock_has_no_clock_error(platform):
    """Its table of batches is empty where only the rollup is kept: 0 µs would be a good clock."""
    (panel,) = [p for p in panels_of(boards()["oal-arriving"]) if p["title"] == "Access points"]
    asker = Asker(platform.as_grafana(), platform.to_s - 900, platform.to_s)
    answer = asker.answer(of_panel("", panel), asker.choose_all(boards()["oal-arriving"]))
    clock, error = answer.names.index("clock"), answer.names.index("clock_error_us")
    assert {row[clock] for row in answer.rows} > {"unknown"}
    assert all((row[error] is None) == (row[clock] == "unknown") for row in answer.rows), answer.rows


def test_an_outage_is_rows_of_null_and_no_line_across(platform):
    """Ten minutes after the last row of an access point its class is unknown, not what it was."""
    (panel,) = [p for p in panels_of(boards()["oal-congested"]) if p["type"] == "state-timeline"]
    query = of_panel("", panel)
    asker = Asker(platform.as_grafana(), platform.from_s, platform.to_s + 600)
    answer = asker.answer(query, asker.choose_all(boards()["oal-congested"]))
    for ap in {row[1] for row in answer.rows}:
        seen = [row[2] for row in answer.rows if row[1] == ap]
        assert seen[0] is not None and seen[-9:] == [None] * 9, ap


def test_airtime_is_a_share_of_time_also_over_hours(platform):
    """A station's first minute has no minute before it: what it grew by is of a time that nobody knows."""
    (panel,) = [p for p in panels_of(boards()["oal-congested"]) if p["title"] == "Airtime by station"]
    asker = Asker(platform.as_grafana(), platform.to_s - 6 * 3600, platform.to_s)
    answer = asker.answer(of_panel("", panel), asker.choose_all(boards()["oal-congested"]))
    shares = [row[2] for row in answer.rows if row[2] is not None]
    assert shares and max(shares) <= 1


def test_a_rule_that_cannot_be_asked_is_counted_where_a_rule_looks(platform):
    """With `execErrState` OK a broken rule would be silent."""
    alerts = ClickHouse(platform.url, "grafana_alerts", "grafana's secret")
    (rule,) = [q for q in QUERIES if q.name == "Alert rules cannot be evaluated"]
    before = alerts.ask(rule.sql).rows[0][0]
    with pytest.raises(QueryError):
        alerts.ask("SELECT 1 FROM oal.v_that_a_migration_forgot")
    assert alerts.ask(rule.sql).rows[0][0] == before + 1


#: Counts of what should not happen: without a row there were none.
COUNTS_OF_EVENTS = {"Sending", "Batches missing", "Late batches", "Refused", "False senders"}


def test_a_figure_of_a_platform_without_a_row_is_unknown_and_not_zero(blank):
    """A 0 would be in the colour of good."""
    asker = Asker(blank.as_grafana(), blank.from_s, blank.to_s)
    for board in boards().values():
        chosen = asker.choose_all(board)
        for panel in panels_of(board):
            if panel["type"] in ("stat", "gauge") and panel["title"] not in COUNTS_OF_EVENTS:
                rows = asker.answer(of_panel(board["title"], panel), chosen).rows
                assert all(value in (None, "nan") for row in rows for value in row), panel["title"]


#: Tables with rows by the second or faster: what a panel over a month must not read a month of.
RAW = ("station", "station_ac", "channel", "queue", "beacon", "packet", "flow", "drop_event", "health", "label", "item",
       "batch", "decision", "prediction", "control", "neighbour_ap", "tree_decision", "station_1s", "station_ac_1s",
       "channel_1s", "queue_1s", "packet_1s", "loss_event", "sender_tcp", "sender_session")


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


def test_where_a_user_loses_is_what_the_losses_say(platform):
    """Queue or air is one that is twice the other, of ten at least; what is not counted is not called nowhere."""
    (panel,) = [p for p in panels_of(boards()["oal-congested"]) if p["title"] == "Queue or air, for this user"]
    asker = Asker(platform.as_grafana(), platform.to_s - 900, platform.to_s)
    chosen = asker.choose_all(boards()["oal-congested"])
    answer = asker.answer(of_panel("", panel), chosen)
    rows = [dict(zip(answer.names, row)) for row in answer.rows]
    counted = {
        station: tuple(map(int, of)) for station, *of in platform.server.rows(
            "SELECT if(station_mac = 0, 'unknown', MACNumToString(station_mac)) AS station,"
            " sumIf(pkts, cause = 'queue'), sumIf(pkts, cause = 'air'), sumIf(pkts, cause = 'both')"
            f" FROM oal.loss_event WHERE ap_id = '{chosen['detail'][0]}' AND ts >= {platform.to_s - 900}"
            f" AND ts <= {platform.to_s} GROUP BY station")
    }
    assert rows and any(row["lost_in"] in ("queue", "air") for row in rows)
    for row in rows:
        queue, air, either = counted.get(row["station"], (0, 0, 0))
        assert (row["lost_in_queue"], row["lost_on_air"], row["either"]) == (queue, air, either), row
        if queue + air + either == 0:
            assert row["lost_in"] == ("not known" if row["not_counted"] else "nowhere"), row
        elif queue + air + either < 10:
            assert row["lost_in"] == "too few", row
        else:
            want = "queue" if queue >= 2 * air else "air" if air >= 2 * queue else "both"
            assert row["lost_in"] == want, row


def test_a_station_that_told_of_itself_and_lost_nothing_has_0_and_not_a_hole(platform):
    (panel,) = [p for p in panels_of(boards()["oal-congested"]) if p["title"] == "Queue or air: lost a second"]
    asker = Asker(platform.as_grafana(), platform.from_s, platform.to_s + 600)
    answer = asker.answer(of_panel("", panel), asker.choose_all(boards()["oal-congested"]))
    seen = [row[1] for row in answer.rows]
    assert 0 in seen and max(value for value in seen if value is not None) > 0


def _table(platform, uid: str, title: str) -> list[dict]:
    (panel,) = [p for p in panels_of(boards()[uid]) if p["title"] == title and p["type"] == "table"]
    asker = Asker(platform.as_grafana(), platform.to_s - 900, platform.to_s)
    answer = asker.answer(of_panel("", panel), asker.choose_all(boards()[uid]))
    return [dict(zip(answer.names, row)) for row in answer.rows]


def test_what_a_congestion_control_gained_is_what_its_connections_say(platform):
    """Reckoned anew from single connections: geometric mean of speeds, mean round trip above the least, mean share."""
    speeds, above, again = ({} for _ in range(3))
    for host, prefix, control, *figures in platform.server.rows(
            "SELECT ap_id, client_prefix % 256, congestion_control, bytes_acked, busy_us, rtt_mean_us, min_rtt_us,"
            " retrans_pkts, data_segs_out FROM oal.sender_session WHERE congestion_control != '' AND data_segs_out > 10"
            f" AND ts >= {(platform.to_s - 900) // 60 * 60} AND toStartOfMinute(ts) < {platform.to_s}"):
        sent, busy, mean, least, repeated, segments = map(int, figures)
        for of, value in ((speeds, math.log(sent * 8000 / busy)), (above, (mean - least) / 1000),
                          (again, repeated / segments)):
            of.setdefault((host, prefix, control), []).append(value)
    seen = set()
    for row in _table(platform, "oal-hosts", "Gained by network"):
        of = row["host"], row["client_network"].split(".")[2]
        here, there = (*of, row["algorithm"]), (*of, row["compared_with"])
        if row["host"] not in hosts.HOSTS:
            continue
        if min(len(speeds[here]), len(speeds.get(there, []))) < 20:
            assert row["beyond_chance"] == "too few", row
            assert {row[name] for name in ("speed_gain", "rtt_above_gain_ms", "sent_again_gain")} == {None}, row
            continue
        for name, values, gain, rounded in (("speed_gain", speeds, math.expm1, 1e-4),
                                            ("rtt_above_gain_ms", above, float, 1e-2),
                                            ("sent_again_gain", again, float, 1e-5)):
            wanted = gain(statistics.fmean(values[here]) - statistics.fmean(values[there]))
            assert row[name] == pytest.approx(wanted, abs=rounded), row
        within = 1.96 * math.sqrt(sum(statistics.variance(speeds[x]) / len(speeds[x]) for x in (here, there)))
        faster = statistics.fmean(speeds[here]) - statistics.fmean(speeds[there]) > within
        assert ("faster" in row["beyond_chance"]) == faster, row
        assert (row["sessions"], row["sessions_there"]) == (len(speeds[here]), len(speeds[there]))
        seen.add((row["host"], row["algorithm"], faster))
    assert seen == {("cache-1", "bbr", True), ("cache-1", "bbr", False), ("vpn-1", "oal_lc", True)}


def test_gains_of_networks_are_added_up_by_what_they_say(platform):
    """A network that has too few connections adds nothing; of the others one counts by its connections."""
    networks = [row for row in _table(platform, "oal-hosts", "Gained by network")
                if row["host"] == "cache-1" and row["algorithm"] == "bbr" and row["speed_gain"] is not None]
    (sum_of,) = [row for row in _table(platform, "oal-hosts", "Gained by congestion control")
                 if row["host"] == "cache-1" and row["algorithm"] == "bbr"]
    assert sum_of["networks"] == len(networks) == 2 and sum_of["sessions"] == sum(n["sessions"] for n in networks)
    weights = [n["sessions"] * n["sessions_there"] / (n["sessions"] + n["sessions_there"]) for n in networks]
    wanted = sum(w * n["rtt_above_gain_ms"] for w, n in zip(weights, networks)) / sum(weights)
    assert sum_of["rtt_above_gain_ms"] == pytest.approx(wanted, abs=1e-2)


def test_what_a_host_does_not_know_is_no_0(platform):
    """One host has told of ends only, and of connections that were over before a look; none of its health."""
    (agent,) = [row for row in _table(platform, "oal-hosts", "Host agents") if row["host"] == "cache-2"]
    unknown = ("version", "rows_per_s", "connections", "looked_at_each_ms", "cpu", "memory")
    assert {agent[name] for name in unknown} == {None}, agent
    (network,) = [row for row in _table(platform, "oal-hosts", "Networks") if row["host"] == "cache-2"]
    assert (network["algorithm"], network["client_network"]) == ("not known", "2001:db8:0:7::/64")
    assert {network[name] for name in ("throughput_kbps", "rtt_min_ms", "rtt_above_ms", "ce_ratio")} == {None}, network


def test_a_network_that_a_table_names_can_be_chosen(platform):
    """One is shown over time; the list has all of the chosen hosts."""
    asker, board = Asker(platform.as_grafana(), platform.to_s - 900, platform.to_s), boards()["oal-hosts"]
    (listed,) = [v for v in board["templating"]["list"] if v["name"] == "network"]
    rows = asker.answer(Query("", "network", "variable", listed["query"]), asker.choose_all(board)).rows
    named = {row["client_network"] for title in ("Networks", "Gained by network")
             for row in _table(platform, "oal-hosts", title)}
    assert len(named) > 5 and named == {network for (network,) in rows}


def test_what_was_chosen_is_named_and_a_choice_given_up_is_no_congestion_control(platform):
    rows = {(row["host"], row["client_network"]): row for row in _table(platform, "oal-hosts", "Chosen by network")}
    assert {key: (row["algorithm"], row["reason"], row["backend"]) for key, row in rows.items()} == {
        ("cache-1", "198.51.1.0/24"): ("bbr", "class", "bpf"),
        ("cache-1", "198.51.2.0/24"): ("vegas", "explore", "bpf"),
        ("vpn-1", "198.51.1.0/24"): ("bbr", "class", "shadow"),
        ("vpn-1", "198.51.2.0/24"): ("vegas", "explore", "shadow")}
    (latest,) = [p for p in panels_of(boards()["oal-control"]) if p["title"] == "Latest actions"]
    asker = Asker(platform.as_grafana(), platform.to_s - 900, platform.to_s)
    answer = asker.answer(of_panel("", latest), asker.choose_all(boards()["oal-control"]))
    done = {row[answer.names.index("done")] for row in answer.rows if row[answer.names.index("action")] == "cc"}
    assert done == {"bbr", "vegas", "given up"}
