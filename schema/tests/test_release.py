"""Records of ap.bundles.v1."""

import json

import pytest
from oal_schema import golden_bundles as golden
from oal_schema import golden_bundles2 as golden2
from oal_schema import keys, release
from oal_schema.bundle import bundle_hash, encode, sign
from oal_schema.grant import grant
from oal_schema.nodes import BundleError

PAYLOAD = encode(golden.bundle())
EXAMPLE = sign(encode(golden2.direct()), golden.KEY)
SIGNED = sign(PAYLOAD, golden.KEY)
FACTS = dict(
    source="online", model="congestion-tree", version=7, run_id="r1", feature_hash=golden.feature_hash(), created_us=5
)
ROLLOUT = {"share": 0.1, "soak_s": 60, "activate_in_s": 0, "metric": "brier_rise", "limit": 0.02}


def test_round_trip():
    key, value = release.record("canary", "site/lab", SIGNED, **FACTS, pinned=True, reason="r", rollout=ROLLOUT)
    r = release.parse(key.encode(), value)
    assert key == "canary/site/lab" and (r.slot, r.scope, r.pinned, r.reason, r.rollout) == (
        "canary",
        "site/lab",
        True,
        "r",
        ROLLOUT,
    )
    assert (
        r.signed == SIGNED
        and r.hash == bundle_hash(PAYLOAD).hex()
        and r.serial == golden.SERIAL
        and r.feature_hash == golden.feature_hash()
    )


@pytest.mark.parametrize(
    "change, says", [({"metric": "macro_f1"}, "known are rejected_share, onset"), ({"speed": 1}, "it needs")]
)
def test_a_rollout_names_what_the_push_service_knows(change, says):
    with pytest.raises(release.ReleaseError, match=says):
        release.record("canary", "fleet", SIGNED, **FACTS, rollout=ROLLOUT | change)


def test_a_rollout_may_have_steps_and_a_release_its_promoter():
    rollout = ROLLOUT | {"steps": [{"share": 0.1, "soak_s": 60, "min_aps": 3, "min_onsets": 30}], "deadline_s": 600}
    r = release.parse(*release.record("canary", "fleet", SIGNED, **FACTS, rollout=rollout, promoted_by="ann"))
    assert (r.rollout, r.promoted_by) == (rollout, "ann")


def test_the_record_has_the_contracts_fields():
    value = json.loads(release.record("online", "ap/ap-1", SIGNED, **FACTS)[1])
    assert set(value) == {
        "slot",
        "scope",
        "bundle",
        "hash",
        "serial",
        "source",
        "model",
        "version",
        "run_id",
        "feature_hash",
        "created_us",
        "pinned",
        "reason",
        "rollout",
        "rank",
        "variant_of",
    }
    assert value["rank"] == value["serial"] and value["variant_of"] == ""
    assert value["rollout"] is None and value["pinned"] is False


def test_place_of_a_bundle_that_has_a_newer_policy():
    value = json.loads(release.record("champion", "site/lab", SIGNED, **FACTS, rank=7, variant_of="0f" * 32)[1])
    r = release.parse("champion/site/lab", json.dumps(value).encode())
    assert (r.rank, r.variant_of) == (7, "0f" * 32)
    older = {k: v for k, v in value.items() if k not in ("rank", "variant_of")}
    r = release.parse("champion/site/lab", json.dumps(older).encode())
    assert (r.rank, r.variant_of) == (golden.SERIAL, ""), "a writer that knows neither"


@pytest.mark.parametrize(
    "scope, place",
    [
        ("fleet", {"rank": -1}),
        ("fleet", {"rank": golden.SERIAL + 1}),
        ("fleet", {"variant_of": "0f" * 32}),
        ("site/lab", {"variant_of": "0f"}),
        ("site/lab", {"variant_of": "0F" * 32}),
    ],
)
def test_places_that_cannot_be(scope, place):
    with pytest.raises(release.ReleaseError):
        release.record("champion", scope, SIGNED, **FACTS, **place)
    key, value = release.record("champion", scope, SIGNED, **FACTS)
    with pytest.raises(release.ReleaseError):
        release.parse(key, json.dumps(json.loads(value) | place).encode())


@pytest.mark.parametrize("scope", ["fleet", "site/lab", "ap/ap-1"])
def test_a_release_of_another_policy_has_it_in_key_and_value(scope):
    name, value = release.record("canary", scope, EXAMPLE, **FACTS)
    assert name == f"canary/{scope}/example" and json.loads(value)["policy"] == "example"
    r = release.parse(name, value)
    assert (r.slot, r.scope, r.policy) == ("canary", scope, "example") and r.bundle().of_policy == "example"
    gone = release.parse(*release.withdrawal("canary", scope, "example"))
    assert (gone.slot, gone.scope, gone.policy, gone.signed) == ("canary", scope, "example", None)


def test_a_release_of_rwnd_fair_may_name_it_in_its_value():
    key, value = release.record("champion", "fleet", SIGNED, **FACTS)
    assert release.parse(key, json.dumps(json.loads(value) | {"policy": "rwnd-fair"}).encode()).policy == "rwnd-fair"


