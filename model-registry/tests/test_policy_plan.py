"""Which releases a change of policies makes anew: releases and policies in, steps out. No Kafka, no MLflow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from oal_registry.policy_plan import plan
from oal_schema.policy import ENFORCE, OFF, PREDICT_ONLY, SHADOW, make
from oal_schema.policy_file import Policies, PolicyFile
from oal_schema.release import Release

DEFAULT, ACTS, QUIET = make("default", 1, SHADOW), make("acts", 1, ENFORCE), make("quiet", 1, OFF)


def policies(**scopes) -> Policies:
    """By scope, written fleet, site_X, ap_Y."""
    named = {k.replace("_", "/"): v for k, v in scopes.items()}
    return Policies({k: PolicyFile(None, k, v) for k, v in named.items()})


class Slot:
    """Releases of champion with the policy each has."""

    def __init__(self):
        self.releases, self.policies = {}, {}

    def put(self, scope, rank, policy, variant_of="", **more):
        hash_ = f"{len(self.policies):064x}"
        self.releases["champion", scope] = Release(
            "champion", scope, b"x", hash=hash_, serial=rank, rank=rank, variant_of=variant_of, **more
        )
        self.policies[hash_] = policy
        return hash_

    def steps(self, of: Policies):
        return [
            (s.action, s.scope, s.policy and s.policy.name)
            for s in plan("champion", self.releases, of, lambda r: self.policies[r.hash])
        ]


@pytest.fixture
def slot():
    return Slot()


def test_nothing_in_force_or_nothing_changed_is_nothing_to_do(slot):
    assert slot.steps(policies(fleet=DEFAULT, site_a=ACTS)) == []
    slot.put("fleet", 10, DEFAULT)
    slot.put("site/b", 11, DEFAULT)
    assert slot.steps(policies(fleet=DEFAULT)) == []
    assert plan("canary", slot.releases, policies(fleet=ACTS), lambda r: slot.policies[r.hash]) == [], "another slot"


def test_a_changed_policy_renews_what_it_applies_to(slot):
    slot.put("fleet", 10, PREDICT_ONLY)
    slot.put("site/a", 20, ACTS)
    slot.put("site/b", 30, PREDICT_ONLY)
    assert slot.steps(policies(fleet=DEFAULT, site_a=ACTS)) == [
        ("renew", "fleet", "default"),
        ("renew", "site/b", "default"),
    ]
    newer = make("acts", 2, ENFORCE, {"alpha": 2})
    assert ("renew", "site/a", "acts") in slot.steps(policies(fleet=DEFAULT, site_a=newer))


def test_a_site_or_an_ap_with_a_policy_has_a_variant_of_the_fleets(slot):
    slot.put("fleet", 10, DEFAULT)
    of = policies(fleet=DEFAULT, ap_x=QUIET, site_a=ACTS)
    assert slot.steps(of) == [("variant", "site/a", "acts"), ("variant", "ap/x", "quiet")]
    assert slot.steps(policies(fleet=DEFAULT, site_a=DEFAULT)) == [], "the same policy twice"


def test_a_variant_follows_the_fleets_release_its_conditions_and_its_policy(slot):
    base = slot.put("fleet", 10, DEFAULT)
    slot.put("site/a", 10, ACTS, variant_of=base)
    of = policies(fleet=DEFAULT, site_a=ACTS)
    assert slot.steps(of) == []
    assert slot.steps(policies(fleet=DEFAULT, site_a=QUIET)) == [("variant", "site/a", "quiet")]
    assert slot.steps(policies(fleet=QUIET, site_a=ACTS)) == [
        ("renew", "fleet", "quiet"),
        ("variant", "site/a", "acts"),
    ]
    fleet = slot.releases["champion", "fleet"]
    for change in ({"pinned": True}, {"rollout": {"share": 0.5}}):
        slot.releases["champion", "fleet"] = replace(fleet, **change)
        assert slot.steps(of) == [("variant", "site/a", "acts")], change
    slot.put("fleet", 30, DEFAULT)
    assert slot.steps(of) == [("variant", "site/a", "acts")], "another release"


def test_a_variant_goes_with_its_policy_or_with_the_fleets_release(slot):
    base = slot.put("fleet", 10, DEFAULT)
    slot.put("site/a", 10, ACTS, variant_of=base)
    assert slot.steps(policies(fleet=DEFAULT)) == [("withdraw", "site/a", None)]
    assert slot.steps(policies(fleet=ACTS, site_a=ACTS)) == [("renew", "fleet", "acts"), ("withdraw", "site/a", None)]
    del slot.releases["champion", "fleet"]
    assert slot.steps(policies(fleet=DEFAULT, site_a=ACTS)) == [("withdraw", "site/a", None)]


def test_a_sites_own_champion_is_no_variant_while_it_is_the_newer(slot):
    slot.put("fleet", 10, DEFAULT)
    slot.put("site/a", 20, ACTS)
    of = policies(fleet=DEFAULT, site_a=ACTS)
    assert slot.steps(of) == []
    slot.put("fleet", 30, DEFAULT)
    assert slot.steps(of) == [("variant", "site/a", "acts")], "its APs have the fleet's by now"
    assert slot.steps(policies(fleet=DEFAULT)) == [], "and one that nobody has is not renewed"
