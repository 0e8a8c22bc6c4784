"""From an alias in MLflow to a signed release in Kafka: the real server, the real broker, the real service."""

from __future__ import annotations

import os
import signal
import time

import pytest
from oal_schema import bundle
from processes import RegistryService, get
from topics import released
from waiting import until

pytestmark = pytest.mark.usefixtures("running")


def test_an_alias_becomes_a_signed_release_and_its_row_and_deleting_it_goes_back(
    owner, topics, versions, trusted, service
):
    first, second, _ = versions
    topics.read()
    before = len(topics.rows)
    owner.alias("champion", first)
    one = released(topics, "champion", first)
    content, digest = bundle.open_signed(one.signed, trusted, "ap-1", "here")
    assert (content.model, content.version, content.target, content.source, content.policy_mode) == (
        "congestion",
        first,
        "fleet",
        "registry",
        1,
    )
    assert (
        content.rollback_to == []
        and digest.hex() == one.hash
        and one.source == "registry"
        and one.rollout is None
        and not one.pinned
    )
    assert one.run_id == owner.client.get_model_version("congestion", str(first)).run_id

    owner.alias("champion", second)
    two = released(topics, "champion", second)
    in_force = (content, digest)
    content, _ = bundle.open_signed(two.signed, trusted, "ap-1", "here", in_force)
    assert content.serial > in_force[0].serial and content.rollback_to == [digest]

    owner.unalias("champion")
    back = released(topics, "champion", first)
    assert back.reason == f"rollback: alias champion deleted, back from congestion/{second} to congestion/{first}"
    content, _ = bundle.open_signed(back.signed, trusted, "ap-1", "here", (content, bytes.fromhex(two.hash)))
    assert content.version == first and content.serial > two.serial
    until(lambda: "oal.released_at.champion/fleet" not in owner.tags(second), "the history ends with the first version")
    assert "oal.released_at.champion/fleet" in owner.tags(first)

    # Setting it again is a promotion of the same bundle: nothing changes on the APs. Deleting it then empties the slot.
    owner.alias("champion", first)
    again = until(
        lambda: (now := topics.in_force("champion")) and now.reason.startswith("alias") and now,
        "promoted, no longer rolled back",
    )
    assert again.hash == back.hash and again.serial == back.serial
    owner.unalias("champion")
    until(lambda: topics.in_force("champion") is None, "withdrawn")

    rows = topics.rows[before:]
    assert [(row["action"], row["version"]) for row in rows] == [
        ("release", first),
        ("release", second),
        ("release", first),
        ("release", first),
        ("withdraw", first),
    ]
    assert rows[1]["bundle"] == bundle.bundle_id(bytes.fromhex(two.hash)) and rows[1]["bytes"] == len(two.signed)
    assert rows[0]["nodes"] == rows[2]["nodes"] == content.tree.n_nodes and rows[4]["bundle"] == 0
    assert {row["feature_hash"] for row in rows} == {one.feature_hash} and rows[0]["run_id"] == one.run_id
    assert service.metric('oal_registry_releases_total{action="rollback",slot="champion"}') >= 1


def test_a_canary_carries_its_rollout_and_goes_back_to_the_champion(owner, topics, versions, clean):
    first, second, third = versions
    owner.alias("champion", first)
    champion = released(topics, "champion", first)
    owner.tag(second, "rollout.canary_share", "0.25")
    owner.tag(second, "rollout.metric", "rejected_share")
    owner.tag(second, "rollout.limit", "0.05")
    owner.alias("canary", second)
    canary = released(topics, "canary", second)
    assert canary.promoted_by == "owner"
    assert [step["share"] for step in canary.rollout["steps"]] == [0.25, 0.5, 1]
    assert (canary.rollout["share"], canary.rollout["metric"], canary.rollout["limit"]) == (
        0.25,
        "rejected_share",
        0.05,
    )
    assert bundle.decode(bundle.split_signed(canary.signed)[0]).rollback_to == [bytes.fromhex(champion.hash)]
    owner.unalias("canary")
    until(lambda: topics.in_force("canary") is None, "canary withdrawn")
    assert topics.in_force("champion").hash == champion.hash
    owner.alias("challenger", third)
    assert released(topics, "challenger", third).rollout is None


