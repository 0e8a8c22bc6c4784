"""The kernel module that samples stations, on both of its kernels, beside an exporter that asks nl80211: the same rows,
and none of what goes wrong around it is lost or harms.
"""
import re

import pytest
from sampler import inside, run

#: Not of the station: who says it and when; the time since it was heard, which runs.
NOT_STATE = ("ap_id", "boot_id", "seq", "ts_us", "inactive_ms")
#: A keyframe of everything is in each batch. Shorter than the quiet before a mark.
BATCH_US = 1_000_000
#: Reach of the project for ten stations: of what samples. The whole process has them and what is below.
CALLS_A_SECOND = 40
#: Of the tick thread: ten rests, and what is done once a second.
TICK_CALLS_A_SECOND = 40
WHOLE_CALLS_A_SECOND = 110


@pytest.fixture(scope="module", params=run.KERNELS)
def seen(request, tmp_path_factory):
    return run.play(run.built(request.param), tmp_path_factory.mktemp("sampler"))


def state(seen: dict, source: str, mark: str) -> dict[tuple, dict]:
    """Each station's last rows at the mark, by what they are about."""
    at_us, last = seen["marks"][mark], {}
    for row in seen["rows"][source]:
        if row["table"] in ("station", "station_ac") and at_us - BATCH_US < row["ts_us"] <= at_us:
            key = (row["table"], row["mac"], row.get("ac"))
            if key not in last or last[key]["ts_us"] <= row["ts_us"]:
                last[key] = row
    return {key: {name: row[name] for name in row if name not in NOT_STATE} for key, row in last.items()}


def test_plays_to_its_end(seen):
    assert "error" not in seen, seen["error"]
    assert seen["steps"] == [step.__name__ for step in inside.STEPS]


@pytest.mark.parametrize("mark", ["traffic", "backlog", "left", "back", "interface back", "many"])
def test_the_same_rows_as_nl80211(seen, mark):
    by_nl80211, by_module = state(seen, "nl80211", mark), state(seen, "auto", mark)
    assert by_module == by_nl80211
    stations = {key[1] for key in by_module}
    assert len(stations) == {"left": 1, "many": inside.ADDED + 2}.get(mark, 2)


def test_every_counter_moved(seen):
    """Else the rows are the same because they are empty."""
    rows = state(seen, "auto", "traffic")
    station = rows["station", "02:00:00:00:01:00", None]
    for column in ("rx_bytes", "tx_bytes", "rx_pkts", "tx_pkts", "tx_bitrate_kbps", "rx_bitrate_kbps", "signal_dbm"):
        assert station[column], column
    voice = [row for key, row in rows.items() if key[0] == "station_ac" and key[2] in (0, 1)]
    assert any(row["msdu_pkts"] >= 10 for row in voice)


def test_frames_that_wait_are_seen(seen):
    assert "7 packets transmitted, 0 received" in seen["unanswered"]
    best_effort = state(seen, "auto", "backlog")["station_ac", "02:00:00:00:01:00", 2]
    assert best_effort["backlog_pkts"] == 7 and best_effort["backlog_bytes"] > 7 * 500
    depths = [row["backlog_pkts"] for row in seen["rows"]["auto"] if row["table"] == "station_ac"]
    assert set(range(8)) <= set(depths), "each of them, as they came"


def test_what_it_cannot_do_it_refuses(seen):
    assert seen["mode"] == "0o600"
    assert seen["refused"] == {
        "version": "EPROTO", "loopback": "ENOTSUP", "no interface": "ENODEV", "ring": "EINVAL", "stations": "EINVAL",
        "tick": "EINVAL", "none": 0, "other size": "EINVAL"
    }


def test_it_is_not_unloaded_while_it_is_mapped(seen):
    assert "in use" in seen["unload"]
    assert seen["after unload"]["source"] == "module"


def test_an_interface_that_goes_away_comes_back(seen):
    assert seen["nl80211"] == {"interface": "wlan0", "source": "nl80211"}
    assert seen["gone"]["source"] == "nl80211" and seen["gone"]["instead"] == "the interface went away"
    assert state(seen, "auto", "interface back")


def test_stations_that_come_and_go_amid_reads(seen):
    """Those that came back between two looks keep with nl80211 what they had before; the module sees that they left."""
    counters = [{
        key: [row[name] for name in ("rx_bytes", "tx_bytes", "rx_pkts", "tx_pkts", "tx_failed", "rx_drop_misc")]
        for key, row in state(seen, source, "after overrun").items() if key[0] == "station"
    } for source in ("auto", "nl80211")]
    assert counters[0] == counters[1] and len(counters[0]) == inside.ADDED + 2


def test_a_reader_that_stands_still_loses_records_and_they_are_counted(seen):
    idle, mad = seen["idle reader"], seen["mad reader"]
    assert idle["stations"] == inside.ADDED + 2 and idle["records_lost"] > inside.ADDED
    assert idle["head"] <= idle["ring_bytes"]
    assert mad["head"] == idle["head"] and mad["records_lost"] > idle["records_lost"]


def test_an_exporter_that_stood_still_goes_on_with_nl80211_and_returns(seen):
    assert seen["overrun"]["instead"] == "its ring overran" and seen["overrun"]["records_lost"] > 0
    assert seen["after overrun"]["source"] == "module"
    assert seen["after overrun"]["records_lost"] == seen["overrun"]["records_lost"]


def test_system_calls_of_ten_stations(seen):
    """All have traffic. The tick thread takes one a rest, and reading the ring takes none."""
    by_nl80211, by_module = ({who: sum(of.values()) for who, of in seen["calls"][source].items()}
                             for source in ("nl80211", "auto"))
    assert by_module["sampler"] <= CALLS_A_SECOND, seen["calls"]
    assert by_nl80211["sampler"] > 10 * CALLS_A_SECOND, "the trace sees them"
    assert 10 <= by_module["tick"] <= TICK_CALLS_A_SECOND, seen["calls"]
    assert by_nl80211["tick"] < 130, "a rest of five ticks, and what is done once a second"
    assert sum(by_module.values()) <= WHOLE_CALLS_A_SECOND, seen["calls"]
    radio, = seen["status"]["auto"]["stations"]
    assert radio["source"] == "module" and radio["records_lost"] == 0


def test_it_ends_and_is_unloaded(seen):
    assert seen["ended"] == {"nl80211": 0, "auto": 0}
    assert seen["unload at last"] == "" and not seen["still there"]


def test_the_kernel_has_nothing_to_complain_of(seen):
    """Built with its own checks of locks, sleeps and lists."""
    bad = re.compile(r"WARNING|BUG|Oops|Call Trace|suspicious|possible .* detected|inconsistent|refcount|corrupt")
    complaints = [line for line in seen["kernel log"].splitlines() if bad.search(line)]
    assert complaints == []
