"""The service on a real Kafka."""

from __future__ import annotations

import json
import signal
import time
import uuid

import pytest
import synthetic
import yaml
from conftest import until
from oal_schema import bundle as oal_bundle
from oal_schema import release as oal_release
from oal_schema import settings
from oal_schema.item import as_record
from oal_training.online import programs

PROGRAM = next(iter(programs.known().values()))
QUICK = {
    "fit_every_s": 0.2,
    "judge": {"min_episodes": 1, "min_onsets": 5},
    "ship": {"margin_onset_ap": 0, "margin_macro_f1": 0, "false_ship_rate": 1, "drift_false_ship_rate": 1}
    | {"min_interval_s": 0},
}


def items(n: int, ap_id: str, seed: int = 0, **options):
    return synthetic.items(n, ap_id, seed, features=len(PROGRAM.words), feature_hash=PROGRAM.feature_hash, **options)


class Ap:
    """An AP whose items come a second's worth at a time."""

    def __init__(self, topics, seed: int = 0, n: int = 8000, at_once: int = 500, partition: int | None = None):
        self.name = f"ap-{uuid.uuid4().hex[:8]}"
        self.topics, self.items, self.sent, self.partition = topics, items(n, self.name, seed), 0, partition
        self.send(at_once)

    def send(self, n: int = 20) -> bool:
        """Send the next items."""
        self.topics.items(self.items[self.sent : self.sent + n], self.partition)
        self.sent += n
        assert self.sent <= len(self.items), "out of items"
        return True

    def until_release(self, trainer, n: int, at_once: int = 20) -> list:
        """Send items, so many at once, until the AP has `n` releases; these."""
        until(
            lambda: f"{n} releases for {self.name}; the log says {trainer.log()}",
            lambda: self.send(at_once) and len(self.topics.releases(self.name)) >= n,
        )
        return self.topics.releases(self.name)

    def decisions(self) -> list[dict]:
        """Rows about this AP so far."""
        return self.topics.rows("tree_decision", self.name)

    def since(self, ts_us: int) -> list[dict]:
        """Those made after an instant."""
        return [row for row in self.decisions() if row["ts"] > ts_us]


def test_a_tree_is_shipped_with_its_event_in_one_transaction(make_trainer, topics):
    trainer = make_trainer(**QUICK)
    source = Ap(topics)
    ap = source.name
    source.until_release(trainer, 1)
    (release,) = topics.releases(ap)[:1]

    trusted = trainer.trusted
    bundle, digest = oal_bundle.open_signed(release.signed, trusted, ap, "site-1")
    assert bundle.target == f"ap/{ap}" and bundle.source == "online" and bundle.version == release.version == 1
    assert bundle.program == PROGRAM.words and bundle.tree.feature_hash == PROGRAM.feature_hash

    number = oal_bundle.bundle_id(digest)
    shipped = until("its row", lambda: [r for r in topics.rows("tree_decision", ap) if r["bundle"] == number])
    assert [(r["action"], r["reason"], r["version"], r["in_force"]) for r in shipped] == [("shipped", "first", 1, 0)]
    assert shipped[0]["candidate_onset_ap"] > shipped[0]["persistence_onset_ap"]
    (row,) = [r for r in topics.rows("release", ap) if r["bundle"] == number]
    assert row["serial"] == release.serial and row["bytes"] == len(release.signed)
    tables = {name: {c["name"] for c in t["columns"]} for name, t in settings.generated()["stream_tables"].items()}
    assert set(shipped[0]) == tables["tree_decision"] and set(row) == tables["release"]
    assert trainer.kill(signal.SIGTERM) == 0


