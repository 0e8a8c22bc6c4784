"""Hosts' own sessions: which of them teach something, what the tree learns, how it is judged, what MLflow gets."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from oal_schema.policy import defaults
from oal_training.cc_select import choice, command, features, gate, lessons, record, sessions, trees
from oal_training.cc_select import experiment as experiments
from oal_training.cc_select.utility import Utility
from oal_training.cli import main
from oal_training.errors import TrainingError

ROOT = Path(__file__).resolve().parents[2]
T0_US = 1_800_000_000_000_000
MINUTE_US = 60_000_000
CUBIC, RENO, BBR, VEGAS, WESTWOOD = 1, 2, 3, 4, 5
PLACE = {CUBIC: 0, BBR: 1, VEGAS: 2, RENO: 3}  # in law.values of the policy


def row(at_min: float, cc: int, mbps: float = 10, prefix: int = 1, host: str = "h1", **changed) -> dict:
    """A session of ten seconds with something to send, that ended so many minutes after T0_US."""
    here = {c.name: 0 for c in features.numbers()} | {
        "host": host, "ts_us": T0_US + round(at_min * MINUTE_US), "client_prefix": prefix, "cc": cc, "end_known": 1,
        "seen_us": 30_000_000, "busy_us": 10_000_000, "bytes_acked": round(mbps * 1.25e6), "data_segs_out": 8000,
        "retrans_pkts": 80, "rtt_looks": 90, "rtt_min_us": 21_000, "rtt_mean_us": 25_000, "rtt_p95_us": 30_000,
        "rtt_us": 25_000, "rttvar_us": 2000, "min_rtt_us": 20_000, "delivery_rate_bps": 9_000_000,
        "delivered_pkts": 7900, "reordering_pkts": 3, "cwnd_bytes": 28_960, "mss_bytes": 1448,
    }
    assert set(changed) <= set(here)
    return here | changed


def table(rows: list[dict]) -> pa.Table:
    names = ["host", "ts_us", *(c.name for c in features.numbers() if c.name != "ts_us")]
    return pa.Table.from_pylist([{n: r[n] for n in names} for r in rows])


def found(rows: list[dict]) -> sessions.Sessions:
    return sessions.of_table(table(rows), "made up", "cc-select")


def rules(**changed) -> lessons.Rules:
    return lessons.Rules(experiments.candidates(), Utility(), **{"least": 2, "min_bytes": 100_000} | changed)


def learned(rows: list[dict], **changed) -> lessons.Lessons:
    return lessons.of(found(rows), rules(**changed), features.of_rows("cc-select"))


def test_the_policys_candidates_are_in_the_order_of_its_classes():
    assert {number: place for place, number in enumerate(experiments.candidates())} == PLACE
    assert [experiments.name_of(n) for n in experiments.candidates()] == ["cubic", "bbr", "vegas", "reno"]
    assert experiments.number("min_flow_bytes") == experiments.load().least_bytes == defaults()["min_flow_bytes"]


def test_a_candidate_is_worth_the_mean_of_other_sessions_near_in_time():
    got = learned([row(0, CUBIC, 10), row(10, CUBIC, 20), row(20, CUBIC, 40), row(30, BBR, 80), row(40, BBR, 160)])
    assert got.own.tolist() == [0, 0, 0], "of BBR each session has one other beside it, and two are asked for"
    worth = np.exp(got.worth)
    assert worth[:, 0] == pytest.approx([np.sqrt(20 * 40), np.sqrt(10 * 40), np.sqrt(10 * 20)])
    assert worth[:, 1] == pytest.approx(np.sqrt(80 * 160)) and np.isnan(worth[:, 2:]).all()
    assert got.right.tolist() == [1, 1, 1] and got.network.tolist() == [0, 0, 0]
    assert got.left_out == {lessons.OTHER: 0, lessons.SHORT: 0, lessons.UNKNOWN: 0, lessons.ALONE: 2,
                            lessons.MISSING_FEATURE: 0}


def test_sessions_further_away_than_the_window_say_nothing():
    both = [row(n, cc) for n in range(3) for cc in (CUBIC, BBR)]
    late = [row(90 + n, RENO) for n in range(3)]
    got = learned(both + late)
    assert len(got) == 6 and np.isnan(got.worth[:, PLACE[RENO]]).all()
    wide = learned(both + late, window_us=200 * MINUTE_US)
    assert len(wide) == 9 and np.isfinite(wide.worth[:, PLACE[RENO]]).all()


def test_networks_of_two_hosts_or_of_two_prefixes_are_not_one():
    got = learned([row(n, cc, prefix=p, host=h) for n in range(4)
                   for h, p, cc in (("h1", 1, CUBIC), ("h2", 1, BBR), ("h1", 2, BBR))])
    assert len(got) == 0 and got.left_out[lessons.ALONE] == 12


def test_what_is_left_out_is_counted_by_why():
    rest = [row(n, cc) for n in range(4) for cc in (CUBIC, BBR)]
    got = learned(rest + [row(1, WESTWOOD), row(1, 0), row(1, CUBIC, bytes_acked=99_999), row(1, BBR, min_rtt_us=0),
                          row(1, BBR, busy_us=0), row(1, BBR, rtt_p95_us=None), row(1, CUBIC, rtt_mean_us=None),
                          row(1, CUBIC, data_segs_out=0)])
    assert got.left_out == {lessons.OTHER: 2, lessons.SHORT: 1, lessons.UNKNOWN: 3, lessons.ALONE: 0,
                            lessons.MISSING_FEATURE: 2}
    assert len(got) == 8


def test_speed_is_that_of_the_time_with_something_to_send():
    idle = found([row(0, CUBIC, 10, seen_us=3_000_000_000)])
    assert np.exp(idle.worth(Utility())) == pytest.approx([10])
    assert idle.worth(Utility(per_s=5)) == pytest.approx(np.log(10) - 5 * 0.01)


def test_features_are_those_that_a_host_computes_and_counts_are_hidden():
    vector = dict(zip(experiments.feature_names(), features.of_rows("cc-select")(row(0, BBR, 10))))
    assert vector["cc"] == BBR and vector["retrans_ppm"] == 10_000 and vector["queueing_p95_us"] == 10_000
    assert vector["speed_kbps"] == 10_000 and vector["cwnd_pkts"] == 20
    assert features.of_rows("cc-select")(row(0, BBR, rtt_p95_us=None)) is None
    seen = experiments.load().seen()
    hidden = dict(zip(vector, features.hidden(np.array([list(vector.values())]), seen)[0]))
    assert hidden["bytes_acked"] == hidden["seen_us"] == 0 and hidden["cc"] == BBR
    left_out = experiments.load().leave_out
    assert {n for n in hidden if hidden[n]} == {n for n in vector if vector[n] and n not in left_out}


def test_a_small_gain_is_no_reason_to_leave_ones_own():
    got = learned([row(n, CUBIC, 10) for n in range(4)] + [row(n, BBR, 10.4) for n in range(4)])
    assert (got.right == got.own).all()
    more = learned([row(n, CUBIC, 10) for n in range(4)] + [row(n, BBR, 10.6) for n in range(4)])
    assert (more.right == PLACE[BBR]).all() and (more.cost > 0).all()


def test_of_those_that_are_as_good_the_first_is_right_so_that_chance_does_not_decide():
    nan = float("nan")
    it = of([[1.0, 0, 1.009, nan], [1.0, 0, 1.02, nan], [1.0, 0, 1.009, 1.0]], [1, 1, 3])
    assert it.right.tolist() == [0, 2, 3]


def of(worth: list[list[float]], own: list[int], network: list[int] | None = None) -> lessons.Lessons:
    n = len(own)
    at = np.arange(n) if network is None else np.array(network)
    return lessons.Lessons(np.zeros((n, 1), np.int64), np.array(own), np.array(worth), at, np.arange(n))


def test_a_candidate_that_nobody_knows_there_counts_as_the_worst_that_is_known():
    nan = float("nan")
    it = of([[1, 3, nan, 2]], [3])
    assert it.of(np.array([2])).tolist() == [1] and choice.brings(np.array([2]), it).tolist() == [-1]


def test_the_best_for_all_is_not_one_that_hardly_anybody_tried():
    nan = float("nan")
    it = of([[0, 1, nan, nan]] * 9 + [[0, nan, 5, nan]], [0] * 10)
    assert choice.best_for_all(it) == 1


def test_intervals_are_of_networks_and_there_is_none_of_few():
    few = choice.gain(np.full(700, 0.1), np.arange(700) % 7)
    assert few.percent == pytest.approx(100 * np.expm1(0.1)) and few.low is few.high is None and few.networks == 7
    many = choice.gain(np.full(700, 0.1), np.arange(700) % 8)
    assert many.low == pytest.approx(many.percent) == pytest.approx(many.high)
    # one large network out of nine brings all of it: it may be among what is drawn or not
    one = choice.gain(np.repeat([0.5, 0.0], [900, 80]), np.repeat(np.arange(9), [900] + [10] * 8))
    assert one.low == 0 and one.percent > 50 and 60 < one.high < 65
    with_holes = choice.gain(np.array([0.1, np.nan] * 20), np.arange(40))
    assert (with_holes.sessions, with_holes.networks) == (20, 20)


def world(networks: int = 12, each: int = 8, seed: int = 1) -> list[dict]:
    """Networks of two kinds, told by their round trip: over the long ones BBR has twice CUBIC's speed, over the short
    ones half of it. Reno is as CUBIC, Vegas was never tried.
    """
    draw = np.random.default_rng(seed)
    rows = []
    for prefix in range(networks):
        long = prefix % 2
        for cc in (CUBIC, BBR, RENO):
            for _ in range(each):
                ratio = (2 if long else 0.5) if cc == BBR else 1
                rtt = (100_000 if long else 5_000) * draw.uniform(0.9, 1.1)
                rows.append(row(draw.uniform(0, 50), cc, 10 * ratio * draw.uniform(0.95, 1.05), 1000 + prefix,
                                min_rtt_us=round(rtt), rtt_mean_us=round(rtt * 1.2), rtt_p95_us=round(rtt * 1.3)))
    return rows


@pytest.fixture(scope="module")
def made():
    of_world = command.fit(found(world()), experiments.load().changed(utility="speed"), log=lambda _line: None)
    return dataclasses.replace(of_world, lineage=dataclasses.replace(of_world.lineage, git_revision="a-revision"))


def test_the_tree_learns_which_one_is_better_where_and_is_judged_on_networks_that_it_did_not_see(made):
    as_good = {(cc, long): (BBR,) if long else (CUBIC, RENO) for cc in (CUBIC, BBR) for long in (0, 1)}
    for (cc, long), best in as_good.items():
        rtt = 100_000 if long else 5_000
        rows = [row(0, cc, 8, min_rtt_us=rtt, rtt_mean_us=round(rtt * 1.2), rtt_p95_us=round(rtt * 1.3))]
        x = features.hidden(np.array([features.of_rows("cc-select")(rows[0])]), made.experiment.seen())
        asked = lessons.Lessons(x, np.array([PLACE[cc]]), np.zeros((1, 4)), np.zeros(1, int), np.zeros(1, int))
        assert made.choice.choose(asked)[0] in [PLACE[one] for one in best], (cc, long)
    assert made.judged.fixed in (PLACE[CUBIC], PLACE[RENO], PLACE[BBR])
    # of three sessions in six (on long networks) the speed doubles; BBR's on short ones doubles, too
    assert made.judged.over_same.percent == pytest.approx(100 * np.expm1(np.log(2) / 2), rel=0.05)
    assert made.judged.over_best_fixed.low > 10 and made.judged.over_best_fixed.networks == 12
    assert made.judged.possible.percent >= made.judged.over_same.percent - 0.5
    assert made.judged.had == (96, 96, 0, 96) and sum(made.judged.said) == 288 and made.judged.said[2] == 0
    assert not gate.judge(record.figures(made), gate.Rules()).refused


def test_where_one_is_best_everywhere_the_tree_says_so_and_the_gate_does_not_let_it_pass():
    rows = [row(n % 50, cc, 20 if cc == BBR else 10, prefix) for prefix in range(10) for n in range(6)
            for cc in (CUBIC, BBR)]
    made = command.fit(found(rows), experiments.load().changed(utility="speed"), log=lambda _line: None)
    assert set(made.choice.choose(made.lessons).tolist()) == {PLACE[BBR]}
    assert made.judged.over_same.percent == pytest.approx(100 * np.expm1(np.log(2) / 2))
    assert made.judged.over_best_fixed.percent == 0
    said = gate.judge(record.figures(made), gate.Rules()).refused
    assert said.startswith("no better beyond chance: +0.0 % over the best congestion control for all")
    assert said in record.markdown(made)


def test_a_leaf_that_is_not_sure_chooses_nothing():
    it = of([[0, 1, 0, 0]] * 6 + [[1, 0, 0, 0]] * 6, [3] * 12)
    assert choice.Choice(4, 0.5).fit(it).choose(it).tolist() in ([0] * 12, [1] * 12)
    assert choice.Choice(4, 0.51).fit(it).choose(it).tolist() == [3] * 12


def test_one_network_is_judged_by_its_later_sessions_and_has_no_interval():
    rows = [row(n / 4, cc, 20 if cc == BBR else 10) for n in range(200) for cc in (CUBIC, BBR)]
    made = command.fit(found(rows), experiments.load().changed(utility="speed"), log=lambda _line: None)
    assert made.split == "on later sessions of the one network" and made.judged.over_same.low is None
    assert made.judged.over_same.percent == pytest.approx(100 * np.expm1(np.log(2) / 2), rel=0.02)
    assert 150 < made.judged.over_same.sessions < 250
    said = gate.judge(record.figures(made), gate.Rules()).refused
    assert said == "it was judged against the best congestion control for all on 1 networks; 8 are needed"


def test_too_little_says_how_little_and_what_helps():
    rows = [row(n, CUBIC, prefix=p) for n in range(40) for p in (1, 2)] + [row(n, BBR, prefix=1) for n in range(4)]
    with pytest.raises(TrainingError) as error:
        command.fit(found(rows), experiments.load(), log=lambda _line: None)
    for words in ("44 of 84 sessions, and 100 are asked for", "so it is with 1 of 2 networks", "cc_explore_permille",
                  "40 to networks where nothing can be compared", "cubic, bbr, vegas, reno"):
        assert words in str(error.value)


def test_the_gate_refuses_what_the_run_does_not_say():
    good = {"over_best_fixed": 4.0, "over_best_fixed_low": 0.5, "over_best_fixed_high": 8.0,
            "over_best_fixed_networks": 20.0}
    assert gate.judge(good, gate.Rules()) == gate.Verdict(
        "", ("+4.0 % over the best congestion control for all (95 % +0.5 to +8.0, 20 networks)",))
    for name in good:
        assert gate.judge({k: v for k, v in good.items() if k != name}, gate.Rules()).refused, name
        assert gate.judge(good | {name: float("nan")}, gate.Rules()).refused, name
    assert "no better beyond chance" in gate.judge(good | {"over_best_fixed_low": 0.0}, gate.Rules()).refused
    assert "19 networks; 20 are" not in gate.judge(good, gate.Rules(least_networks=20)).refused
    assert "20 networks; 21 are needed" in gate.judge(good, gate.Rules(least_networks=21)).refused
    assert gate.judge(good, gate.Rules(beats=("over_best_fixed", "over_same"))).refused.startswith("its run does not")
    assert gate.rules("cc-select") == gate.Rules()


def test_a_gate_file_that_cannot_be_understood_is_refused(tmp_path, monkeypatch):
    from oal_training import policies

    monkeypatch.setattr(policies, "POLICIES", tmp_path)
    assert gate.rules("cc-select") == gate.Rules(), "without a file"
    (tmp_path / "cc-select").mkdir()
    for text in ("beats: []", "beats: [luck]", "least_networks: 0", "least_networks: many", "other: 1", "[1]", ":"):
        (tmp_path / "cc-select" / "gate.yaml").write_text(text)
        with pytest.raises(TrainingError, match="gate.yaml"):
            gate.rules("cc-select")


def test_the_pages_say_what_the_files_say():
    said = " ".join((ROOT / "policies/cc-select/README.md").read_text().split())
    here, by = experiments.load(), gate.rules("cc-select")
    assert (here.least_sessions, here.window_s) == (3, 3600) and "three each, within an hour" in said
    assert f"refuses fewer than {here.least_lessons} lessons" in said
    assert trees.LEAST_GAIN == np.log(1.05) and "the best one gains less than 5 %" in said
    assert by.least_networks == 8 and "on eight networks at least" in said
    assert "on eight networks at least" in " ".join((ROOT / "docs/gates.md").read_text().split())
    assert f"At most {sessions.MAX_SESSIONS:,} sessions are read" in (ROOT / "training/README.md").read_text()


def test_an_experiment_says_what_is_wrong_and_comes_back_as_it_was():
    here = experiments.load()
    assert here.utility == "queue", "speed alone is worth what BBR for all is worth"
    again = here.changed(window_s=60.0, least_sessions=2, utility=None)
    assert experiments.parse(again.text, "kept") == again and again.utility == "queue" and again.window_s == 60
    for wrong in ("name: other\nmodel: {kind: decision_tree}", "name: cc-select", "[]", "name: [", "",
                  here.text + "\nmore: 1\n", here.text.replace("decision_tree", "knn"),
                  here.text.replace("utility: queue", "utility: luck"), here.text.replace("[seen_us", "[seen")):
        with pytest.raises(TrainingError):
            experiments.parse(wrong, "here")
    for changed in ({"least_sessions": 0}, {"window_s": 0.0}, {"least_lessons": 0}):
        with pytest.raises(TrainingError):
            here.changed(**changed)
    assert here.changed(min_bytes=5).least_bytes == 5


def test_a_run_in_mlflow_has_what_the_registry_compiles_by_and_no_address(made, mlflow_uri, tmp_path):
    import pyarrow.parquet as pq
    from mlflow import MlflowClient
    from oal_training.batch import stored_tree
    from oal_training.tracking import Tracking, origin

    source = {"host": None, "begin_us": T0_US, "end_us": T0_US + 60 * MINUTE_US}
    kept = record.log(Tracking(mlflow_uri), made, source, "cc-select", None)
    client = MlflowClient(mlflow_uri, mlflow_uri)
    version = client.get_model_version("cc-select", str(kept["version"]))
    run = client.get_run(kept["run_id"])
    assert version.run_id == kept["run_id"] and version.tags["policy"] == run.data.tags["policy"] == "cc-select"
    assert run.data.params["best_fixed"] in ("cubic", "bbr", "reno") and run.data.params["utility"] == "speed"
    assert not gate.judge(run.data.metrics, gate.Rules()).refused
    assert {"report", "data", "tree", "feature_program.oalf", "features.json", "experiment.yaml"} <= {
        file.path for file in client.list_artifacts(kept["run_id"])}
    lessons_ = pq.read_table(client.download_artifacts(kept["run_id"], "data/lessons.parquet", str(tmp_path)))
    assert lessons_.num_rows == len(made.lessons) and set(lessons_["network"].to_pylist()) == set(range(12))
    assert "client_prefix" not in lessons_.column_names
    assert "1003" not in json.dumps(run.data.tags), "no prefix in the lineage either"
    found_ = origin(Tracking(mlflow_uri), "cc-select", str(kept["version"]))
    assert experiments.parse(found_.experiment, "it") == made.experiment
    again = stored_tree.fetch(Tracking(mlflow_uri), found_)
    assert (again.predict(made.lessons.x) == made.choice.tree.predict(made.lessons.x)).all()


def test_a_version_that_cannot_name_its_code_is_not_registered(made, mlflow_uri):
    from mlflow import MlflowClient
    from oal_training.tracking import Tracking

    nameless = dataclasses.replace(made, lineage=dataclasses.replace(made.lineage, git_revision=""))
    with pytest.raises(TrainingError, match="cannot name its git_revision"):
        record.log(Tracking(mlflow_uri), nameless, {}, "cc-select-nameless", None)
    assert not MlflowClient(mlflow_uri, mlflow_uri).search_registered_models("name='cc-select-nameless'")


@pytest.fixture
def config(monkeypatch, mlflow_uri, tmp_path):
    """A configuration file; ClickHouse answers with the sessions of `world`, and what it was asked is kept."""
    asked = []

    def of_clickhouse(_connection, policy, begin_us, end_us, host=None):
        asked.append(SimpleNamespace(policy=policy, begin_us=begin_us, end_us=end_us, host=host))
        return found(world())

    monkeypatch.setattr(sessions, "of_clickhouse", of_clickhouse)
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps({"mlflow": {"tracking_uri": mlflow_uri},
                                "clickhouse": {"url": "http://x:1", "user": "u", "password_file": "/dev/null"}}))
    return SimpleNamespace(path=str(path), asked=asked)


def test_the_command_registers_and_a_retrain_repeats_it(config, tmp_path, capsys):
    assert main(["cc-select", "--config", config.path, "--from", "2h", "--host", "h1", "--utility", "speed", "--window",
                 "90m", "--register", "--out", str(tmp_path / "out"), "--result", str(tmp_path / "r.json")]) == 0
    said = capsys.readouterr().out
    first = json.loads((tmp_path / "r.json").read_text())
    assert f"registered as cc-select/{first['version']}. Next, in MLflow's page: Models, cc-select" in said
    assert "The gate would let it pass." in said and "within 90 minutes" in said
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"cc-select.md", "lessons.parquet"}
    before = time.time()
    assert main(["cc-select", "--retrain", f"cc-select/{first['version']}", "--config", config.path, "--register",
                 "cc-select", "--result", str(tmp_path / "r.json")]) == 0
    second = json.loads((tmp_path / "r.json").read_text())
    assert second["version"] > first["version"]
    assert "within 90 minutes" in capsys.readouterr().out, "with the options of then"
    one, two = config.asked
    assert one.host == two.host == "h1" and one.policy == "cc-select"
    assert two.end_us - two.begin_us == one.end_us - one.begin_us and two.end_us >= before * 1e6


def test_another_command_does_not_take_sessions_for_items(config, capsys):
    assert main(["fit", "--policy", "cc-select", "--config", config.path]) == 1
    assert "oal-train cc-select" in capsys.readouterr().err
    assert main(["cc-select", "--config", config.path, "--register"]) == 0
    version = capsys.readouterr().out.split("registered as ")[1].split(".")[0]
    for again in (["fit", "--retrain", version], ["evaluate", "--version", version]):
        assert main([*again, "--config", config.path]) == 1
        assert "oal-train cc-select" in capsys.readouterr().err


def test_what_is_missing_is_said_before_anything_is_read(tmp_path, capsys):
    empty = tmp_path / "c.yaml"
    empty.write_text("{}")
    assert main(["cc-select", "--config", str(empty)]) == 1 and "section clickhouse" in capsys.readouterr().err
    there = tmp_path / "d.yaml"
    there.write_text(json.dumps({"clickhouse": {"url": "http://x:1", "user": "u", "password_file": "p"}}))
    assert main(["cc-select", "--config", str(there), "--register"]) == 1
    assert "section mlflow" in capsys.readouterr().err
    for wrong in (["--window", "soon"], ["--least", "many"]):
        with pytest.raises(SystemExit):
            main(["cc-select", *wrong])


def test_sessions_come_from_clickhouse(platform):
    server = platform.clickhouse
    names = ["ap_id", "ts", "client_addr", *(c.name for c in features.numbers())]
    rows = [r | {"ap_id": r["host"], "ts": r["ts_us"] / 1e6, "client_addr": "::ffff:192.0.2.1"} for r in world(2)]
    rows[0]["rtt_mean_us"] = None
    lines = ["\t".join("\\N" if r[n] is None else str(r[n]) for n in names) for r in rows]
    server.query(f"INSERT INTO oal.sender_session ({', '.join(names)}) FORMAT TSV\n" + "\n".join(lines) + "\n")
    connection = sessions.Connection(server.http_url, "analyst", str(server.password_file("analyst")), "oal")
    there = sessions.of_clickhouse(connection, "cc-select", T0_US, T0_US + 60 * MINUTE_US)
    want = found(world(2))
    assert len(there) == len(want) and np.isnan(there.column("rtt_mean_us")).sum() == 1
    assert (there.networks() == want.networks()).all() and (there.whole("ts_us") == want.whole("ts_us")).all()
    assert there.lineage.missing() == [] and there.lineage.rows == len(rows)
    with pytest.raises(TrainingError, match="no session of host h9"):
        sessions.of_clickhouse(connection, "cc-select", T0_US, T0_US + 60 * MINUTE_US, "h9")
    with pytest.raises(TrainingError, match="no session in that time"):
        sessions.of_clickhouse(connection, "cc-select", 0, 1)