@pytest.mark.parametrize(
    "key, change, says",
    [
        ("champion/fleet/other", {"policy": "other"}, "its bundle is of policy example"),
        ("champion/fleet/other", {}, "policy example"),
        ("champion/fleet", {}, "policy example"),
        ("champion/fleet", {"policy": "rwnd-fair"}, "its bundle is of policy example"),
        ("champion/fleet/example", {"policy": ""}, "policy rwnd-fair"),
        ("champion/fleet/example", {"scope": "site/lab"}, "site/lab"),
        ("champion/fleet/rwnd-fair", {}, "SLOT/SCOPE of rwnd-fair"),
        ("champion/fleet/Example", {}, "policy 'Example'"),
        ("champion/fleet/example/x", {}, "SLOT/SCOPE"),
        ("champion/fleet/", {}, "policy ''"),
        ("champion/site/lab/a/b", {}, "SLOT/SCOPE"),
        ("online/fleet/example", {"slot": "online"}, "rwnd-fair's only"),
        ("online/ap/ap-1/example", {"slot": "online"}, "rwnd-fair's only"),
    ],
)
def test_key_value_and_bundle_agree_on_the_policy(key, change, says):
    value = json.loads(release.record("champion", "fleet", EXAMPLE, **FACTS)[1])
    with pytest.raises(release.ReleaseError, match=says):
        release.parse(key, json.dumps(value | change).encode())


def test_the_online_slot_is_rwnd_fairs():
    with pytest.raises(release.ReleaseError, match="rwnd-fair's only"):
        release.record("online", "ap/ap-1", EXAMPLE, **FACTS)


def test_a_key_that_is_no_text():
    with pytest.raises(release.ReleaseError, match="no text"):
        release.parse(b"champion/\xff", None)


def test_withdrawal():
    r = release.parse(*release.withdrawal("champion", "fleet"))
    assert r.signed is None and (r.slot, r.scope) == ("champion", "fleet")


@pytest.mark.parametrize(
    "slot, scope",
    [("king", "fleet"), ("champion", "all"), ("champion", "ap/"), ("champion", "ap/a b"), ("champion", "")],
)
def test_unknown_slot_or_scope(slot, scope):
    with pytest.raises(release.ReleaseError):
        release.record(slot, scope, SIGNED, **FACTS)
    with pytest.raises(release.ReleaseError):
        release.parse(f"{slot}/{scope}", b"{}")


@pytest.mark.parametrize("change", [{"source": "me"}, {"rollout": {"share": 1}}])
def test_what_cannot_be_released(change):
    with pytest.raises(release.ReleaseError):
        release.record("champion", "fleet", SIGNED, **(FACTS | change))


@pytest.mark.parametrize(
    "change", [{"hash": "00"}, {"serial": 1}, {"slot": "canary"}, {"bundle": "!"}, {"bundle": ""}, {"version": None}]
)
def test_records_that_contradict_themselves(change):
    key, value = release.record("champion", "fleet", SIGNED, **FACTS)
    with pytest.raises(release.ReleaseError, match="champion/fleet"):
        release.parse(key, json.dumps(json.loads(value) | change).encode())
    with pytest.raises(release.ReleaseError):
        release.parse(key, value[:-1])
    with pytest.raises(release.ReleaseError):
        release.parse(key, b"[]")


NOW = golden.SERIAL + 1_000_000


def signed(by=golden.KEY, **changes) -> bytes:
    return sign(encode(golden.bundle(**changes)), by)


def record_of(data: bytes, slot="champion", scope="fleet", **changes) -> release.Release:
    facts = FACTS | {"source": "registry", "version": 3} | changes
    return release.parse(*release.record(slot, scope, data, **facts))


def test_what_may_count_as_in_force():
    assert release.verify(record_of(signed()), golden.TRUSTED, NOW).version == 3
    assert release.verify(record_of(signed(), scope="site/lab"), golden.TRUSTED, NOW).target == "fleet"
    tree = record_of(signed(source="online", target="ap/a"), "online", "ap/a", source="online")
    assert release.verify(tree, golden.TRUSTED, NOW).target == "ap/a"


TRAINER = {i: keys.TrustedKey(k.key, "online", grant("trainer")) for i, k in golden.TRUSTED.items()}


@pytest.mark.parametrize(
    "made, trusted, reason",
    [
        (record_of(signed(golden.STRANGER)), golden.TRUSTED, "unknown_key"),
        (record_of(signed()), {}, "unknown_key"),
        (record_of(signed()), TRAINER, "not_permitted"),
        (record_of(signed(target="site/lab")), golden.TRUSTED, "wrong_target"),
        (record_of(signed(target="ap/a"), scope="ap/b"), golden.TRUSTED, "wrong_target"),
        (record_of(signed(source="online")), golden.TRUSTED, "bad_record"),
        (record_of(signed(source="online"), source="online"), TRAINER, "bad_record"),
        (record_of(signed(), source="online"), golden.TRUSTED, "bad_record"),
        (record_of(signed(target="ap/a"), "online", "ap/a"), golden.TRUSTED, "bad_record"),
        (record_of(signed(), version=4), golden.TRUSTED, "bad_record"),
        (record_of(signed(), model="other"), golden.TRUSTED, "bad_record"),
        (record_of(signed(), feature_hash=1), golden.TRUSTED, "bad_record"),
        (record_of(signed(serial=NOW + 300_000_001)), golden.TRUSTED, "future"),
        (record_of(signed(serial=1 << 62)), golden.TRUSTED, "future"),
    ],
)
def test_what_may_not_count_as_in_force(made, trusted, reason):
    with pytest.raises((BundleError, release.ReleaseError)) as e:
        release.verify(made, trusted, NOW)
    assert e.value.reason == reason, e.value


def test_a_flipped_bit_of_the_signature_counts_for_nothing():
    data = bytearray(signed())
    data[-1] ^= 1
    with pytest.raises(BundleError, match="bad_signature"):
        release.verify(record_of(bytes(data)), golden.TRUSTED, NOW)
