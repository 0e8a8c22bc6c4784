"""The helpers of `make soak`, without a platform: figures and their bounds, clocks, tapes, slopes."""

from __future__ import annotations

import errno
import subprocess
import sys
import time

import pytest
from oal_schema.codec import decode
from oal_schema.features import Interpreter
from soak import clock, figures, resources
from soak.drills.list import DRILLS
from soak.drills.polls import SAID, seconds
from soak.figures import Figure
from soak.tape import PlayedAp, Tape, vector_hash


def test_figures_are_kept_with_their_bounds(tmp_path):
    made = [Figure("d.lost", 0, "rows", "of all", ("==", 0)), Figure("d.slow", 3.5, "s", "", ("<=", 2)),
            Figure("d", 1, "")]
    figures.write("d", made, tmp_path)
    assert figures.read("d", tmp_path) == made
    assert [f.met for f in made] == [True, False, True]
    assert "NOT MET" in made[1].row() and "NOT MET" not in made[0].row()


def test_every_drill_says_what_it_does():
    assert all((drill.run.__doc__ or "").strip() for drill in DRILLS.values())
    assert sum(drill.limit_s for drill in DRILLS.values()) > 0


def test_a_clock_is_set_and_runs_faster_for_programs_that_have_it(tmp_path):
    clocks = tmp_path / "clocks"
    clocks.mkdir()
    everyone, apart = clock.Clock(clocks), clock.Clock(clocks, "some-word")
    everyone.step(3600)
    apart.step(-3600)
    ask = "import time; print(time.time())"

    def ahead(*words: str) -> float:
        with clock.preloaded(tmp_path, clocks):
            done = subprocess.run([sys.executable, "-c", ask, *words], capture_output=True, text=True, check=True)
        return float(done.stdout) - time.time()

    assert ahead() == pytest.approx(3600, abs=60)
    assert ahead("some-word") == pytest.approx(-3600, abs=60)
    before = everyone.now_us()
    everyone.run(1_000_000)
    while everyone.now_us() < before + 1_000_000:
        pass
    everyone.run(1)
    assert everyone.ahead_s() > 3600


def test_who_waits_until_a_time_of_a_clock_that_is_ahead_waits_no_longer(tmp_path):
    """As librdkafka does."""
    clocks = tmp_path / "clocks"
    clocks.mkdir()
    clock.Clock(clocks).step(3600)
    wait = ("import ctypes, time; t = time.time() + 0.01; c, m = (ctypes.create_string_buffer(64) for _ in 'cm');"
            "at = (ctypes.c_long * 2)(int(t), int(t % 1 * 1e9)); libc = ctypes.CDLL(None);"
            "libc.pthread_mutex_lock(m); print(libc.pthread_cond_timedwait(c, m, at))")
    with clock.preloaded(tmp_path, clocks):
        done = subprocess.run([sys.executable, "-c", wait], capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) == errno.ETIMEDOUT


def test_a_tape_played_three_times_has_the_features_that_it_says():
    tape = Tape(rounds=2, packets=6, stations=1)
    ap = PlayedAp("ap-1", 5, tape, 1_000_000_000_000_000, 1, b"k" * 32)
    interpreter, said, computed = Interpreter(tape.program), {}, {}
    for n in range(3 * tape.intervals + 5):
        records = ap.interval()
        batches = [decode(topic, record, "ap-1") for topic, (_, record, _) in enumerate(records)]
        assert all(b.header["seq"] == n and b.header["t0_us"] == ap.start_us + n * tape.interval_us for b in batches)
        for table in {key[0] for key in ap.ledger} - {"batch"}:
            assert ap.ledger[table, 5, n] == sum(len(b.tables.get(table, [])) for b in batches)
        said |= {row["instant_us"]: row["features_hash"] for row in batches[2].tables.get("decision", [])}
        computed |= {instant: vector_hash(values) for instant, values in interpreter.feed(*batches[:2])}
    assert computed and all(said[instant] == found for instant, found in computed.items())
    assert ap.decisions == len(said)


def test_growth_follows_the_line_and_not_the_noise():
    flat = [(hour, 100 + hour % 2) for hour in range(24)]
    assert abs(resources.growth(flat)) < 0.01
    assert resources.growth([(hour, 100 + 10 * hour) for hour in range(11)]) == pytest.approx(2 / 3)
    samples = [(float(hour), {"transactional_ids": 4, "file_handles.kafka": 100 + 9 * hour,
                              "stored_bytes.kafka": 1e6 * hour}) for hour in range(24)]
    found = {f.name: f for f in resources.figures("day", samples)}
    assert found["day.transactional_ids.growth"].met and not found["day.file_handles.kafka.growth"].met
    assert found["day.stored_bytes.kafka.faster"].met
    merges = [(float(hour), {"file_handles.clickhouse": 150 + 80 * (hour > 18 and hour % 3 > 0)}) for hour in range(24)]
    assert {f.name: f for f in resources.figures("day", merges)}["day.file_handles.clickhouse.growth"].met
    assert found["day.stored_bytes.kafka.per_hour"].value == 1e6


def test_durations_of_go():
    said = SAID.search("a kill was heard by 1000 of 1000 APs; median 31.5ms, p99 1m2.5s, last 1.2s (no bound)")
    assert said and [seconds(word) for word in said.groups()[2:]] == [0.0315, 62.5, 1.2]
