"""Items from a real ClickHouse as the analyst, and a version that is made again on what came since."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from oal_training.cli import main
from oal_training.errors import TrainingError
from oal_training.stored import clickhouse, parquet

ROOT = Path(__file__).resolve().parents[3]
COLUMNS = (
    "ap_id, site, ts, boot_id, feature_hash, features, horizon_us, class_now, class, loss_ratio, offered_pkts,"
    " complete, loss_permille_resent"
)


def quiet(_line: str) -> None:
    pass


@pytest.fixture(scope="module")
def stored(platform, tmp_path_factory):
    """The items of the capture `learning` in ClickHouse, as those of two APs, the last of them now.

    (connection, configuration file that names it, µs that were added to every instant).
    """
    columns, _ = parquet.read_columns(ROOT / "lab" / "captures" / "learning.items.parquet")
    shift = int(time.time() * 1e6) // 100_000 * 100_000 - int(columns["ts_us"].max())
    values = {name: column.tolist() for name, column in columns.items()}
    values["ts"] = [f"{(ts_us + shift) / 1e6:.6f}" for ts_us in values.pop("ts_us")]
    values["complete"] = [int(complete) for complete in values["complete"]]
    n = len(values["ts"])
    rows = []
    for ap, site in (("ap-1", "north"), ("ap-2", "south")):
        of_ap = values | {"ap_id": [ap] * n, "site": [site] * n}
        rows += ["\t".join(map(str, row)) for row in zip(*(of_ap[name] for name in COLUMNS.split(", ")))]
    server = platform.clickhouse
    server.query(f"INSERT INTO oal.item ({COLUMNS}) FORMAT TSV\n" + "\n".join(rows) + "\n")
    config = {
        "url": server.http_url,
        "user": "analyst",
        "password_file": str(server.password_file("analyst")),
        "database": "oal",
    }
    file = tmp_path_factory.mktemp("clickhouse") / "config.yaml"
    file.write_text(json.dumps({"clickhouse": config}))
    return clickhouse.Connection(**config), file, shift


def test_items_are_the_same_from_clickhouse_and_from_the_file(stored, learning):
    connection, _, shift = stored
    items = clickhouse.read(connection, ap="ap-2", log=quiet)
    assert (
        (items.ts_us == learning.ts_us + shift).all()
        and items.names == learning.names
        and items.feature_hash == learning.feature_hash
    )
    for name in ("x", "y", "now", "loss_now"):
        assert np.array_equal(getattr(items, name), getattr(learning, name), equal_nan=True), name
    assert (
        items.source["query_parameters"] == {"policy": "rwnd-fair", "ap": "ap-2"}
        and len(items.source["data_sha256"]) == 64
    )
    assert clickhouse.read(connection, ap="ap-2", log=quiet).source["data_sha256"] == items.source["data_sha256"]


def test_site_range_and_limit_are_kept(stored, learning):
    connection, _, shift = stored
    begin, end = int(learning.ts_us[1000]) + shift, int(learning.ts_us[1500]) + shift
    items = clickhouse.read(connection, site="north", begin_us=begin, end_us=end, log=quiet)
    assert items.groups == ["ap-1"] and (items.ts_us[0], len(items)) == (begin, 500)
    assert items.source["share"] == 1


def test_of_more_items_than_fit_a_sample_spans_the_time_and_the_aps(stored, learning):
    connection, _, shift = stored
    said = []
    items = clickhouse.read(connection, limit=3000, log=said.append)
    assert 2500 < len(items) + items.source["left_out_incomplete"] <= 3000
    assert 0.2 < items.source["share"] < 0.27 and any("% are taken" in line for line in said)
    for ap in ("ap-1", "ap-2"):
        ts_us = items.ts_us[items.group == ap]
        assert len(ts_us) > 300, "each AP has its part; which blocks are drawn differs with the instants"
        halves = np.histogram(ts_us, 2, (learning.ts_us[0] + shift, learning.ts_us[-1] + shift))[0]
        assert (halves > 0).all(), f"not the latest, but all of the time: {halves}"
    again = clickhouse.read(connection, limit=3000, log=quiet)
    assert again.source["data_sha256"] == items.source["data_sha256"], "the same each time"
    known = np.isfinite(items.loss_now).mean()
    assert known > 0.7, "neighbours stay together, or nobody knows the loss of now"


def test_items_of_other_policies_are_left_out(stored, learning):
    connection, _, _ = stored
    items = clickhouse.read(connection, ap="ap-1", log=quiet)
    assert len(items) == len(learning) and items.source["query_parameters"]["policy"] == "rwnd-fair"
    with pytest.raises(TrainingError, match="ClickHouse has no items of policy example of AP ap-1"):
        clickhouse.read(connection, ap="ap-1", log=quiet, policy="example")


def test_labels_of_the_definition_before_are_left_out(stored, platform):
    connection, _, _ = stored
    platform.clickhouse.query(
        "INSERT INTO oal.item (* EXCEPT (inserted_at)) SELECT * EXCEPT (inserted_at) REPLACE ('ap-3' AS ap_id,"
        " toInt16(if(toSecond(ts) < 30, -1, i.loss_permille_resent)) AS loss_permille_resent) FROM oal.item AS i"
        " WHERE i.ap_id = 'ap-1'")
    items = clickhouse.read(connection, ap="ap-3", log=quiet)
    assert (items.ts_us // 1_000_000 % 60 >= 30).all() and items.source["left_out_incomplete"] > len(items) / 3


def test_nothing_there_and_a_wrong_password_are_said(stored, tmp_path):
    connection, _, _ = stored
    with pytest.raises(TrainingError, match="ClickHouse has no items of AP nobody"):
        clickhouse.read(connection, ap="nobody", log=quiet)
    with pytest.raises(TrainingError, match="ClickHouse has no items of AP x' OR 1"):
        clickhouse.read(connection, ap="x' OR 1=1 --", log=quiet)
    (tmp_path / "p").write_text("wrong")
    with pytest.raises(TrainingError, match="as analyst"):
        clickhouse.read(clickhouse.Connection(connection.url, "analyst", str(tmp_path / "p")), log=quiet)


def test_a_retrain_repeats_the_experiment_on_fresh_items(stored, mlflow_uri, tmp_path):
    from mlflow import MlflowClient

    uri, (_, config, _) = mlflow_uri, stored
    experiment, result = tmp_path / "e.yaml", tmp_path / "r.json"
    experiment.write_text(
        "name: again\nmodel: {kind: decision_tree, params: {max_leaf_nodes: 8}}\nbootstrap: {rounds: 20}\n"
    )
    assert (
        main(
            [
                "fit",
                str(experiment),
                "--config",
                str(config),
                "--tracking-uri",
                uri,
                "--site",
                "north",
                "--from",
                "5m",
                "--register",
                "again",
            ]
        )
        == 0
    )
    assert (
        main(
            [
                "fit",
                "--retrain",
                "again/1",
                "--tracking-uri",
                uri,
                "--config",
                str(config),
                "--register",
                "again",
                "--result",
                str(result),
            ]
        )
        == 0
    )
    made = json.loads(result.read_text())
    client = MlflowClient(uri, uri)
    old, new = (client.get_run(client.get_model_version("again", v).run_id).data for v in ("1", "2"))
    assert made["version"] == 2 and client.get_model_version("again", "2").tags["retrained_from"] == "1"
    assert json.loads(new.tags["oal.source"])["site"] == "north" and "{site:String}" in new.tags["oal.query"]
    assert new.params["kind"] == old.params["kind"] == "decision_tree" and new.params["params"] == old.params["params"]
    assert int(new.tags["oal.from_us"]) > int(old.tags["oal.from_us"]) and 1000 < int(new.tags["oal.rows"]) <= int(
        old.tags["oal.rows"]
    ), "the same span, ending now"


def test_a_version_is_judged_only_on_later_items(stored, mlflow_uri, tmp_path, capsys):
    uri, (_, config, _) = mlflow_uri, stored
    experiment = tmp_path / "e.yaml"
    experiment.write_text(
        "name: e\nmodel: {kind: decision_tree, params: {max_leaf_nodes: 8}}\nbootstrap: {rounds: 20}\n"
    )
    where = ["--config", str(config), "--tracking-uri", uri]
    assert (
        main(["fit", str(experiment), *where, "--ap", "ap-1", "--from", "1d", "--to", "4m", "--register", "judged"])
        == 0
    )
    capsys.readouterr()
    assert main(["evaluate", "--version", "judged/1", *where, "--ap", "ap-1", "--from", "1d"]) == 0
    said = capsys.readouterr()
    assert "all items are later than those that judged/1 was trained on" in said.out and "persistence" in said.out
    assert main(["evaluate", "--version", "judged/1", *where, "--ap", "ap-1", "--from", "1d", "--to", "4m"]) == 1
    assert "are later than what judged/1 was trained on, need 200" in capsys.readouterr().err


def test_a_version_made_from_a_file_is_retrained_from_clickhouse(stored, mlflow_uri, tmp_path):
    uri, (_, config, _) = mlflow_uri, stored
    experiment, result = tmp_path / "e.yaml", tmp_path / "r.json"
    experiment.write_text(
        "name: e\nmodel: {kind: decision_tree, params: {max_leaf_nodes: 8}}\nbootstrap: {rounds: 20}\nsource: {last_s:"
        " 300}\n"
    )
    assert (
        main(
            [
                "fit",
                str(experiment),
                "--source",
                str(ROOT / "lab" / "captures" / "learning.items.parquet"),
                "--tracking-uri",
                uri,
                "--register",
                "filed",
            ]
        )
        == 0
    )
    assert (
        main(
            [
                "fit",
                "--retrain",
                "filed/1",
                "--tracking-uri",
                uri,
                "--config",
                str(config),
                "--register",
                "filed",
                "--result",
                str(result),
            ]
        )
        == 0
    )
    assert json.loads(result.read_text())["version"] == 2
