"""kill -9 of each process while data flows: every record comes out once, and nobody has to do anything."""
import itertools
import signal

import pytest
from counting import Results, Writer
from waiting import until

numbers = itertools.count()


@pytest.fixture
def flow(platform):
    """A writer and what the job makes of it; at the end everything written must be there exactly once."""
    prefix = f"flow{next(numbers)}-"
    writer = Writer(platform.kafka.ap("ap-0001"), prefix)
    results = Results(platform.kafka.client("viewer"), prefix)
    writer.start()
    until(results.more, "the first result")
    yield results
    written = writer.finish()
    until(lambda: results.more() >= len(written), "all results")
    results.check(written)
    results.close()


def recovers(platform, results, *names):
    """Kill, then wait for new processes and for results of records written after that."""
    pids = {name: platform.kill(name, signal.SIGKILL) for name in names}
    for name, pid in pids.items():
        until(lambda: platform.supervisor.info()[name]["pid"] not in (0, pid), f"a new process of {name}")
    # Twice: the first growth may be what was under way.
    for _ in range(2):
        before = results.more()
        until(lambda: results.more() > before + 100, f"results after the end of {', '.join(names)}")


def test_jobmanager_killed_and_killed_again_while_it_starts(platform, flow):
    done = platform.flink.completed_checkpoints()
    until(lambda: platform.flink.completed_checkpoints() > done, "a checkpoint")
    pid = platform.kill("jobmanager", signal.SIGKILL)
    until(lambda: platform.supervisor.info()["jobmanager"]["pid"] not in (0, pid), "a new process")
    recovers(platform, flow, "jobmanager")
    assert "resumes from" in platform.state.log("jobmanager").read_text()


def test_taskmanager_killed(platform, flow):
    recovers(platform, flow, "taskmanager")


def test_both_flink_processes_killed_at_once(platform, flow):
    recovers(platform, flow, "jobmanager", "taskmanager")


def test_broker_killed(platform, flow):
    recovers(platform, flow, "kafka")


def test_clickhouse_killed_keeps_what_it_acknowledged(platform):
    query = platform.clickhouse.query
    query("CREATE DATABASE IF NOT EXISTS oal")
    query(
        "CREATE TABLE IF NOT EXISTS oal.kill_test (a UInt32) ENGINE = MergeTree ORDER BY a SETTINGS"
        " non_replicated_deduplication_window = 100"
    )
    query("INSERT INTO oal.kill_test SETTINGS insert_deduplication_token = 't' SELECT number FROM numbers(1000)")
    pid = platform.kill("clickhouse", signal.SIGKILL)
    until(lambda: platform.supervisor.info()["clickhouse"]["pid"] not in (0, pid), "a new process")
    platform.wait_ready("clickhouse")
    query("INSERT INTO oal.kill_test SETTINGS insert_deduplication_token = 't' SELECT number FROM numbers(1000)")
    assert query("SELECT count() FROM oal.kill_test") == "1000\n"
    query("DROP TABLE oal.kill_test")