def test_tags_give_scope_and_pin_and_a_bad_tag_releases_nothing(owner, topics, versions, clean):
    first, second, _ = versions
    owner.alias("champion", first)
    fleet = released(topics, "champion", first)
    site = owner.register(5, tags={"site": "hall-7", "pin": "true"})
    owner.alias("champion", site)
    there = released(topics, "champion", site, "site/hall-7")
    assert there.pinned and bundle.decode(bundle.split_signed(there.signed)[0]).target == "site/hall-7"
    assert topics.in_force("champion").hash == fleet.hash, "a promotion at one site leaves the fleet's"
    owner.tag(site, "pin", "false")
    loose = until(
        lambda: (now := topics.in_force("champion", "site/hall-7")) and not now.pinned and now, "no longer pinned"
    )
    assert loose.hash == there.hash, "the pin is no part of the bundle"
    owner.unalias("champion")
    until(lambda: topics.in_force("champion", "site/hall-7") is None, "the site's release is withdrawn")

    bad = owner.register(6, tags={"rollout.canary_share": "most"})
    owner.alias("champion", bad)
    error = until(lambda: owner.tags(bad).get("oal.error"), "refused")
    assert error == "tag rollout.canary_share=`most` is not a number from 0 to 1"
    assert topics.in_force("champion").hash == fleet.hash, "what was in force stays, the rollback of the site too"
    owner.tag(bad, "rollout.metric", "rejected_ratio")
    owner.tag(bad, "rollout.limit", "0.05")
    owner.tag(bad, "rollout.canary_share", "0.5")
    unknown = until(lambda: (now := owner.tags(bad).get("oal.error")) != error and now, "refused for its metric")
    assert unknown.startswith("tag rollout.metric=`rejected_ratio` is not the name of a metric; known are rejected_sh")
    owner.tag(bad, "rollout.metric", "brier_rise")
    assert released(topics, "champion", bad).rollout["share"] == 0.5
    until(lambda: "oal.error" not in owner.tags(bad), "the error is gone")


def test_versions_that_no_ap_could_run_are_refused_with_the_reason(owner, topics, versions, service, clean):
    from owner import OALF, items
    from sklearn.ensemble import RandomForestClassifier

    owner.alias("champion", versions[0])
    good = released(topics, "champion", versions[0])
    other = bytearray(OALF.read_bytes())
    other[-1] ^= 1
    forest = RandomForestClassifier(3).fit(*items(1))
    for version, expected in (
        (owner.register(1, program=bytes(other)), "was trained with the feature program "),
        (owner.register(1, program=None), "has the artifact feature_program.oalf"),
        (owner.register(1, form="cloudpickle"), "pickles are not read here"),
        (owner.register(1, estimator=forest), "distil"),
    ):
        owner.alias("champion", version)
        error = until(lambda v=version: owner.tags(v).get("oal.error"), f"version {version} refused")
        assert expected in error, error
    owner.unalias("champion")
    service.passes()  # the deletion was seen
    assert (
        topics.in_force("champion").hash == good.hash and topics.history[-1].hash == good.hash
    ), "a version that was refused took nothing's place"


def test_two_promotions_at_once_end_in_the_last_alias_state(owner, topics, versions, service, clean):
    for i in range(30):
        owner.alias("champion", versions[i % 3])
    last = versions[2]
    owner.alias("champion", last)
    released(topics, "champion", last)
    service.passes(3)
    now = topics.in_force("champion")
    assert now.version == last and now.serial == max(r.serial for r in topics.history if r.slot == "champion")


@pytest.mark.outage
def test_killed_in_the_middle_of_promotions_the_registry_ends_in_the_right_state(
    owner, topics, versions, service, clean
):
    for round_number, passes in enumerate((0, 1)):  # killed while it may be at it, and after a pass
        version = versions[round_number]
        owner.alias("champion", version)
        service.passes(passes)
        service.stop(signal.SIGKILL)
        service.start()
        service.wait_ready()
        now = released(topics, "champion", version)
        assert sum(r.version == version and r.serial == now.serial for r in topics.history) == 1
    assert until(lambda: owner.tags(now.version).get("oal.bundle.champion/fleet") == now.hash, "history written")
    assert len(topics.rows) == len(topics.history), "a release and its row are one transaction"


@pytest.mark.outage
def test_alias_changes_while_the_registry_is_down_are_made_up_for(owner, topics, versions, service, clean):
    owner.alias("champion", versions[0])
    released(topics, "champion", versions[0])
    owner.alias("champion", versions[1])
    released(topics, "champion", versions[1])
    service.stop()
    owner.unalias("champion")
    owner.alias("canary", versions[2])
    service.start()
    released(topics, "champion", versions[0])
    released(topics, "canary", versions[2])


