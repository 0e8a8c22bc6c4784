"""Mistakes are named."""
import pytest
from conftest import config_text
from oal_backup import BackupError, config, postgres

CLICKHOUSE = {"url": "http://x", "user": "admin", "password_file": "p", "location": "File('/b/{name}')"}


@pytest.mark.parametrize("sections, words", [
    ({}, "nothing to back up"),
    ({"clickhouse": CLICKHOUSE | {"pasword_file": "x"}}, "has no `pasword_file`"),
    ({"clickhouse": {k: v for k, v in CLICKHOUSE.items() if k != "user"}}, "'user'"),
    ({"clickhouse": CLICKHOUSE | {"location": "File('/b')"}}, "must have {name}"),
    ({"clickhouse": {k: v for k, v in CLICKHOUSE.items() if k != "url"}}, "needs url, or urls"),
    ({"clickhouse": CLICKHOUSE | {"urls": ["http://y"]}
      }, "needs url, or urls with a server of each shard, and not both"),
    ({
        "clickhouse": {k: v
                       for k, v in CLICKHOUSE.items() if k != "url"} | {"urls": ["http://y", "http://z", "http://y"]}
    }, "urls has http://y more than once"),
    ({"push": {}}, "needs admin_url and token_file, or postgres_dsn_file"),
    ({"files": {"folders": "one"}}, "folders must be a list"),
    ({"files": {"folders": ["/a/secrets", "/a/pki", "/b/secrets/"]}}, "several folders whose last name is secrets"),
    ({"files": {"folders": ["/a/secrets/.."]}}, "no last name"),
    ({"kafka": {}}, "unknown: kafka"),
])
def test_a_mistake_names_its_setting(tmp_path, sections, words):
    file = tmp_path / "backup.toml"
    file.write_text(config_text(tmp_path, **sections))
    with pytest.raises(BackupError, match=words.replace("{", r"\{").replace("(", r"\(")):
        config.load(file)


@pytest.mark.parametrize("dsn, without, password", [
    ("postgres://push:se%20cret@db:5432/push?sslmode=require", "postgres://push@db:5432/push?sslmode=require",
     "se cret"),
    ("postgresql:///push?host=/run/pg", "postgresql:///push?host=/run/pg", ""),
    ("host=db user=push password='it\\'s' dbname=push", "host=db user=push  dbname=push", "it's"),
    ("host=db dbname=push", "host=db dbname=push", ""),
])
def test_a_password_is_taken_out_of_a_connection_string(dsn, without, password):
    assert postgres.split(dsn) == (without, password)
