"""A person at MLflow's real page, in headless Chromium: sets the alias, asks for a retrain, sees what came of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from topics import released
from waiting import until

pytestmark = pytest.mark.usefixtures("running")
SCREENSHOTS = Path(__file__).resolve().parents[1] / "build" / "screenshots"


@pytest.fixture(scope="module")
def page(mlflow):
    from oal_registry.ui_driver import MlflowPage

    with MlflowPage(mlflow.url, "owner", mlflow.passwords["owner"], SCREENSHOTS) as made:
        yield made


def test_promote_and_go_back_on_the_page(page, owner, topics, versions, clean):
    first, second, _ = versions
    page.open_version("congestion", first)
    page.set_alias("champion")
    released(topics, "champion", first)
    page.open_version("congestion", second)
    page.set_alias("champion")
    now = released(topics, "champion", second)
    until(lambda: "oal.bundle.champion/fleet" in owner.tags(second), "the history is written")
    page.wait_for_tag("oal.bundle.champion/fleet", now.hash)
    page.screenshot("promoted")
    page.remove_alias("champion")
    assert released(topics, "champion", first).reason.startswith("rollback")
    until(lambda: "oal.bundle.champion/fleet" not in owner.tags(second), "the history is taken off")
    page.wait_until(
        lambda: "oal.bundle.champion/fleet" not in page.tags(), "the page shows that the version is no longer in force"
    )
    page.screenshot("rolled-back")


def test_retrain_on_the_page(page, owner, versions):
    before = {v.version for v in owner.client.search_model_versions("name='congestion'")}
    page.open_version("congestion", versions[2])
    page.set_tag("retrain", "requested")
    done = lambda tags: "retrain" not in tags and tags.get("retrain.state") == "done"
    until(lambda: done(owner.tags(versions[2])), "retrained")
    page.wait_for_tag("retrain.state", "done")
    page.screenshot("retrained")
    (new,) = {v.version for v in owner.client.search_model_versions("name='congestion'")} - before
    assert page.tags()["retrained_as"] == new
    page.open_version("congestion", int(new))
    assert page.tags()["retrained_from"] == str(versions[2])
    for value in ("one", "another"):
        page.set_tag("note", value)
    assert owner.tags(int(new))["note"] == "another"


def test_a_version_that_cannot_be_released_says_so_on_the_page(page, owner, clean):
    bad = owner.register(9, program=None)
    page.open_version("congestion", bad)
    page.set_alias("challenger")
    until(lambda: "oal.error" in owner.tags(bad), "refused")
    page.wait_until(lambda: "has the artifact feature_program.oalf" in page.tags().get("oal.error", ""), "the reason")
    page.screenshot("refused")