@pytest.mark.outage
def test_mlflow_away_is_said_and_no_promotion_is_lost_and_the_webhook_returns_under_a_new_key(
    owner, topics, versions, service, mlflow, clean
):
    owner.alias("champion", versions[0])
    released(topics, "champion", versions[0])
    mlflow.stop(signal.SIGKILL)
    trouble = until(lambda: service.health().get("problems", {}).get("mlflow"), "health names MLflow")
    assert "no answer from" in trouble["what"] and get(f"{service.url}/healthz")[0] == 503
    (mlflow.folder / "webhook.key").unlink()
    registrations = service.metric("oal_registry_webhook_registrations_total")
    mlflow.start()
    mlflow.wait_ready()
    owner.alias("champion", versions[1])
    released(topics, "champion", versions[1])
    until(
        lambda: service.metric("oal_registry_webhook_registrations_total") > registrations, "webhook registered again"
    )
    service.wait_ready()
    accepted = service.metric('oal_registry_webhooks_total{result="accepted"}')

    def rings():
        owner.tag(versions[2], "note", str(time.time()))
        return service.metric('oal_registry_webhooks_total{result="accepted"}') > accepted

    until(rings, "the new webhook arrives")


@pytest.mark.outage
def test_an_mlflow_that_hangs_is_said_and_promotions_go_on_afterwards(owner, topics, versions, service, mlflow, clean):
    os.kill(mlflow.pid, signal.SIGSTOP)
    try:
        trouble = until(lambda: service.health().get("problems", {}).get("mlflow"), "health names MLflow")
        assert trouble["what"].endswith("timed out")
    finally:
        os.kill(mlflow.pid, signal.SIGCONT)
    owner.alias("champion", versions[2])
    released(topics, "champion", versions[2])
    service.wait_ready()


def test_forged_webhooks_are_refused_and_counted_and_a_deleted_one_is_registered_again(owner, service, mlflow):
    assert service.ring(key="guess") == (401, "webhook refused: forged\n")
    assert service.ring(stamp=time.time() - 3600)[1] == "webhook refused: stale\n"
    assert service.ring(identity="id-1")[0] == 204
    assert service.ring(identity="id-1")[1] == "webhook refused: replayed\n"
    assert get(f"{service.url}/webhook", data=b"{}")[0] == 401
    assert get(f"{service.url}/webhook", data=b"x" * 70_000)[0] in (0, 413)
    for result in ("forged", "stale", "replayed", "unsigned"):
        assert service.metric(f'oal_registry_webhooks_total{{result="{result}"}}') == 1, result

    from owner import Owner

    admin = Owner(mlflow.url, "admin", mlflow.passwords["admin"])
    try:
        (hook,) = [h for h in admin.client.list_webhooks() if h.name == "oal-registry"]
        registrations = service.metric("oal_registry_webhook_registrations_total")
        admin.client.delete_webhook(hook.webhook_id)
        until(lambda: service.metric("oal_registry_webhook_registrations_total") > registrations, "registered again")
        assert [h.url for h in admin.client.list_webhooks()] == [f"{service.url}/webhook"]
    finally:
        Owner(mlflow.url, "owner", mlflow.passwords["owner"])


@pytest.mark.outage
def test_a_lost_webhook_changes_only_the_latency(
    folder, owner, topics, versions, service, mlflow, kafka, signing_key, clean
):
    """The webhook goes to a port where nobody listens."""
    service.stop()
    deaf = RegistryService(
        folder / "deaf",
        mlflow,
        kafka.client("model-registry"),
        signing_key,
        ["true"],
        poll_s=0.5,
        webhook_url="http://127.0.0.1:9/webhook",
    )
    deaf.start()
    try:
        deaf.wait_ready()
        owner.alias("champion", versions[0])
        released(topics, "champion", versions[0])
        assert until(lambda: deaf.metric('oal_registry_changes_total{woken_by="poll"}'), "a poll saw it") == 1
    finally:
        deaf.stop()
        service.start()


@pytest.mark.outage
def test_a_second_registry_shuts_the_first_out(
    folder, owner, topics, versions, service, mlflow, kafka, signing_key, clean
):
    # The first learns of it when it writes. The second looks seldom, so that it is seldom the first to write; and where
    # it is, the next promotion comes.
    second = RegistryService(
        folder / "second",
        mlflow,
        kafka.client("model-registry"),
        signing_key,
        ["true"],
        poll_s=8,
        webhook_url="http://127.0.0.1:9/webhook",
    )
    second.start()
    try:
        second.wait_ready()
        owner.alias("champion", versions[1])
        released(topics, "champion", versions[1])
        history, promotions = len(topics.history), 0
        for version in (versions[0], versions[1]) * 4:
            owner.alias("champion", version)
            released(topics, "champion", version)
            promotions += 1
            if service.ended():
                break
        until(service.ended, "the first ends")
        assert "another model registry runs" in service.tail()
        topics.read()
        assert len(topics.history) == history + promotions, "each promotion was written once"
    finally:
        second.stop()
