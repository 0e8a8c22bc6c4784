"""Which releases a change of policies makes anew: releases and policies in, steps out. No Kafka, no MLflow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from oal_registry.errors import RegistryError
from oal_registry.policy_folder import PolicyFolder
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
        self.releases["champion", scope] = Release("champion", scope, b"x", hash=hash_, serial=rank, rank=rank, variant_of=variant_of, **more)
        self.policies[hash_] = policy
        return hash_

    def steps(self, of: Policies):
        return [(s.action, s.scope, s.policy and s.policy.name) for s in plan("champion", self.releases, of, lambda r: self.policies[r.hash])]


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
    assert slot.steps(policies(fleet=DEFAULT, site_a=ACTS)) == [("renew", "fleet", "default"), ("renew", "site/b", "default")]
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
    assert slot.steps(policies(fleet=QUIET, site_a=ACTS)) == [("renew", "fleet", "quiet"), ("variant", "site/a", "acts")]
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


# --- the folder

FLEET = "name: default\nversion: {}\napplies_to: fleet\nmode: shadow\ncontrol: {{alpha: {}}}\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "default.yaml").write_text(FLEET.format(1, 1))
    return PolicyFolder(tmp_path)


def change(folder, version, alpha):
    (folder.path / "default.yaml").write_text(FLEET.format(version, alpha))


def test_a_change_is_taken_when_it_has_stood_for_a_look(folder):
    assert not folder.usable
    folder.look()
    assert folder.usable and folder.of("fleet").version == 1
    change(folder, 2, 2)
    folder.look()
    assert folder.of("fleet").version == 1, "it may be half written"
    folder.look()
    assert folder.of("fleet").version == 2 and folder.of("site/x").control["alpha"] == 2 and not folder.wrong


def test_a_mistake_changes_nothing_and_is_said(folder):
    folder.look()
    (folder.path / "other.yaml").write_text("name: other\n")
    folder.look()
    folder.look()
    assert "other.yaml:1: version is missing" in folder.wrong and folder.usable and folder.of("fleet").version == 1
    (folder.path / "other.yaml").unlink()
    folder.look()
    folder.look()
    assert not folder.wrong


def test_a_changed_file_needs_a_new_version(folder):
    folder.look()
    change(folder, 1, 2)
    folder.look()
    folder.look()
    assert "default.yaml: it changed, and its version is still 1" in folder.wrong and folder.of("fleet").control["alpha"] == 1
    change(folder, 2, 2)
    folder.look()
    folder.look()
    assert not folder.wrong and folder.of("fleet").control["alpha"] == 2
    change(folder, 1, 1)  # taken back: what version 1 means is what it meant
    folder.look()
    folder.look()
    assert not folder.wrong and folder.of("fleet").version == 1


def test_a_version_that_a_bundle_in_force_has_means_what_it_says_there(folder):
    folder.remember(make("default", 1, SHADOW, {"alpha": 0}))
    folder.look()
    assert not folder.usable and "still 1" in folder.wrong
    change(folder, 2, 1)
    folder.look()
    folder.look()
    assert folder.usable


def test_the_service_does_not_start_on_a_folder_that_is_wrong(tmp_path):
    with pytest.raises(RegistryError, match="no policy applies to the fleet"):
        PolicyFolder(tmp_path)
    with pytest.raises(RegistryError, match="no such folder"):
        PolicyFolder(tmp_path / "none")
