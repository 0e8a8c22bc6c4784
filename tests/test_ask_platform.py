"""What `helm test` runs, against the running platform: it says yes when all is well, and which part is not when one is
not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from flow import until

ASK = Path(__file__).resolve().parent.parent / "helm" / "oal" / "files" / "ask_platform.py"


def ask(platform, **changes: str) -> subprocess.CompletedProcess:
    pki = platform.state.pki
    options = {
        "ca": pki / "ca.crt", "clickhouse": platform.clickhouse.http_url, "database": "oal",
        "password_file": platform.clickhouse.password_file("analyst"), "kafka": platform.kafka.bootstrap,
        "kafka_certificate": pki / "transactions", "flink": platform.flink.rest_url,
        "flink_certificate": pki / "operator"
    } | changes
    return subprocess.run([sys.executable, ASK, *(f"--{name.replace('_', '-')}={value}"
                                                  for name, value in options.items()),
                           f"{platform.mlflow.url}/health"], capture_output=True, text=True, timeout=120)


def test_a_platform_that_is_well_says_so_and_one_that_is_not_names_the_part(looped):
    platform = looped.platform
    until("every part answers", lambda: ask(platform).returncode == 0)
    said = ask(platform).stdout
    for part in ("clickhouse", "kafka", "flink", platform.mlflow.url):
        assert f"ok    {part}" in said
    assert "4 parts answer, 0 do not" in said and "tasks run" in said
    for changes, part in (({"database": "another"}, "clickhouse"), ({"kafka": "127.0.0.1:9"}, "kafka"),
                          ({"flink_certificate": str(platform.state.pki / "viewer")}, "flink"),
                          ({"ca": str(platform.state.pki / "jolokia.crt")}, "flink")):
        done = ask(platform, **changes)
        assert done.returncode == 1 and f"wrong {part}:" in done.stdout, (changes, done.stdout)
