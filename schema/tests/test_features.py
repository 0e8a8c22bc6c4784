"""The reference interpreter, on cases small enough to work out by hand, and the compiler's refusals."""

import pytest
from oal_schema import golden_batches, settings
from oal_schema.codec import Batch, contract
from oal_schema.features import Interpreter, increment, sat, tdiv
from oal_schema.program_compile import INT64_MAX, INT64_MIN, MISSING, compile_program
from oal_schema.program_file import from_bytes, to_bytes
from oal_schema.tables import SchemaError

T0 = golden_batches.T0  # a multiple of 100 ms


def run(features, rows, table="station_ac", n=4, **header):
    """Values per instant for rows of one samples batch per 252 ms."""
    program = compile_program(
        {"name": "t", "features": features}, contract().table, contract().settings["decision_interval_us"]
    )
    it = Interpreter(program.words)
    out = []
    for seq in range(n):
        t0 = T0 + seq * 252_000
        mine = [
            golden_batches.empty_row(contract().table(table)) | r | {"tick": (T0 + r["at"] - t0) // 4000}
            for r in rows
            if t0 <= T0 + r["at"] < t0 + 252_000
        ]
        for r in mine:
            del r["at"]
        out += [v for _, v in it.feed(Batch(0, golden_batches.batch_header(seq, t0, **header), {table: mine}))]
    return out


def test_time_weighted_mean_does_not_depend_on_dedup():
    f = [{"name": "m", "op": "mean", "input": "station_ac.backlog_bytes", "group": "sum", "window": 1}]
    sparse = run(f, [{"at": 4000, "backlog_bytes": 100}, {"at": 52000, "backlog_bytes": 300}])
    dense = run(f, [{"at": t, "backlog_bytes": 100 if t < 52000 else 300} for t in range(4000, 104000, 4000)])
    assert sparse[1] == dense[1] == [(100 * 48000 + 300 * 48000) // 96000]


def test_max_includes_the_value_held_from_before():
    f = [{"name": "m", "op": "max", "input": "station_ac.backlog_bytes", "group": "max", "window": 1}]
    got = run(f, [{"at": 4000, "backlog_bytes": 900}, {"at": 152000, "backlog_bytes": 10}])
    assert [v[0] for v in got[1:3]] == [900, 900]


def test_rate_is_per_second_over_the_window():
    f = [{"name": "r", "op": "rate", "input": "station_ac.tx_bytes", "group": "sum", "window": 2, "mul": 8}]
    got = run(f, [{"at": 4000, "tx_bytes": 0}, {"at": 60000, "tx_bytes": 1000}, {"at": 160000, "tx_bytes": 3000}])
    assert [v[0] for v in got[1:3]] == [5000 * 8, 15000 * 8]


def test_an_entity_without_rows_in_a_batch_is_gone():
    f = [{"name": "n", "op": "last", "input": "station_ac.backlog_bytes", "group": "sum"}]
    got = run(f, [{"at": 4000, "backlog_bytes": 7}, {"at": 508000, "backlog_bytes": 9}])
    # present through the batch that holds it, dropped when the next batch ends without it
    assert [v[0] for v in got] == [0, 7, 7, 7, 7, 7, 9, 9]


@pytest.mark.parametrize(
    "old,new,bits,expected",
    [(5, 9, 32, 4), (9, 5, 0, -4), ((1 << 32) - 1, 4, 32, 5), (100, 4, 32, 4), ((1 << 40), 3, 64, 3)],
)
def test_increment(old, new, bits, expected):
    assert increment(old, new, bits) == expected


def test_arithmetic_truncates_and_saturates():
    assert (tdiv(-7, 2), tdiv(7, -2), tdiv(7, 2)) == (-3, -3, 3)
    assert sat(1 << 70) == INT64_MAX and sat(-(1 << 70)) == INT64_MIN


def test_lag_and_ratio_of_nothing_are_missing():
    f = [
        {"name": "a", "op": "last", "input": "station_ac.backlog_bytes", "group": "max"},
        {"name": "l", "op": "lag", "a": "a", "window": 1},
        {"name": "q", "op": "ratio", "a": "a", "b": "a", "scale": 10},
    ]
    got = run(f, [{"at": 4000, "backlog_bytes": 0}, {"at": 104000, "backlog_bytes": 4}])
    assert got[0] == [MISSING] * 3 and got[1] == [0, MISSING, MISSING] and got[2] == [4, 0, 10]


def test_program_bytes_round_trip():
    p = contract().programs[0]
    assert from_bytes(to_bytes(p.words, p.decision_interval_us)) == (p.words, p.decision_interval_us)
    with pytest.raises(ValueError):
        from_bytes(to_bytes(p.words, 1)[:-8])


@pytest.mark.parametrize(
    "feature,says",
    [
        ({"name": "x", "op": "median", "input": "station.tx_bytes", "group": "sum"}, "unknown operator"),
        ({"name": "x", "op": "last", "input": "station.nope", "group": "sum"}, "no column nope"),
        ({"name": "x", "op": "last", "input": "station.mac", "group": "sum"}, "KEY"),
        ({"name": "x", "op": "sum", "input": "station.tx_bytes", "group": "sum"}, "event tables"),
        ({"name": "x", "op": "last", "input": "station.tx_bytes"}, "group"),
        ({"name": "x", "op": "lag", "a": "later", "window": 1}, "earlier feature"),
        ({"name": "x", "op": "delta", "input": "station.tx_bytes", "group": "sum", "window": 65}, "out of range"),
        ({"name": "x", "op": "last", "input": "station.tx_bytes", "group": "sum", "windw": 2}, "unknown key windw"),
    ],
)
def test_compiler_names_what_is_wrong(feature, says):
    with pytest.raises(SchemaError, match=says):
        compile_program({"name": "t", "features": [feature]}, contract().table, 100_000, "t.yaml")


def test_a_row_alone_gives_what_it_says_and_nothing_of_rows_before_it():
    table = contract().table("sender_session")
    f = [
        {"name": "again", "op": "sum", "input": "sender_session.retrans_pkts", "group": "total"},
        {"name": "sent", "op": "sum", "input": "sender_session.data_segs_out", "group": "total"},
        {"name": "mean", "op": "sum", "input": "sender_session.rtt_mean_us", "group": "total"},
        {"name": "ppm", "op": "ratio", "a": "again", "b": "sent", "scale": 1_000_000},
    ]
    program = compile_program(
        {"name": "t", "features": f}, contract().table, contract().settings["decision_interval_us"]
    )
    empty = golden_batches.empty_row(table)
    unlooked = 1 << next(c.optional for c in table.columns if c.name == "rtt_mean_us")
    for it in (Interpreter(program.words), Interpreter(program.words, settings.interpreted())):
        assert it.row("sender_session", empty | {"retrans_pkts": 3, "data_segs_out": 200, "rtt_mean_us": 9}) == [
            3, 200, 9, 15_000
        ]
        assert it.row("sender_session", empty | {"absent": unlooked}) == [0, 0, MISSING, MISSING]
