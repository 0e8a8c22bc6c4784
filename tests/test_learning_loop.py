"""The loop on the running platform: capture → items → trees → APs → predictions, promotion through MLflow. What kills
do to it: test_loop_kills.py.
"""

from __future__ import annotations

import pytest
from flow import until
from looped import APS, Page, last_applied, nothing_rejected_or_lost, now_us, open_gates, promote
from oal_local import loop


def retrained(looped, version: int) -> int:
    """Ask for a retraining of the version as MLflow's page does, and wait for the new version."""
    loop.set_tag(looped.platform, version, "retrain", "requested")

    def ended():
        word = loop.tags(looped.platform, version).get("retrain.state", "")
        assert not word.startswith("failed"), word
        return word == "done"

    until(f"{loop.MODEL}/{version} is retrained", ended)
    newest = loop.versions(looped.platform)[-1]
    assert loop.tags(looped.platform, newest)["retrained_from"] == str(version)
    open_gates(looped)
    return newest


@pytest.fixture
def page(looped):
    opened = Page(looped)
    yield opened
    opened.close()


# The tests below run in this order on one platform, as an operator's day would.


def test_the_first_champion_reaches_every_ap_and_predicts(looped):
    until("every AP applied the champion", lambda: looped.applied(looped.since_us, 1, 2))
    assert loop.tags(looped.platform, 2)["oal.gate"].startswith("first: right "), "it was compared with persistence"
    until("predictions met what came true", lambda: looped.predictions("complete AND source = 'registry'") >= 3 * APS)
    assert looped.predictions("features_match = 'differ'") == 0, "an AP computed other features than the stream job"
    assert looped.predictions("features_match = 'same'") > 0
    wrong = looped.count(
        "SELECT count() FROM oal.prediction AS p INNER JOIN oal.item AS i ON i.ap_id = p.ap_id AND i.ts = p.ts WHERE"
        " p.class != 'unknown' AND toInt8(p.class) != toInt8(i.class)"
    )
    assert wrong == 0, "a prediction was joined with a class that its item does not have"


def test_from_the_capture_to_an_online_tree_applied(looped):
    until("the trainer shipped a tree",
          lambda: looped.count("SELECT count() FROM oal.tree_decision WHERE action = 'shipped'") > 0)
    shipped = looped.platform.clickhouse.query(
        "SELECT ap_id, bundle, candidate_onset_ap, persistence_onset_ap, candidate_macro_f1, persistence_macro_f1 FROM"
        " oal.tree_decision WHERE action = 'shipped' ORDER BY ts LIMIT 1"
    ).split("\t")
    assert float(shipped[2]) >= float(shipped[3]) and float(shipped[4]) >= float(
        shipped[5]), f"shipped a tree that does not beat persistence: {shipped}"
    until(
        "the AP applied it",
        lambda: looped.count(
            f"SELECT count() FROM oal.bundle_status WHERE ap_id = '{shipped[0]}' AND bundle = {shipped[1]} AND"
            " state = 1"
        )
        > 0,
    )
    until("and predicted with it",
          lambda: looped.predictions(f"ap_id = '{shipped[0]}' AND bundle = {shipped[1]} AND class != 'unknown'") > 0)


def test_promotion_and_roll_back_through_mlflows_rest_interface(looped):
    took = promote(looped, 1)
    print(f"\n  champion set → last of {APS} APs applied: {took:.2f} s")
    assert "in force, difference" in loop.tags(looped.platform, 1)["oal.gate"], "it was compared with version 2"
    promote(looped, 2)
    at = now_us()
    loop.delete_alias(looped.platform, "champion")
    until("every AP went back to version 1", lambda: looped.applied(at, 1, 1))


def test_a_retrain_tag_ends_in_a_new_version_that_can_be_promoted(looped):
    until("there are items enough", lambda: looped.count("SELECT count() FROM oal.item WHERE complete") > 900)
    newest = retrained(looped, 2)
    promote(looped, newest)


def test_a_person_promotes_and_retrains_on_mlflows_page(looped, page):
    old = loop.versions(looped.platform)[1]
    at = page.do(old, "alias", "champion")
    at_us = int(at * 1e6)
    until("every AP follows the page", lambda: looped.applied(at_us, 1, old))
    print(f"\n  champion set on the page → last of {APS} APs applied: {last_applied(looped, at_us, old) - at:.2f} s")
    before = loop.versions(looped.platform)
    page.do(old, "tag", "retrain", "requested")
    until("a new version appears", lambda: len(loop.versions(looped.platform)) > len(before))
    until("and the tag says so", lambda: loop.tags(looped.platform, old).get("retrain.state") == "done")
    new = loop.versions(looped.platform)[-1]
    open_gates(looped)
    at = page.do(new, "alias", "champion")
    until("every AP applied the new version", lambda: looped.applied(int(at * 1e6), 1, new))


def test_nothing_was_rejected_or_lost_on_the_way(looped):
    nothing_rejected_or_lost(looped)
