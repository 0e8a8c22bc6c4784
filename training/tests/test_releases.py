"""Which release an AP follows, and how a shipped bundle names what it may go back to."""

from __future__ import annotations

import numpy as np
import synthetic
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from oal_schema import bundle as oal_bundle
from oal_schema import keys
from oal_schema import release as oal_release
from oal_schema.grant import grant
from oal_schema.policy import ENFORCE, PREDICT_ONLY, make
from oal_schema.tree import Tree
from oal_training.online import programs, rows, shipment
from oal_training.online.decision import Decision
from oal_training.online.releases import LatestReleases

PROGRAM = next(iter(programs.known().values()))
KEY, TRAINER = (Ed25519PrivateKey.generate() for _ in range(2))
TRUSTED = {
    keys.key_id(k): keys.TrustedKey(k.public_key(), role, grant(role))
    for k, role in ((KEY, "registry"), (TRAINER, "trainer"))
}
POLICY = make("hall", 3, ENFORCE)
LEAF = Tree(
    np.array([-1], np.int32),
    np.zeros(1, np.int64),
    np.zeros(1, np.int32),
    np.zeros(1, bool),
    np.zeros(1, np.uint8),
    np.zeros((1, 3), np.uint16),
    PROGRAM.feature_hash,
)


def record(slot: str, scope: str, serial: int, pinned: bool = False, version: int = 1, of=None, key=None, **place):
    """(key, value, hash) of a release; `of`: another policy's name and law."""
    source = "online" if slot == "online" else "registry"
    payload = oal_bundle.encode(
        oal_bundle.Bundle(
            serial,
            scope,
            source,
            "m",
            version,
            [],
            PROGRAM.words,
            PROGRAM.decision_interval_us,
            oal_bundle.models_of(LEAF),
            **(of or {}),
        )
    )
    name, value = oal_release.record(
        slot,
        scope,
        oal_bundle.sign(payload, key or (TRAINER if slot == "online" else KEY)),
        source=source,
        model="m",
        version=version,
        run_id="",
        created_us=serial,
        feature_hash=PROGRAM.feature_hash,
        pinned=pinned,
        **place,
    )
    return name.encode(), value, oal_bundle.bundle_hash(payload)


def latest() -> LatestReleases:
    return LatestReleases(lambda: TRUSTED, lambda: 0)


def following(*records) -> LatestReleases:
    releases = latest()
    for key, value, *_ in records:
        releases.put(key, value)
    return releases


def in_force(releases: LatestReleases) -> int | None:
    found = releases.followed("a", "s").in_force
    return found and found.bundle_id


def test_the_greatest_rank_wins_and_others_releases_do_not_count():
    fleet, site, online = (
        record("champion", "fleet", 10),
        record("champion", "site/s", 20),
        record("online", "ap/a", 30),
    )
    others = [
        record("champion", "site/t", 90),
        record("online", "ap/b", 91),
        record("canary", "fleet", 92),
        record("challenger", "fleet", 93),
    ]
    assert in_force(latest()) is None
    assert in_force(following(fleet, *others)) == oal_bundle.bundle_id(fleet[2])
    assert in_force(following(online, site, fleet, *others)) == oal_bundle.bundle_id(online[2])
    newer = record("champion", "fleet", 40)
    releases = following(online, site, newer, *others)
    assert in_force(releases) == oal_bundle.bundle_id(newer[2])
    releases.put(b"champion/fleet", None)
    assert in_force(releases) == oal_bundle.bundle_id(online[2])
    releases.put(b"online/ap/a", None)
    assert in_force(releases) == oal_bundle.bundle_id(site[2])


def test_a_pinned_champion_rules_out_online_trees():
    fleet, online = record("champion", "fleet", 10, pinned=True), record("online", "ap/a", 30, version=8)
    followed = following(fleet, online).followed("a", "s")
    assert followed.in_force.pinned and followed.in_force.bundle_id == oal_bundle.bundle_id(fleet[2])
    assert followed.version == 8 and max(followed.serials) == 30


def test_records_that_are_no_releases_change_nothing():
    fleet = record("champion", "fleet", 10)
    releases = following(fleet)
    for key, value in (
        (None, b"x"),
        (b"champion/fleet", b"{"),
        (b"\xff", None),
        (b"other/fleet", fleet[1]),
        (b"champion/site/s", fleet[1]),
    ):
        releases.put(key, value)
    assert releases.refused == 5 and in_force(releases) == oal_bundle.bundle_id(fleet[2])


def test_releases_of_other_policies_are_not_followed():
    fleet = record("champion", "fleet", 10)
    law = oal_bundle.Law("direct", "flow", "rwnd", (0, 0, 60000, 30000))
    other = record("champion", "fleet", 90, of={"of_policy": "example", "law": law})
    assert other[0] == b"champion/fleet/example"
    releases = following(fleet, other)
    assert releases.refused == 0 and in_force(releases) == oal_bundle.bundle_id(fleet[2])
    assert releases.followed("a", "s").serials == [10]


