"""Backed up while it runs, lost, brought back: everything is as it was."""
import json
import os
import shutil

import pytest
from conftest import ROOT, Backup, clickhouse_section, config_text

INSERT = (
    "INSERT INTO oal.gap (ap_id, site, ts, topic) SELECT 'ap-{0}', 'hall', now64(6) - number, 'ap.samples.v1' FROM"
    " numbers({1})"
)


@pytest.fixture(scope="module")
def backup(platform, tmp_path_factory):
    folder = tmp_path_factory.mktemp("backups")
    config = folder / "backup.toml"
    config.write_text(
        config_text(
            folder / "kept", clickhouse=clickhouse_section(platform), mlflow={"state_dir": platform.state.mlflow},
            push={
                "admin_url": platform.push.admin_url, "token_file": platform.push.token_file, "restore_command": [
                    str(ROOT / "deploy" / "build" / "oal-deploy"), "restore", "--config",
                    str(platform.state.push / "deploy.yaml")
                ]
            }, files={"folders": [str(platform.state.secrets)]}))
    return Backup(config)


def rows(platform, table="oal.gap") -> int:
    return int(platform.clickhouse.query(f"SELECT count() FROM {table}"))


def lose_clickhouse(platform):
    platform.clickhouse.query("DROP DATABASE oal SYNC")


def test_clickhouse_comes_back_with_every_row_rollup_and_view(platform, backup):
    platform.clickhouse.query(INSERT.format(1, 1000))
    backup("create", "first", ok=True)
    platform.clickhouse.query(INSERT.format(2, 500))
    said = backup("create", "second", "--base", "first")
    assert "second: files, push, mlflow, clickhouse" in said
    told = platform.clickhouse.rows("SELECT labels['backup'] AS backup, values['seconds'] > 0 AS took FROM"
                                    " oal.platform_metric WHERE name = 'backup' ORDER BY ts")
    assert told == [{"backup": "first", "took": 1}, {"backup": "second", "took": 1}], "the board and an alert ask this"
    backup("restore", "second", "--only", "clickhouse", "--as", "rehearsal")
    assert rows(platform, "rehearsal.gap") == 1500
    assert "holds 1,5" in backup("restore", "second", "--only", "clickhouse",
                                 ok=False), "a live database must not be overwritten"
    lose_clickhouse(platform)
    backup("restore", "second", "--only", "clickhouse")
    assert rows(platform) == 1500
    assert platform.clickhouse.rows(
        "SELECT count() AS n FROM system.tables WHERE database = 'oal' AND engine = 'View'")[0]["n"] > 30
    platform.clickhouse.query(INSERT.format(3, 10))
    assert rows(platform) == 1510, "a restored table takes rows"
    lose_clickhouse(platform)
    backup("restore", "first", "--only", "clickhouse")
    assert rows(platform) == 1000


def test_a_restore_with_fewer_rows_than_were_kept_says_so(platform, backup):
    """Of raw rows; of rollups, whose merges make fewer of more, nothing is expected."""
    backup("create", "short")
    file = backup.config.parent / "kept" / "short" / "manifest.json"
    content = json.loads(file.read_text())
    [shard] = content["parts"]["clickhouse"]["shards"]
    assert shard["bytes"] > 0
    shard["rows_at_least"] |= {"gap": 10**6, "station_1s": 10**6, "bundle_release": 10**6}
    file.write_text(json.dumps(content))
    said = backup("restore", "short", "--only", "clickhouse", "--as", "short", ok=False)
    assert "fewer rows" in said and "'gap'" in said and "station_1s" not in said and "bundle_release" not in said


def test_mlflow_comes_back_with_models_artifacts_and_users(platform, backup):
    platform.mlflow.api("registered-models/create", {"name": "kept"})
    (platform.state.mlflow / "artifacts").mkdir(exist_ok=True)
    (platform.state.mlflow / "artifacts" / "model.txt").write_text("a model")
    backup("create", "models")
    platform.mlflow.api("registered-models/create", {"name": "later"})
    assert "is not empty" in backup("restore", "models", "--only", "mlflow", ok=False)
    platform.stop("mlflow")
    for path in platform.state.mlflow.iterdir():
        if path.name != "server.yaml":  # configuration, made by `up`
            (shutil.rmtree if path.is_dir() else os.unlink)(path)
    backup("restore", "models", "--only", "mlflow")
    platform.start("mlflow")
    platform.wait_ready("mlflow")
    assert platform.mlflow.api("registered-models/get?name=kept", method="GET")["registered_model"]["name"] == "kept"
    with pytest.raises(Exception, match="not found"):
        platform.mlflow.api("registered-models/get?name=later", method="GET")
    assert (platform.state.mlflow / "artifacts" / "model.txt").read_text() == "a model"


def test_the_push_service_comes_back_with_what_was_killed_and_revoked(platform, backup):
    platform.push.get("/v1/control/kill/fleet", {"who": "test", "reason": "a test"}, "PUT")
    backup("create", "killed")
    platform.push.get("/v1/control/kill/fleet?who=test&reason=over", method="DELETE")
    assert not platform.push.get("/v1/control/kill")["kills"]
    platform.stop("push")
    (platform.state.push / "state.db").unlink()
    backup("restore", "killed", "--only", "push")
    platform.start("push")
    platform.wait_ready("push")
    assert [kill["scope"] for kill in platform.push.get("/v1/control/kill")["kills"]] == ["fleet"]


def test_a_damaged_backup_is_refused_before_anything_is_touched(platform, backup):
    backup("create", "broken", ok=True)
    kept = backup.config.parent / "kept" / "broken"
    name = next(iter(json.loads((kept / "manifest.json").read_text())["files"]))
    with open(kept / name, "ab") as file:
        file.write(b"x")
    assert name in backup("verify", "broken", ok=False)
    assert "damaged" in backup("restore", "broken", ok=False)


def test_a_backup_that_fails_leaves_nothing(platform, backup):
    platform.stop("clickhouse")
    try:
        assert "does not answer" in backup("create", "failed", ok=False)
    finally:
        platform.start("clickhouse")
        platform.wait_ready("clickhouse")
    assert "failed" not in backup("list") and not (backup.config.parent / "kept" / "failed").exists()


def test_prune_keeps_the_newest_and_what_they_build_on(platform, backup):
    backup("create", "base")
    backup("create", "middle")
    backup("create", "newest", "--base", "base")
    said = backup("prune", "--keep", "1")
    assert "removed middle" in said
    assert [line.split("\t")[0] for line in backup("list").splitlines()] == ["base", "newest"]
    assert not (platform.state.clickhouse / "backups" / "middle").exists() and (platform.state.clickhouse / "backups"
                                                                                / "base").exists()
