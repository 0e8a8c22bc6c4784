"""Items from files: OAL's own, and tables that know nothing of OAL."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from oal_training.batch import experiment, run
from oal_training.cli import main
from oal_training.errors import TrainingError
from oal_training.stored import jsonl, parquet
from oal_training.stored.items import MISSING, UNKNOWN

CAPTURES = Path(__file__).resolve().parents[3] / "lab" / "captures"


def quiet(_line: str) -> None:
    pass


def item(ts_us: int, **changes) -> dict:
    return {
        "ap_id": "ap-1",
        "site": "s",
        "ts_us": 1 + ts_us,
        "boot_id": 2**63 + 7,
        "feature_hash": 2**64 - 1,
        "features": [ts_us % 7, MISSING, 2**53],
        "horizon_us": 200_000,
        "class_now": 0,
        "class": 1,
        "loss_ratio": 0.02,
        "offered_pkts": 10,
        "complete": True,
    } | changes


def lines(path: Path, rows: list) -> Path:
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows) + "\n")
    return path


def test_json_lines_to_parquet_and_back_lose_nothing(tmp_path):
    source = lines(tmp_path / "items.jsonl", [item(100_000 * i, complete=i != 3) for i in range(20)])
    capture = lines(tmp_path / "x.oalcap", ["capture"])
    assert jsonl.convert(source, tmp_path / "items.parquet", capture)[0] == 20
    columns, metadata = parquet.read_columns(tmp_path / "items.parquet")
    before = jsonl.read(source)
    for name, values in before.items():
        assert (columns[name] == values).all(), name
    assert (
        metadata["capture"] == "x.oalcap"
        and metadata["capture_sha256"] == parquet.sha256(capture)
        and metadata["items_sha256"] == parquet.sha256(source)
    )
    items = parquet.read(tmp_path / "items.parquet", log=quiet)
    assert len(items) == 19, "the item with a gap is left out"
    assert np.isnan(items.x[:, 1]).all() and (items.x[:, 2] == 2**53).all()
    assert (
        items.source["rows"] == 19
        and items.source["left_out_incomplete"] == 1
        and items.source["feature_hash"] == "f" * 16
    )


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (["{"], "line 1: not JSON"),
        ([item(0), {"ap_id": "x"}], "line 2: ts_us is missing"),
        ([], "line 1: not JSON"),
        ([item(0), item(1, feature_hash=5)], "2 feature programs"),
    ],
)
def test_what_is_no_item_is_named_by_line(tmp_path, rows, says):
    with pytest.raises(TrainingError, match=says):
        jsonl.read(lines(tmp_path / "x.jsonl", rows))


@pytest.mark.parametrize("name", ["learning", "learning2"])
def test_committed_items_are_those_of_the_committed_capture(name):
    _, metadata = parquet.read_columns(CAPTURES / f"{name}.items.parquet")
    assert metadata["capture_sha256"] == parquet.sha256(
        CAPTURES / f"{name}.oalcap"
    ), "the capture is newer; run `make -C training items`"
    assert (CAPTURES / f"{name}.items.parquet").stat().st_size <= 2 << 20


def test_ap_site_and_range_choose_items(learning):
    begin, end = int(learning.ts_us[100]), int(learning.ts_us[200])
    some = parquet.read(
        CAPTURES / "learning.items.parquet", ap=learning.groups[0], begin_us=begin, end_us=end, log=quiet
    )
    assert (some.ts_us[0], some.ts_us[-1]) == (begin, int(learning.ts_us[199]))
    with pytest.raises(TrainingError, match=f"APs there: {learning.groups[0]}"):
        parquet.read(CAPTURES / "learning.items.parquet", ap="nobody", log=quiet)


def foreign(learning, path: Path, **changes) -> Path:
    """A table of another house: seconds, names of classes, routers, no class now."""
    table = {
        "router": learning.group,
        "t": learning.ts_us / 1e6,
        "verdict": [learning.classes[c].upper() for c in learning.y],
        "note": "text",
    }
    table |= {f"m{i}": learning.x[:, i] for i in range(12)}
    pd.DataFrame(table | changes).to_parquet(path)
    return path


SPEC = {"group": "router", "time": "t", "time_unit": "s", "label": "verdict"}


def test_a_table_with_other_columns_goes_the_same_way(learning, tmp_path):
    items = parquet.read(foreign(learning, tmp_path / "f.parquet"), SPEC, log=quiet)
    assert (
        items.names == tuple(f"m{i}" for i in range(12))
        and (items.y == learning.y).all()
        and abs(items.ts_us - learning.ts_us).max() <= 1
    )
    known = items.now != UNKNOWN
    assert (
        known.mean() > 0.99 and (items.now[known] == learning.now[known]).mean() > 0.99
    ), "the class now follows from earlier labels"
    text = "name: f\nmodel: {kind: decision_tree, params: {max_leaf_nodes: 8}}"
    parts, skipped = run.evaluate(items, experiment.parse(text, "f"), quiet)
    own, _ = run.evaluate(learning, experiment.parse(text, "f"), quiet)
    assert list(parts[0].scores) == list(own[0].scores) == ["decision_tree", "persistence"]
    assert parts[0].split == own[0].split and len(skipped) == 1


def test_labels_may_be_ratios_that_bounds_cut(learning, tmp_path):
    ratio = np.array([0.0, 0.02, 0.07, 0.5])[learning.y]
    path = foreign(learning, tmp_path / "f.parquet", verdict=ratio)
    items = parquet.read(path, SPEC | {"target": {"bounds": [0.01, 0.05, 0.12]}, "features": ["m1", "m2"]}, log=quiet)
    assert (items.y == learning.y).all() and items.names == ("m1", "m2")
    assert np.nanmax(items.loss_now) == 0.5, "and the ratio of the window that ends now is known"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"label": "klass"}, "no column klass"),
        ({"features": ["m1", "m99"]}, "no feature column m99"),
        ({"time_unit": "hour"}, "columns.time_unit 'hour' is none of s, ms, us"),
        (
            {"target": {"classes": ["no", "yes"], "congested_from": 1}},
            "label ACCEPTABLE, BAD, GOOD, POOR is none of no, yes",
        ),
    ],
)
def test_a_wrong_column_is_named(learning, tmp_path, spec, says):
    with pytest.raises(TrainingError, match=says):
        parquet.read(foreign(learning, tmp_path / "f.parquet"), SPEC | spec, log=quiet)


def arrow(learning, path: Path, **changes) -> Path:
    """As `foreign`, with what pandas would make a gap of."""
    table = pq.read_table(foreign(learning, path))
    for name, values in changes.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    pq.write_table(table, path)
    return path


BOUNDS = {"target": {"bounds": [0.01, 0.05, 0.12]}}


@pytest.mark.parametrize(
    ("column", "value", "spec", "says"),
    [
        ("verdict", float("nan"), BOUNDS, "label .* is missing, NaN or infinite in 1 of"),
        ("verdict", float("inf"), BOUNDS, "label .* is missing, NaN or infinite in 1 of"),
        ("verdict", -0.5, BOUNDS, "a label of -0.5 is no ratio"),
        ("verdict", "much", BOUNDS, "label .* is string, not a number"),
        ("t", float("nan"), {}, "time is missing, NaN or infinite in 1 of"),
        ("t", float("inf"), {}, "time is missing, NaN or infinite in 1 of"),
        ("t", 1e30, {}, "beyond any date"),
        ("t", "noon", {}, "time is string, not a number"),
        ("t", None, {}, "time is missing in 1 of"),
        ("router", None, {}, "router .group. is missing in 1 rows"),
    ],
)
def test_what_is_no_number_is_refused(learning, tmp_path, column, value, spec, says):
    few = learning[:300]
    good = {"verdict": np.zeros(300), "t": few.ts_us / 1e6, "router": ["a"] * 300}[column]
    values = list(map(str, good)) if isinstance(value, str) else list(good)
    values[7] = value
    with pytest.raises(TrainingError, match=says):
        parquet.read(arrow(few, tmp_path / "f.parquet", **{column: values}), SPEC | spec, log=quiet)


def test_compare_of_a_foreign_file_asks_for_nothing_that_it_does_not_take(learning, tmp_path, capsys):
    assert main(["compare", "--items", str(foreign(learning[:300], tmp_path / "f.parquet"))]) == 1
    assert "`compare` does not" in capsys.readouterr().err


def test_an_ap_of_a_foreign_table_can_be_chosen(learning, tmp_path):
    path = foreign(learning, tmp_path / "f.parquet", router=np.arange(len(learning)) % 2 + 7)
    assert parquet.read(path, SPEC, ap="8", log=quiet).groups == ["8"]
    with pytest.raises(TrainingError, match=r"--site: name the column .* \(columns.site\)"):
        parquet.read(path, SPEC, site="x", log=quiet)
    with pytest.raises(TrainingError, match="none of its 0 rows"):
        parquet.read(path, SPEC, ap="9", log=quiet)


def test_a_foreign_table_without_names_of_columns_says_what_to_do(learning, tmp_path):
    with pytest.raises(TrainingError, match="when that names its columns"):
        parquet.read(foreign(learning, tmp_path / "f.parquet"), log=quiet)
    (tmp_path / "g.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(TrainingError, match="is not a Parquet file"):
        parquet.read(tmp_path / "g.parquet", log=quiet)
    with pytest.raises(TrainingError, match="no such file"):
        parquet.read(tmp_path / "h.parquet", log=quiet)


def test_too_few_items_and_one_class_are_refused(learning):
    what = experiment.parse("name: f\nmodel: {kind: decision_tree}", "f")
    with pytest.raises(TrainingError, match="too few items: 37, need 200"):
        run.evaluate(learning[:37], what, quiet)
    with pytest.raises(TrainingError, match="all .* items are Good"):
        run.fit(learning[learning.y == 0], what, quiet)


def test_some_hundred_items_of_a_short_run_are_enough(learning):
    what = experiment.load(experiment.OWN)
    busy = next(
        start for start in range(0, len(learning), 100) if len(set(learning.y[start : start + 250].tolist())) == 4
    )
    parts, _ = run.evaluate(learning[busy : busy + 300], what, quiet)
    assert parts[0].scores["decision_tree"].n > 100
    assert "are too few to draw from" in parts[0].notes[-1]
