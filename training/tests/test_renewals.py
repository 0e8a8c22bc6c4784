"""A changed policy reaches every AP with an online tree, also one that sends nothing."""

from __future__ import annotations

import pytest
from oal_schema import release as oal_release
from oal_schema.policy import ENFORCE, make
from oal_schema.policy_folder import PolicyFolder
from oal_training.online import programs
from oal_training.online.ap import Ap
from oal_training.online.kernel import Fitter
from oal_training.online.renewals import Renewals
from oal_training.online.settings import load
from test_releases import TRAINER, following, record

TEXT = "name: {}\nversion: {}\napplies_to: {}\nmode: {}\ncontrol: {{target_us: 7000}}\n"


class World:
    """A folder of policies, releases, and what is due."""

    def __init__(self, path, *records):
        self.path, self.releases, self.aps = path, following(*records), {}
        self.write("fleet", "all", 1, "enforce")
        self.folder = PolicyFolder(path)
        self.renewals = Renewals(self.releases, self.folder, self.aps, programs.of_rwnd_fair(), TRAINER)

    def write(self, scope: str, name: str, version: int, mode: str) -> None:
        (self.path / f"{name}.yaml").write_text(TEXT.format(name, version, scope, mode))

    def look(self) -> None:
        for _ in range(3):  # a change is taken at the second look
            self.folder.look()

    def due(self, mine=lambda ap_id: True) -> dict[str, tuple]:
        """AP → (policy, version, mode) of what was released again just now."""
        found = {}
        for sent in self.renewals.due(mine, 10_000):
            release = oal_release.parse(sent.key, sent.value)
            policy = release.bundle().policy
            found[release.scope.removeprefix("ap/")] = (policy.name, policy.version, policy.mode_name)
            self.releases.put(sent.key.encode(), sent.value)
        return found


def online(ap_id: str, serial: int, **place):
    policy = {"policy": make("all", 1, ENFORCE)}
    return record("online", f"ap/{ap_id}", serial, of=policy, **place)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, online("a", 10, site="hall"), online("b", 11, site="roof"), record("champion", "fleet", 5))


def test_off_reaches_aps_that_send_no_items_once(world):
    assert set(world.due()) <= {"a", "b"}, "their numbers are made anew when they differ"
    world.write("fleet", "all", 2, "off")
    world.look()
    assert world.due() == {"a": ("all", 2, "off"), "b": ("all", 2, "off")}
    assert world.due() == {} and world.due() == {}


def test_a_site_is_known_from_the_release(world):
    world.due()
    world.write("site/roof", "roof", 1, "off")
    world.look()
    assert world.due() == {"b": ("roof", 1, "off")}
    (world.path / "roof.yaml").unlink()
    world.look()
    assert world.due() == {"b": ("all", 1, "enforce")}


def test_what_items_said_of_the_site_is_newer_than_the_release(world):
    world.due()
    world.aps["a"] = Ap("a", load(), Fitter(7, 3, 5, 0.001, 10))
    world.aps["a"].site = "roof"
    world.write("site/roof", "roof", 1, "off")
    world.look()
    assert set(world.due()) == {"a", "b"}


def test_an_ap_of_another_trainer_is_left_to_it(world):
    world.write("fleet", "all", 2, "off")
    world.look()
    assert set(world.due(mine=lambda ap_id: ap_id == "b")) == {"b"}


def test_a_champion_in_force_is_the_registrys(tmp_path):
    world = World(tmp_path, online("a", 10), record("champion", "fleet", 50))
    world.write("fleet", "all", 2, "off")
    world.look()
    assert world.due() == {}


def test_without_a_known_site_the_policy_that_it_has_counts_while_there_is_one(tmp_path):
    world = World(tmp_path, record("online", "ap/a", 10, of={"policy": make("roof", 1, ENFORCE)}))
    world.write("site/roof", "roof", 2, "off")
    world.look()
    assert world.due() == {"a": ("roof", 2, "off")}
    (world.path / "roof.yaml").unlink()
    world.look()
    assert world.due() == {"a": ("all", 1, "enforce")}
