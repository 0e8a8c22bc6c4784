"""Records that nobody may have written: the registry counts them, signs nothing of them anew, and releases what MLflow
says; access points refuse them. The topic is a list here; test_policies.py has a forged record on a real one.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from oal_registry.errors import NotPackagable
from oal_registry.gate import Gate
from oal_registry.policy_reconciler import PolicyReconciler
from oal_registry.promotion import Promotion
from oal_registry.release_topic import KafkaTrouble, ReleaseTopic
from oal_registry.slot_memory import SlotMemory
from oal_registry.status import Status
from oal_schema import bundle, keys, release
from oal_schema.golden_bundles import random_tree
from oal_schema.grant import grant
from oal_schema.nodes import BundleError
from oal_schema.policy import ENFORCE, make
from oal_schema.policy_folder import PolicyFolder
from test_several_policies import CANARY, FAIR, PROGRAM, Compiled, Mlflow

NOW = 1_800_000_000_000_000
HOUR = 3_600_000_000
REGISTRY, TRAINER, STRANGER = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2, 3))


class Topic(ReleaseTopic):
    """A topic that is a list; `plant` is what somebody else writes."""

    def __init__(self, records, trusted, now_us):
        super().__init__({}, trusted, keys.key_id(REGISTRY), now_us)
        self.records, self.seen = records, 0
        self._reader = SimpleNamespace(read=lambda: self._since(0), more=lambda: self._since(self.seen), close=int)

    def _since(self, start):
        self.seen = len(self.records)
        return self.records[start:]

    def _commit(self, key, value, row):
        self.records.append((key, value))
        self._written[key, value] += 1

    def plant(self, slot, scope, key, *, source="registry", serial=NOW, said="", seed=99, **more) -> release.Release:
        tree = replace(random_tree(seed, 9), feature_hash=PROGRAM.feature_hash)
        content = bundle.Bundle(serial, scope, source, "congestion", seed, [], list(PROGRAM.words),
                                PROGRAM.decision_interval_us, bundle.models_of(tree),
                                policy=make("forged", 1, ENFORCE))
        record = release.record(slot, scope, bundle.sign(bundle.encode(content), key), source=said or source,
                                model="congestion", version=seed, run_id="", feature_hash=content.feature_hash,
                                created_us=NOW, **more)
        self.records.append(record)
        return release.parse(*record)


@pytest.fixture
def here(tmp_path):
    """A registry with champion 3 in force, and what it trusts."""
    (tmp_path / "in-force").mkdir()
    (tmp_path / "in-force" / "default.yaml").write_text("name: default\nversion: 1\napplies_to: fleet\nmode: shadow\n")
    clock = iter(range(NOW, NOW + 10**9))
    made = SimpleNamespace(mlflow=Mlflow("congestion"), status=Status(lambda line: None), records=[], ahead=0)
    made.trusted = {
        keys.key_id(REGISTRY): keys.TrustedKey(REGISTRY.public_key(), "registry", grant("registry")),
        keys.key_id(TRAINER): keys.TrustedKey(TRAINER.public_key(), "online", grant("trainer")),
    }

    def start() -> None:
        made.topic = Topic(made.records, lambda: made.trusted, lambda: next(clock) + made.ahead)
        made.topic.read()
        folder = PolicyFolder(tmp_path / "in-force")
        parts = made.topic, REGISTRY, SlotMemory(tmp_path / "slots.json"), made.status, CANARY, folder
        parts += (Gate(made.mlflow, FAIR.name, False, made.status),)
        made.promotion = Promotion(Compiled(FAIR, made.mlflow), *parts)
        made.policies = PolicyReconciler(made.topic, folder, REGISTRY, made.status, {FAIR.name})

    def passes() -> None:
        made.topic.look()
        for _ in range(2):
            made.policies.look()
            made.policies.reconcile()
            made.promotion.reconcile()

    made.start, made.passes = start, passes
    start()
    made.mlflow.models["congestion"]["champion"] = 3
    passes()
    assert versions(made) == {("champion", "fleet"): 3}
    return made


def versions(here) -> dict[tuple[str, str], int]:
    return {key: r.version for key, r in here.topic.of("rwnd-fair").items()}


def signed_here(here) -> list[release.Release]:
    """All that this registry ever signed."""
    made = [release.parse(*record) for record in here.records if record[1]]
    return [r for r in made if bundle.split_signed(r.signed)[1] == keys.key_id(REGISTRY)]


FORGERIES = {
    "a stranger's champion": dict(slot="champion", scope="fleet", key=STRANGER),
    "a stranger's champion of a site": dict(slot="champion", scope="site/hall", key=STRANGER),
    "a stranger's canary": dict(slot="canary", scope="fleet", key=STRANGER),
    "the trainer's key, role registry claimed": dict(slot="champion", scope="fleet", key=TRAINER),
    "the trainer's key, as what it is": dict(slot="champion", scope="fleet", key=TRAINER, source="online"),
    "the trainer's key, two sources": dict(slot="champion", scope="fleet", key=TRAINER, source="online",
                                           said="registry"),
}


@pytest.mark.parametrize("how", FORGERIES)
@pytest.mark.parametrize("restarts", [False, True], ids=["while it runs", "before it starts"])
def test_of_a_forged_record_nothing_is_signed_anew(here, how, restarts):
    forged = here.topic.plant(**FORGERIES[how])
    if restarts:
        here.start()
    else:
        assert [name for name, _ in here.topic.look()] == [release.key(forged.slot, forged.scope)]
    assert (forged.slot, forged.scope) not in versions(here), "its slot is empty"
    for folder_version in (2, 3):  # each makes anew what is in force
        folder = here.policies.folder.path
        (folder / "default.yaml").write_text(
            f"name: default\nversion: {folder_version}\napplies_to: fleet\nmode: shadow\n"
        )
        here.passes()
    assert {r.version for r in signed_here(here)} == {3} and versions(here) == {("champion", "fleet"): 3}
    assert here.topic.of("rwnd-fair")["champion", "fleet"].bundle().policy.version == 3
    assert bool(here.topic.refused) == ((forged.slot, forged.scope) != ("champion", "fleet")), "it is told"
    with pytest.raises((BundleError, release.ReleaseError)) as e:
        release.verify(forged, here.trusted, NOW)
    assert e.value.reason in ("unknown_key", "not_permitted", "bad_record")


def test_an_access_point_refuses_them_too(here):
    for how in ("a stranger's champion", "the trainer's key, role registry claimed"):
        with pytest.raises(BundleError, match="unknown_key|not_permitted"):
            bundle.open_signed(here.topic.plant(**FORGERIES[how]).signed, here.trusted, "ap-1", "hall")


def test_a_key_that_is_trusted_no_longer_leaves_nothing_in_force(here):
    del here.trusted[keys.key_id(REGISTRY)]
    here.start()
    assert versions(here) == {} and here.topic.refused["champion/fleet"][0] == "unknown_key"
    with pytest.raises(NotPackagable, match="unknown_key"):
        release_one(here)


def test_a_key_signs_no_more_than_it_may(here):
    own = keys.key_id(REGISTRY)
    for may, why in ((grant("registry", max_mode="off"), "above its max_mode"), (grant("registry", "site/s"), "scope")):
        here.trusted[own] = keys.TrustedKey(REGISTRY.public_key(), "registry", may)
        before = len(here.records)
        with pytest.raises(NotPackagable, match=why):
            release_one(here)
        assert len(here.records) == before


def release_one(here) -> None:
    here.topic.release("champion", "fleet", here.promotion._package(("champion", "fleet"), here.promotion._compiled(
        {"class": 4, "window": 0})), model="congestion", version=4, run_id="", pinned=False, reason="", rollout=None)


def test_an_operators_bundle_counts_where_its_key_may_sign(here):
    hand = Ed25519PrivateKey.from_private_bytes(bytes([4]) * 32)
    here.trusted[keys.key_id(hand)] = keys.TrustedKey(hand.public_key(), "hand", grant("operator", "site/hall"))
    here.topic.plant("champion", "site/hall", hand, seed=7)
    here.topic.plant("champion", "site/other", hand, seed=8)
    here.topic.look()
    assert versions(here) == {("champion", "fleet"): 3, ("champion", "site/hall"): 7}
    assert here.topic.refused["champion/site/other"][0] == "not_permitted"


def test_serials_follow_online_trees_but_not_those_of_the_future(here):
    here.topic.plant("online", "ap/ap-1", TRAINER, source="online", serial=NOW + 200_000_000)
    here.topic.look()
    assert here.topic.next_serial() == NOW + 200_000_001, "a champion made now loses against no tree made before"
    here.topic.plant("online", "ap/ap-2", TRAINER, source="online", serial=NOW + HOUR)
    here.topic.plant("online", "ap/ap-3", STRANGER, source="online", serial=NOW + 290_000_000)
    assert here.topic.look() == [("online/ap/ap-2", "future"), ("online/ap/ap-3", "unknown_key")]
    assert here.topic.next_serial() == NOW + 200_000_001


def test_a_champion_of_the_future_blocks_no_slot(here):
    hand = Ed25519PrivateKey.from_private_bytes(bytes([4]) * 32)  # a second registry's key, in a rotation
    here.trusted[keys.key_id(hand)] = keys.TrustedKey(hand.public_key(), "old", grant("registry"))
    here.topic.plant("champion", "fleet", hand, serial=NOW + HOUR)
    here.passes()
    now = here.topic.of("rwnd-fair")["champion", "fleet"]
    assert now.version == 3 and now.serial < NOW + HOUR


def test_a_clock_that_is_behind_its_own_releases_signs_nothing_until_it_is_right(here):
    here.ahead = -HOUR
    with pytest.raises(KafkaTrouble, match="ahead of this clock"):
        here.start()
    here.ahead = 0
    here.start()
    assert versions(here) == {("champion", "fleet"): 3}