def test_a_shipment_is_newer_than_all_and_names_what_to_go_back_to():
    fleet, online = record("champion", "fleet", 10), record("online", "ap/a", 5_000, version=3)
    followed = following(fleet, online).followed("a", "s")
    recent = np.array([item.features for item in synthetic.items(50, features=len(PROGRAM.words))], np.int64)
    decision = Decision("a", "s", 4_000, True, "better", tree=LEAF, feature_hash=PROGRAM.feature_hash)
    sent = shipment.make(decision, PROGRAM, followed, recent, TRAINER, "run", POLICY)
    bundle, digest = oal_bundle.open_signed(
        oal_release.parse(sent.key, sent.value).signed, TRUSTED, "a", "s"
    )
    assert (sent.serial, sent.version, sent.key) == (
        5_001,
        4,
        "online/ap/a",
    ), "the clock of the trainer is behind, the serial is not"
    assert bundle.rollback_to == [online[2], fleet[2]] and digest == sent.hash and len(bundle.golden) >= 4
    assert bundle.policy == sent.policy == POLICY and (
        rows.release(sent)["policy"],
        rows.release(sent)["policy_version"],
    ) == ("hall", 3)


def test_the_latest_tree_is_released_again_with_its_number_and_place():
    fleet, online = record("champion", "fleet", 10), record("online", "ap/a", 5_000, version=3)
    releases = following(fleet, online)
    now = releases.followed("a", "s").in_force
    assert now.rank == 5_000 and now.policy == PREDICT_ONLY
    again = Decision("a", "s", 9_000, True, "policy", tree=now.tree, feature_hash=PROGRAM.feature_hash)
    followed = releases.followed("a", "s")
    sent = shipment.make(again, PROGRAM, followed, None, TRAINER, releases.run_id("a"), POLICY, now.rank)
    release = oal_release.parse(sent.key, sent.value)
    assert (release.serial, release.rank, release.version, release.reason) == (9_000, 5_000, 3, "policy")
    releases.put(sent.key.encode(), sent.value)
    assert releases.followed("a", "s").in_force.policy == POLICY and releases.followed("a", "s").version == 3
    releases.put(*record("champion", "fleet", 7_000)[:2])
    assert in_force(releases) != sent.bundle_id, "a champion that came after the tree, though before its policy"


def test_a_champion_with_a_newer_policy_keeps_its_place():
    online = record("online", "ap/a", 30)
    again = record("champion", "fleet", 40, rank=10)
    followed = following(again, online).followed("a", "s")
    assert followed.in_force.bundle_id == oal_bundle.bundle_id(online[2]) and max(followed.serials) == 40
    assert following(again).followed("a", "s").in_force.promoted_us == 10, "nobody promoted it anew"


def test_a_variant_stands_in_for_the_fleets_champion():
    fleet = record("champion", "fleet", 10)
    there = record("champion", "site/s", 20, rank=10, variant_of=fleet[2].hex())
    newer = record("champion", "fleet", 30)
    releases = following(fleet, there, newer)
    assert in_force(releases) == oal_bundle.bundle_id(there[2])
    other = releases.followed("a", "elsewhere").in_force
    assert other.bundle_id == oal_bundle.bundle_id(newer[2]) and other.rank == 0


def test_what_nobody_may_have_signed_is_neither_compared_with_nor_signed_anew():
    fleet, online = record("champion", "fleet", 10), record("online", "ap/a", 30)
    stranger = Ed25519PrivateKey.generate()
    releases = following(
        fleet,
        online,
        record("champion", "fleet", 40, key=stranger),
        record("champion", "fleet", 50, key=TRAINER),
        record("online", "ap/a", 60, key=KEY, version=9),
        record("online", "ap/a", 70, key=stranger, version=9),
        record("online", "ap/a", 400_000_000, version=9),
        record("champion", "site/s", 1 << 62),
    )
    followed = releases.followed("a", "s")
    assert releases.refused == 6 and followed.in_force.bundle_id == oal_bundle.bundle_id(online[2])
    assert (followed.version, set(followed.serials)) == (1, {10, 30})


def test_a_serial_far_ahead_is_not_followed():
    online = record("online", "ap/a", 200_000_000)
    followed = following(online).followed("a", "s")
    decision = Decision("a", "s", 4_000, True, "better", tree=LEAF, feature_hash=PROGRAM.feature_hash)
    assert shipment.make(decision, PROGRAM, followed, None, TRAINER, "run", POLICY).serial == 200_000_001
    followed.serials.append(1 << 62)  # one that was near when it was read, by a clock that then went back
    assert shipment.make(decision, PROGRAM, followed, None, TRAINER, "run", POLICY).serial == 200_000_001