def test_trees_carry_the_policy_of_their_ap_and_are_released_again_when_it_changes(make_trainer, topics):
    """No margin is small enough for a second tree here: what comes is the first once more."""
    trainer = make_trainer(**{**QUICK, "ship": {**QUICK["ship"], "margin_onset_ap": 1.0, "drift_margin": 1.0}})
    source = Ap(topics, seed=6)
    first = source.until_release(trainer, 1)[0]
    trusted = trainer.trusted
    before = oal_bundle.open_signed(first.signed, trusted, source.name, "site-1")
    assert (before[0].policy.name, before[0].policy.version, before[0].policy.mode_name) == ("default", 1, "shadow")

    text = "name: one\nversion: {}\napplies_to: {}\nmode: enforce\ncontrol: {{target_us: 7000}}\n"
    (trainer.policies / "one.yaml").write_text(text.format(1, "ap/somebody-else"))
    (trainer.policies / "two.yaml").write_text(text.format(5, f"ap/{source.name}").replace("one", "two"))
    until(trainer.log, lambda: len(topics.releases(source.name)) == 2)  # no item comes: the stream job may be away
    again = topics.releases(source.name)[1]
    bundle, digest = oal_bundle.open_signed(again.signed, trusted, source.name, "site-1", before)
    assert (bundle.policy.name, bundle.policy.version, bundle.policy.control["target_us"]) == ("two", 5, 7000)
    assert (again.version, again.rank, again.reason) == (
        first.version,
        first.rank,
        "policy",
    ) and again.serial > first.serial
    assert (
        bundle.tree.apply(before[0].golden).tolist() == before[0].tree.apply(before[0].golden).tolist()
        and before[1] in bundle.rollback_to
    )
    number = oal_bundle.bundle_id(digest)
    (row,) = until("its row", lambda: [r for r in topics.rows("release", source.name) if r["bundle"] == number])
    assert (row["policy"], row["policy_version"], row["version"], row["nodes"]) == (
        "two",
        5,
        first.version,
        bundle.tree.n_nodes,
    )

    (trainer.policies / "bad.yaml").write_text("name: bad\n")
    until(trainer.log, lambda: source.send() and trainer.metric("oal_trainer_policies_wrong") == 1)
    assert "bad.yaml:1: version is missing" in trainer.log()
    seen = len(source.decisions())
    until(trainer.log, lambda: source.send() and len(source.decisions()) > seen + 3)
    assert (
        len(topics.releases(source.name)) == 2 and trainer.metric("oal_trainer_renewals_total") == 1
    ), "once, and nothing for a folder that is wrong"
    (trainer.policies / "bad.yaml").unlink()
    until(trainer.log, lambda: source.send() and trainer.metric("oal_trainer_policies_wrong") == 0)
    assert trainer.kill(signal.SIGTERM) == 0


@pytest.mark.outage
def test_kill_9_and_restart_reads_the_window_again_and_goes_on(make_trainer, topics):
    trainer = make_trainer(**QUICK)
    source = Ap(topics, seed=1)
    first = source.until_release(trainer, 1)[-1]
    trainer.kill()
    known = topics.releases(source.name)
    n = len(known)
    killed_us = time.time_ns() // 1000
    trainer.start()
    source.send()
    row = until(lambda: trainer.log(), lambda: source.since(killed_us))[0]
    assert row["items"] == source.sent, "the whole window, and nothing twice"
    before = bytes.fromhex(known[-1].hash)
    assert row["in_force"] == oal_bundle.bundle_id(before) != 0
    latest = source.until_release(trainer, n + 1)[n]
    assert latest.version == n + 1 and latest.serial > first.serial
    assert before in oal_bundle.decode(oal_bundle.split_signed(latest.signed)[0]).rollback_to
    assert trainer.kill(signal.SIGTERM) == 0  # nothing more comes while both topics are read
    shipped = sorted((r for r in source.decisions() if r["action"] == "shipped"), key=lambda r: r["ts"])
    assert (
        [r["version"] for r in shipped]
        == [r.version for r in topics.releases(source.name)]
        == list(range(1, len(shipped) + 1))
    )


def test_a_window_is_read_from_where_it_began_not_from_the_start_of_the_topic(make_trainer, topics):
    trainer = make_trainer(window_items=600, **QUICK)
    source = Ap(topics, seed=2, at_once=900)
    until(lambda: trainer.log(), lambda: source.send() and source.decisions())
    trainer.kill(signal.SIGTERM)
    killed_us = time.time_ns() // 1000
    trainer.start()
    until(lambda: trainer.log(), trainer.healthy)
    row = until(lambda: trainer.log(), lambda: source.send() and source.since(killed_us))[0]
    assert row["items"] == 600
    assert trainer.log().count("from offset") >= 1


@pytest.mark.outage
def test_two_trainers_share_the_aps_and_one_takes_over_when_the_other_hangs(make_trainer, topics):
    """Each partition has an AP; a partition that moves takes its APs along, whole.

    The one that hung comes back and ships nothing stale.
    """
    first = make_trainer(**QUICK)
    aps = [Ap(topics, seed=s, partition=s) for s in range(4)]
    until(lambda: first.log(), lambda: all(ap.send() and ap.decisions() for ap in aps))
    second = make_trainer(**QUICK)
    until(
        lambda: second.log(),
        lambda: all(ap.send() for ap in aps) and len({ap.decisions()[-1]["trainer"] for ap in aps}) == 2,
    )
    moved = [ap for ap in aps if ap.decisions()[-1]["trainer"] != ap.decisions()[0]["trainer"]]
    assert len(moved) == 2
    second.process.send_signal(signal.SIGSTOP)
    survivor = aps[0].decisions()[0]["trainer"]
    assert all(ap.decisions()[0]["trainer"] == survivor for ap in aps)
    until(
        lambda: first.log(),
        lambda: all(ap.send() for ap in aps) and all(ap.decisions()[-1]["trainer"] == survivor for ap in aps),
    )
    second.process.send_signal(signal.SIGCONT)
    until(lambda: second.log(), lambda: "another's now" in second.log())
    resumed_us = time.time_ns() // 1000
    until(
        lambda: first.log() + second.log(),
        lambda: all(ap.send() for ap in aps) and all(ap.since(resumed_us) for ap in aps),
    )
    for ap in moved:
        seen = [
            r["items"] for r in sorted(ap.decisions(), key=lambda r: r["ts"])
        ]  # the first few while the first items were still on their way
        assert seen == sorted(seen), f"a tree was fitted on part of a window: {seen}"
        versions = [r.version for r in topics.releases(ap.name)]
        assert versions == sorted(set(versions)), "one tree a number, whoever made it"


