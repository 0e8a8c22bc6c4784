"""The folder of policies, looked at again and again."""

import pytest
from oal_schema.policy import SHADOW, make
from oal_schema.policy_file import PolicyError
from oal_schema.policy_folder import PolicyFolder

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
    assert (
        "default.yaml: it changed, and its version is still 1" in folder.wrong
        and folder.of("fleet").control["alpha"] == 1
    )
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


def test_a_folder_that_is_wrong_from_the_start_is_refused(tmp_path):
    with pytest.raises(PolicyError, match="no policy applies to the fleet"):
        PolicyFolder(tmp_path)
    with pytest.raises(PolicyError, match="no such folder"):
        PolicyFolder(tmp_path / "none")
