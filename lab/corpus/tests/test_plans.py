"""The generator: the same again, parts that share nothing, scenarios that the lab takes; what counts as an episode."""
import copy
import json
import subprocess
import sys

import numpy as np
import pytest
from corpus import counts, items, plans, record
from host import scenario


@pytest.fixture(scope="module")
def runs() -> list[plans.Run]:
    return plans.runs()


def test_a_fleet_s_items_are_of_no_test_site_and_end_together(runs):
    from oal_training.stored import parquet

    columns, metadata = parquet.read_columns(record.LAB / "corpus/fleet.items.parquet")
    parts = {name: run.part for run in runs for name in run.captures} | {"learning2": "train"}
    names, times = columns["ap_id"].astype(str), columns["ts_us"]
    assert {parts[name] for name in set(names)} == {"train", "validation"} and len(set(names)) >= 60
    assert len(metadata["features"]) == columns["features"].shape[1]
    assert (np.diff(times) >= 0).all()
    for name in set(names):
        own = times[names == name]
        assert items.END_US - own.max() < items.EVERY * items.BLOCK_US and len(set(own)) == len(own)


def test_the_same_seed_draws_the_same_in_another_process_and_another_seed_others(runs):
    code = "import json, corpus.plans as p; print(json.dumps([[r.name, r.given, r.start_ns] for r in p.runs()]))"
    again = json.loads(subprocess.run([sys.executable, "-c", code], cwd=record.LAB, check=True, stdout=subprocess.PIPE,
                                      env={"PYTHONHASHSEED": "7"}).stdout)
    assert again == json.loads(json.dumps([[r.name, r.given, r.start_ns] for r in runs]))
    other = plans.runs(plans.settings() | {"seed": 1})
    assert [r.given for r in other] != [r.given for r in runs]


def test_a_site_or_an_evening_more_leaves_the_others_as_they_were(runs):
    more = copy.deepcopy(plans.settings())
    more["parts"]["test"] += 1
    more["evenings"] += 1
    grown = {run.name: run.given for run in plans.runs(more)}
    assert len(grown) == 3 * (len(runs) // 2 + 1)
    assert all(grown[run.name] == run.given for run in runs)


def test_parts_share_no_site_no_access_point_and_no_second(runs):
    sites = {part: {run.site for run in runs if run.part == part} for part in plans.settings()["parts"]}
    assert list(sites) == ["train", "validation", "test"]
    assert sum(map(len, sites.values())) == len(set().union(*sites.values())) == 28
    names = [name for run in runs for name in run.captures]
    assert len(names) == len(set(names)) >= 60 and len(runs) >= 40
    starts = np.sort([run.start_ns for run in runs])
    assert np.diff(starts).min() >= 10 * plans.settings()["duration_s"] * 1_000_000_000


def test_an_evening_has_the_places_of_its_site_and_people_of_its_own(runs):
    by_site: dict[str, list[plans.Run]] = {}
    for run in runs:
        by_site.setdefault(run.site, []).append(run)
    for one, two in by_site.values():
        assert all(one.given[key] == two.given[key] for key in ("stations", "ap", "wired", "medium", "neighbours"))
        assert one.given["seed"] != two.given["seed"] and one.given["sessions"] != two.given["sessions"]


def test_every_scenario_is_one_of_the_labs_and_the_corpus_is_wide(runs):
    queues, controls, rates = set(), set(), []
    for run in runs:
        plan = scenario.plan(run.name, run.given)
        assert 2 <= len(plan["stations"]) <= 12 and scenario.radios(plan) <= 100
        assert {s["ap"] for s in plan["stations"]} == set(range(run.aps)), "every access point has a station"
        assert plan["neighbours"]["count"] >= 1, "without one no beacon is read"
        queues.add(plan["ap"]["queue"]["kind"].split()[0] if plan["ap"]["queue"]["mode"] == "qdisc" else "txq")
        controls |= {flow["cc"] for flow in plan["flows"]}
        rates += [s["rate_kbps"] for s in plan["stations"]]
    assert queues == {"pfifo", "bfifo", "codel", "fq_codel", "txq"} and controls == {"cubic", "bbr", "reno"}
    assert {run.aps for run in runs} == {1, 2, 3} and min(rates) == 6500 and max(rates) == 65000


def test_a_run_is_kept_under_what_it_depends_on(runs, monkeypatch):
    monkeypatch.setattr(record, "_played_by", lambda: ["kernel-1", "guest"])
    before = record.key(runs[0])
    assert record.key(plans.runs()[0]) == before != record.key(runs[1])
    monkeypatch.setattr(record, "_played_by", lambda: ["kernel-2", "guest"])
    assert record.key(runs[0]) != before
    where = items.folder(runs)
    assert items.folder(list(reversed(runs))) == where != items.folder(runs[1:])
    monkeypatch.setattr(items, "tools", lambda: "others")
    assert items.folder(runs) != where


def test_onset_items_closer_than_a_label_window_are_one_episode():
    at_s = np.array([1.0, 1.1, 1.9, 3.0, 3.1, 9.0])
    assert counts.episodes((at_s * 1e6).astype(np.int64)) == 3
    assert counts.episodes(np.zeros(0, np.int64)) == 0


def test_the_sample_has_every_part_and_two_evenings_of_an_access_point():
    folder = record.LAB / "corpus/sample"
    index = json.loads((folder / "corpus.json").read_text())["ap_runs"]
    assert [one["ap_run"] for one in index] == plans.settings()["sample"]
    assert {one["part"] for one in index} == {"train", "validation", "test"}
    assert max(sum(other["ap"] == one["ap"] for other in index) for one in index) == 2
    found, _, _ = counts.of(folder)
    assert all(part.items > 500 and part.episodes for part in found.values())
    assert sum(path.stat().st_size for path in folder.iterdir()) < 3_000_000


def test_the_folder_that_is_named_is_the_largest_that_these_tools_made(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(record, "_played_by", lambda: ["kernel-1", "guest"])
    assert items.largest(runs) is None
    for some in (runs[:3], runs[:5]):
        items.folder(some).mkdir(parents=True)
        (items.folder(some) / "corpus.json").write_text(items.index(some))
    assert items.largest(runs) == items.folder(runs[:5])
    assert items.largest(runs[:4]) == items.folder(runs[:3]), "no other runs than those asked for"
    monkeypatch.setattr(items, "tools", lambda: "others")
    assert items.largest(runs) is None