def test_a_pinned_champion_and_bad_records_ship_nothing(make_trainer, topics):
    trainer = make_trainer(**QUICK)
    pilot = Ap(topics, seed=3)
    tree = oal_bundle.decode(oal_bundle.split_signed(pilot.until_release(trainer, 1)[0].signed)[0]).tree
    target = Ap(topics, seed=4, at_once=0)
    payload = oal_bundle.encode(
        oal_bundle.Bundle(
            time.time_ns() // 1000,
            f"ap/{target.name}",
            "registry",
            "congestion",
            3,
            [],
            PROGRAM.words,
            PROGRAM.decision_interval_us,
            oal_bundle.models_of(tree),
        )
    )
    topics.release(
        *oal_release.record(
            "champion",
            f"ap/{target.name}",
            oal_bundle.sign(payload, trainer.registry),
            source="registry",
            model="congestion",
            version=3,
            run_id="r",
            feature_hash=tree.feature_hash,
            created_us=1,
            pinned=True,
        )
    )
    topics.release(f"online/ap/{target.name}", b"no release")
    until(
        "the record that is no release is counted",
        lambda: trainer.metric("oal_trainer_releases_refused_total") == 1 or not pilot.send(),
    )
    target.send(1000)
    topics.raw(b"{")
    topics.raw(json.dumps({**as_record(target.items[0]), "class": 3}).encode())
    stranger = synthetic.items(50, f"{target.name}-x", feature_hash=99)
    topics.items(stranger)

    def judged() -> list[dict]:  # the first decisions may fall where no onset is in the test part
        return [r for r in target.decisions() if r["reason"] == "pinned" and r["candidate_onset_ap"] is not None]

    row = until(lambda: trainer.log(), lambda: target.send() and judged())[0]
    assert row["in_force"] == oal_bundle.bundle_id(oal_bundle.bundle_hash(payload)) and row["candidate_onset_ap"] > 0
    assert not topics.releases(target.name) and not topics.rows("tree_decision", f"{target.name}-x")
    page = until(
        "the report",
        lambda: (p := trainer.page("/metrics")[1])
        and 'fate="malformed"} 2' in p
        and 'fate="unknown_features"} 50' in p
        and p,
    )
    assert 'action="held",reason="pinned"' in page


@pytest.mark.outage
def test_the_broker_comes_back_and_a_silent_mlflow_delays_nothing(make_trainer, topics, platform, tmp_path):
    (tmp_path / "password").write_text("x")
    nobody = {"tracking_uri": "http://127.0.0.1:9", "user": "trainer", "password_file": str(tmp_path / "password")}
    trainer = make_trainer(mlflow=nobody, **QUICK)
    source = Ap(topics, seed=5, n=30_000)
    n = len(source.until_release(trainer, 1))
    assert "MLflow" in until("it is said", lambda: "MLflow" in trainer.log() and trainer.log())
    platform.kill("kafka", signal.SIGKILL)
    platform.wait_ready("kafka")
    source.until_release(trainer, n + 1, at_once=100)  # the next better tree needs items, not time
    assert trainer.healthy() and trainer.process.poll() is None


@pytest.mark.outage
def test_a_trainer_that_the_group_fenced_for_good_joins_anew(make_trainer, topics, platform):
    """Another member with its name gets its partitions, and its own consumer a fatal error."""
    from confluent_kafka import Consumer

    trainer = make_trainer(**QUICK)
    source = Ap(topics, seed=7, n=30_000)
    n = len(source.until_release(trainer, 1))
    kafka = yaml.safe_load((trainer.folder / "config.yaml").read_text())["kafka"]
    name = (trainer.folder / "state" / "instance").read_text().strip()
    other = Consumer({**kafka, "group.instance.id": name, "partition.assignment.strategy": "cooperative-sticky"})
    other.subscribe(["training.items.v1"])
    until(trainer.log, lambda: other.poll(0.1) is None and "this consumer cannot go on" in trainer.log())
    fenced_us = time.time_ns() // 1000
    other.close()
    until(trainer.log, lambda: trainer.healthy() and trainer.metric("oal_trainer_consumers_total") >= 1)
    until(trainer.log, lambda: source.send() and source.since(fenced_us))
    assert source.since(fenced_us)[0]["items"] > 500, "the window is there again"
    assert len(source.until_release(trainer, n, at_once=100)) >= n and trainer.process.poll() is None


def test_one_state_folder_has_one_trainer(make_trainer, platform, tmp_path):
    first = make_trainer(**QUICK)
    until(lambda: first.log(), first.healthy)
    process, first.process = first.process, None
    first.start()
    assert first.process.wait(30) == 1 and "give each one its own" in first.log()
    first.process = process
