"""The join of a capture's flows with their senders, and the committed samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from oal_training.errors import TrainingError
from oal_training.window import dataset

CAPTURES = Path(__file__).resolve().parents[3] / "lab/captures"
S = 1_000_000


def flow(flow_id: int, times, sent):
    return {
        "flow_id": np.full(len(times), flow_id, np.uint64),
        "ts_us": np.array(times, np.int64),
        "sent_bytes": np.array(sent, np.int64),
    }


def told(flow_id: int, times, cwnd, offset_us: int = 0, error_us: int = 100):
    n = len(times)
    return {
        "flow_id": np.full(n, flow_id, np.uint64),
        "ts_us": np.array(times, np.int64),
        "cwnd_bytes": np.array(cwnd, np.int64),
        "clock_offset_us": np.full(n, offset_us),
        "clock_offset_error_us": np.full(n, error_us),
    }


def cwnds(rows, sent, instants):
    pairs = dataset.join(rows, sent, np.array(instants, np.int64))
    return dict(zip(np.array(instants)[pairs["instant"]].tolist(), sent["cwnd_bytes"][pairs["truth"]].tolist()))


def test_a_sample_takes_the_latest_row_and_the_latest_window_not_later_ones():
    rows = flow(1, [1 * S, 1 * S + 100_000], [1000, 2000])
    sent = told(1, [1 * S - 20_000, 1 * S + 90_000, 1 * S + 110_000], [10, 20, 30])
    assert cwnds(rows, sent, [1 * S - 1, 1 * S, 1 * S + 100_000]) == {1 * S: 10, 1 * S + 100_000: 20}


def test_the_senders_clock_is_set_right_before_the_join():
    rows = flow(1, [1 * S, 1 * S + 100_000], [1000, 2000])
    sent = told(1, [8 * S - 20_000, 8 * S + 90_000], [10, 20], offset_us=7 * S)
    assert cwnds(rows, sent, [1 * S, 1 * S + 100_000]) == {1 * S: 10, 1 * S + 100_000: 20}


def test_no_sample_without_a_trustworthy_clock_a_sender_or_traffic():
    rows = flow(1, [1 * S, 1 * S + 100_000, 3 * S], [1000, 2000, 2000])
    good = told(1, [1 * S, 3 * S], [10, 20])
    assert cwnds(rows, good, [1 * S, 3 * S]) == {1 * S: 10}, "nothing was sent for a second: nobody can see the window"
    assert cwnds(rows, told(1, [1 * S], [10], error_us=dataset.MAX_CLOCK_ERROR_US + 1), [1 * S]) == {}
    assert cwnds(rows, told(2, [1 * S], [10]), [1 * S]) == {}
    assert cwnds(rows, told(1, [1 * S - dataset.SENDER_US - 1], [10]), [1 * S]) == {}
    assert cwnds(rows, good, [1 * S + 100_000 + dataset.LIVE_US + 1]) == {}, "the flow is gone at the AP"


def test_flows_do_not_mix():
    a, b = flow(1, [1 * S], [10]), flow(2, [1 * S + 1000], [10])
    rows = {k: np.concatenate([a[k], b[k]]) for k in a}
    x, y = told(2, [1 * S], [222]), told(1, [1 * S], [111])
    sent = {k: np.concatenate([x[k], y[k]]) for k in x}
    pairs = dataset.join(rows, sent, np.array([1 * S + 50_000]))
    assert {int(rows["flow_id"][r]): int(sent["cwnd_bytes"][t]) for r, t in zip(pairs["row"], pairs["truth"])} == {
        1: 111,
        2: 222,
    }


def test_the_committed_samples_are_what_the_captures_give(tmp_path):
    name = "learning2"
    built, source = dataset.build(
        CAPTURES / f"{name}.oalcap",
        CAPTURES / f"{name}.sender.jsonl.gz",
        CAPTURES / f"{name}.items.parquet",
        log=lambda _: None,
    )
    dataset.write(tmp_path / "w.parquet", [(built, source)])
    mine, committed = dataset.read(tmp_path / "w.parquet"), dataset.read(CAPTURES / "window.parquet").of(name)
    assert mine.names == committed.names and mine.inputs == committed.inputs
    assert np.array_equal(mine.x, committed.x, equal_nan=True) and np.array_equal(mine.y, committed.y)
    assert source["flows"] == source["flows_at_ap"], "every flow of the AP has its sender's account"


def test_inputs_are_numbered_as_the_contract_says():
    data = dataset.read(CAPTURES / "window.parquet")
    number = dict(zip(data.names, data.inputs))
    assert number["flow.unacked_bytes"] == -10 and number["backlog_bytes"] == 0 and number["loss_500ms_ago"] == 44
    assert data.only(["backlog_bytes", "flow.unacked_bytes"]).inputs == (0, -10)


def test_captures_of_other_runs_and_other_files_are_refused(tmp_path):
    with pytest.raises(TrainingError, match="same run"):
        dataset.build(
            CAPTURES / "learning2.oalcap",
            CAPTURES / "learning.sender.jsonl.gz",
            CAPTURES / "learning2.items.parquet",
            log=lambda _: None,
        )
    with pytest.raises(TrainingError, match="no complete item"):
        dataset.build(
            CAPTURES / "learning2.oalcap",
            CAPTURES / "learning2.sender.jsonl.gz",
            CAPTURES / "learning.items.parquet",
            log=lambda _: None,
        )
    with pytest.raises(TrainingError, match="not written by `oal-train window dataset`"):
        dataset.read(CAPTURES / "learning.items.parquet")
    with pytest.raises(TrainingError, match="no sample of nowhere"):
        dataset.read(CAPTURES / "window.parquet").of("nowhere")
