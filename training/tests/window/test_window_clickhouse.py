"""The same samples from a real ClickHouse as from the capture."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from oal_training import cli
from oal_training.errors import TrainingError
from oal_training.stored.clickhouse import Connection
from oal_training.stored.parquet import read_columns
from oal_training.tracking import Tracking
from oal_training.window import capture, clickhouse, dataset, model, sender

CAPTURES = Path(__file__).resolve().parents[3] / "lab/captures"
AP, SECONDS = "learning2", 60


@pytest.fixture(scope="module")
def server(platform):
    return platform.clickhouse


def insert(server, table: str, rows: list[dict]) -> None:
    lines = "\n".join(json.dumps(row) for row in rows)
    server.query(f"INSERT INTO oal.{table} SETTINGS input_format_skip_unknown_fields=0 FORMAT JSONEachRow {lines}")


def part(columns: dict, keep: np.ndarray) -> dict:
    return {name: values[keep] for name, values in columns.items()}


@pytest.fixture(scope="module")
def minute(server):
    """The capture's second minute, shifted to the last hour (older rows expire), in the database; and as columns."""
    rows, sent, items = (
        capture.flow_rows(CAPTURES / f"{AP}.oalcap")[0],
        sender.rows(CAPTURES / f"{AP}.sender.jsonl.gz"),
        read_columns(CAPTURES / f"{AP}.items.parquet")[0],
    )
    begin = int(items["ts_us"].min()) + SECONDS * 1_000_000
    end = begin + SECONDS * 1_000_000
    inside = {
        name: part(table, (table["ts_us"] >= begin) & (table["ts_us"] < end))
        for name, table in (("rows", rows), ("sent", sent), ("items", items))
    }
    now = int(float(server.query("SELECT toUnixTimestamp64Micro(now64(6))")))
    shift = (now - 3_600_000_000 - begin) // 100_000 * 100_000
    for table in inside.values():
        table["ts_us"] = table["ts_us"] + shift
    at = lambda us: f"{us // 1_000_000}.{us % 1_000_000:06d}"
    flow = [
        {
            "ap_id": AP,
            "ts": at(int(t["ts_us"])),
            "flow_id": int(t["flow_id"]),
            "direction": 0,
            **{c: int(t[c]) for c in dataset.FLOW_INPUTS},
            "rwnd_bytes": None if t["absent"] & 1 else int(t["rwnd_bytes"]),
        }
        for t in ({c: inside["rows"][c][i] for c in inside["rows"]} for i in range(len(inside["rows"]["ts_us"])))
    ]
    tcp = [
        {
            "host": "h",
            "ts": at(int(t["ts_us"])),
            "congestion_control": str(t["congestion_control"]),
            **{c: int(t[c]) for c in sender.WANTED},
        }
        for t in ({c: inside["sent"][c][i] for c in inside["sent"]} for i in range(len(inside["sent"]["ts_us"])))
    ]
    item = [
        {
            "ap_id": AP,
            "site": "lab",
            "ts": at(int(inside["items"]["ts_us"][i])),
            "feature_hash": int(inside["items"]["feature_hash"][i]),
            "features": [int(v) for v in inside["items"]["features"][i]],
            "complete": int(inside["items"]["complete"][i]),
        }
        for i in range(len(inside["items"]["ts_us"]))
    ]
    for table, lines in (("flow", flow), ("sender_tcp", tcp), ("item", item)):
        insert(server, table, lines)
    return inside, begin + shift, end + shift


@pytest.fixture
def connection(server) -> Connection:
    return Connection(server.http_url, "analyst", str(server.password_file("analyst")))


def test_the_database_gives_the_samples_of_the_capture(connection, minute):
    tables, begin, end = minute
    found, source = clickhouse.build(connection, AP, begin, end, log=lambda _: None)
    expected, about = dataset.samples(tables["rows"], tables["sent"], tables["items"], AP, AP, log=lambda _: None)
    assert source["rows"] == about["rows"] > 1000 and source["flows"] == about["flows"]
    for name in expected:
        assert np.array_equal(found[name], expected[name]), name


def test_the_command_writes_them_and_says_what_is_missing(server, connection, minute, tmp_path):
    _, begin, end = minute
    words = [
        sys.executable,
        "-m",
        "oal_training",
        "window",
        "dataset",
        "--clickhouse",
        server.http_url,
        "--clickhouse-password-file",
        connection.password_file,
        "--from",
        "2h",
        "--out",
        str(tmp_path / "w.parquet"),
    ]
    done = subprocess.run([*words, "--ap", AP], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    data = dataset.read(tmp_path / "w.parquet")
    assert (
        len(data) > 1000
        and data.source["captures"][0]["begin_us"] < begin
        and len(data.source["captures"][0]["capture_sha256"]) == 64
    )
    other = subprocess.run([*words, "--ap", "nobody"], capture_output=True, text=True, timeout=120)
    assert (
        other.returncode == 1
        and "no rows of flow, sender_tcp, item for AP nobody" in other.stderr
        and "oal-sniffer" in other.stderr
    )


def test_a_wrong_password_is_said(server, tmp_path):
    (tmp_path / "p").write_text("wrong")
    with pytest.raises(TrainingError, match="ClickHouse at"):
        clickhouse.build(Connection(server.http_url, "analyst", str(tmp_path / "p")), AP, 0, 1, log=lambda _: None)


def test_a_version_is_repeated_on_what_the_database_has_now(
    server, connection, minute, mlflow_uri, tmp_path, monkeypatch
):
    """`oal-train fit --retrain NAME/1`, as the registry calls it when somebody asks in MLflow's UI."""
    import mlflow

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OAL_GIT_REVISION", "test")
    few = dataset.read(CAPTURES / "window.parquet").of("learning2")[::10]
    first = model.log(Tracking(mlflow_uri), model.fit(few, n_estimators=3), few, {}, "", "repeated")
    assert first["version"] == 1
    section = {"url": server.http_url, "user": "analyst", "password_file": connection.password_file}
    (tmp_path / "registry.yaml").write_text(json.dumps({"clickhouse": section}))
    words = "fit --retrain repeated/1 --config registry.yaml --register repeated --result result.json".split()
    assert cli.main([*words, "--tracking-uri", mlflow_uri]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    client = mlflow.MlflowClient()
    version = client.get_model_version("repeated", str(result["version"]))
    assert result["version"] == 2 and version.run_id == result["run_id"] and version.tags["retrained_from"] == "1"
    run = client.get_run(result["run_id"])
    assert "ClickHouse, AP learning2" in run.data.tags["oal.query"] and int(run.data.tags["oal.rows"]) > 1000
    assert {"samples.parquet", "inputs.json", "feature_program.oalf"} <= {
        f.path for f in client.list_artifacts(result["run_id"])
    }
