"""The gate before champion: a tree of the committed capture, a poor one, and their held-out items, without servers."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from oal_registry import compile as compiler
from oal_registry import gate as gates
from oal_registry import package, programs, promoter
from oal_registry.errors import RegistryError
from oal_registry.gate import Gate
from oal_registry.models import CompiledModel
from oal_registry.promotion import Promotion
from oal_registry.slot_memory import SlotMemory
from oal_registry.status import Status
from oal_schema import keys
from oal_schema.grant import grant
from oal_schema.nodes import MISSING
from oal_schema.policy import Policy
from oal_schema.policy_folder import PolicyFolder
from oal_training.batch import data_sets, experiment, run
from oal_training.batch import gate as training_gate
from oal_training.stored import kept, parquet
from sklearn.metrics import f1_score
from test_several_policies import CANARY, EXAMPLE, FAIR, Mlflow, Topic

ITEMS = Path(__file__).resolve().parents[2] / "lab/captures/learning2.items.parquet"
PROGRAM = programs.of_hash(parquet.read(ITEMS, log=lambda _line: None).feature_hash)
# versions; OTHER is as GOOD, but for a leaf's worth, SMALL has four leaves
GOOD, POOR, OTHER, BARE, NOTHING, SMALL = 1, 2, 3, 4, 5, 6


class Runs(Mlflow):
    """Versions with runs, whose tags and kept items are in a folder."""

    def __init__(self, folder: Path):
        super().__init__("congestion", "example")
        self.folder, self.runs = folder, {}

    def version(self, name, version):
        found = super().version(name, version)
        found.run_id = f"run-{version}"
        return found

    def run_tags(self, run_id):
        return self.runs.get(run_id)

    def run_file(self, run_id, name, into):
        path = self.folder / Path(name).name
        return Path(shutil.copy(path, into)) if path.is_file() else None


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """(tree, poor tree, another tree, folder of kept items, their hash, instant of the last item learned from)."""
    quiet, spec = lambda _line: None, experiment.load(experiment.OWN)
    items = parquet.read(ITEMS, log=quiet)
    early, late = run.hold_out(items, spec, quiet)
    hash_ = PROGRAM.feature_hash
    four = replace(spec, model=replace(spec.model, params=spec.model.params | {"max_leaf_nodes": 4}))
    tree = lambda some, by=spec: compiler.tree(run.as_tree(run.fit(some, by, quiet)), hash_)
    folder = tmp_path_factory.mktemp("kept")
    digest = kept.write(folder / "items.parquet", late)
    (folder / "items.parquet").rename(folder / f"evaluation-{digest}.parquet")
    early_digest = kept.write(folder / "training.parquet", early)
    kept_early = (folder / "training.parquet").rename(folder / f"training-{early_digest}.parquet")
    poor = early[np.arange(len(early))]
    poor.y[:] = 3 - poor.y  # it says Bad where it should say Good
    return SimpleNamespace(
        good=tree(early), poor=tree(poor), other=tree(early[np.arange(0, len(early), 2)]), small=tree(early, four),
        folder=folder, late=late,
        early=lambda: kept.read(kept_early, early_digest), learned=early_digest,
        digest=digest, until=int(early.ts_us[-1]),
    )


@pytest.fixture
def here(fitted, tmp_path, monkeypatch):
    """The registry's parts with one policy that asks for the comparison with persistence, and one that does not."""
    by = {"rwnd-fair": training_gate.Rules(rivals=("persistence",), block_s=(30, 10))}
    monkeypatch.setattr(training_gate, "rules", lambda policy: by.get(policy, training_gate.Rules()))
    folder = tmp_path / "kept"
    shutil.copytree(fitted.folder, folder)
    (tmp_path / "in-force").mkdir()
    (tmp_path / "in-force" / "default.yaml").write_text("name: default\nversion: 1\napplies_to: fleet\nmode: shadow\n")
    made = SimpleNamespace(by=by, topic=Topic(), mlflow=Runs(folder), status=Status(lambda _line: None), fitted=fitted)
    key = keys.make(tmp_path / "key.pem")
    made.topic.trusted[keys.key_id(key)] = keys.TrustedKey(key.public_key(), "test", grant("registry"))
    tags = {data_sets.UNTIL_TAG: str(fitted.until), data_sets.hash_tag("evaluation"): fitted.digest}
    tags |= {data_sets.hash_tag("training"): fitted.learned}
    made.mlflow.runs = {f"run-{n}": dict(tags) for n in (GOOD, POOR, OTHER, SMALL)} | {f"run-{BARE}": {}}
    tables = {GOOD: fitted.good, POOR: fitted.poor, OTHER: fitted.other, BARE: fitted.other, NOTHING: fitted.good,
              SMALL: fitted.small}

    class Models:
        def __init__(self, manifest):
            self.manifest, self.registry = manifest, made.mlflow

        def compiled(self, plan, version):
            return CompiledModel(plan, version, f"run-{version}", PROGRAM, tables[version])

    def start():
        made.promotions = {
            m.name: Promotion(Models(m), made.topic, key, SlotMemory(tmp_path / f"{m.name}.json"), made.status, CANARY,
                              PolicyFolder(tmp_path / "in-force"), Gate(made.mlflow, m.name, True, made.status))
            for m in (FAIR, EXAMPLE)
        }

    def alias(version: int, name: str = "congestion", slot: str = "champion") -> None:
        made.mlflow.models[name][slot] = version
        for promotion in made.promotions.values():
            promotion.reconcile()

    def champion(policy: str = "rwnd-fair") -> int:
        now = made.topic.of(policy).get(("champion", "fleet"))
        return now.version if now else 0

    made.start, made.alias, made.champion = start, alias, champion
    made.tags = lambda version, name="congestion": made.mlflow.tags.get((name, version), {})
    made.open = lambda version, why, who: made.mlflow.tags.setdefault(("congestion", version), {}).update(
        {promoter.OPEN: why} | ({promoter.OPENED_BY: who} if who else {}))
    start()
    return made


def test_a_tree_that_beats_persistence_but_not_one_column_is_refused(here):
    """`unacked_bytes` as it is has the greater onset AP; it is chosen on what the run kept of its training."""
    here.by["rwnd-fair"] = training_gate.Rules(rivals=("persistence", "best_column"), block_s=(30, 10))
    here.alias(SMALL)
    assert here.champion() == 0
    assert "no better: onset AP " in here.tags(SMALL)["oal.gate"] or "worse: onset AP " in here.tags(SMALL)["oal.gate"]
    assert " of best column, difference -0." in here.tags(SMALL)["oal.gate"]
    assert " of persistence, difference" not in here.tags(SMALL)["oal.gate"]
    here.mlflow.runs[f"run-{OTHER}"].pop(data_sets.hash_tag("training"))
    here.alias(OTHER)
    assert here.champion() == 0 and "no rule can be chosen on them" in here.tags(OTHER)["oal.gate"]


def test_the_first_champion_is_compared_with_persistence_and_says_so(here):
    here.alias(GOOD)
    assert here.champion() == GOOD
    said = here.tags(GOOD)["oal.gate"]
    scores = json.loads(here.tags(GOOD)["oal.gate.scores"])
    mine, its = scores["congestion/1"]["accuracy"], scores["persistence"]["accuracy"]
    x = np.rint(np.nan_to_num(here.fitted.late.x, nan=float(MISSING))).astype(np.int64)
    predicted, y = here.fitted.good.predict(x), here.fitted.late.y
    assert mine == pytest.approx(np.mean(predicted == y), abs=1e-4)
    assert scores["congestion/1"]["macro_f1"] == pytest.approx(f1_score(y, predicted, average="macro"), abs=1e-4)
    said = re.match(r"first: right ([\d.]+) against ([\d.]+) of persistence, difference ([+-][\d.]+) \(95 % ", said)
    assert [float(v) for v in said.groups()] == pytest.approx([mine, its, mine - its], abs=6e-4)
    assert 0 < its < mine and scores["congestion/1"]["onset_ap"] > scores["persistence"]["onset_ap"]
    assert here.topic.of("rwnd-fair")["champion", "fleet"].reason == "alias champion on congestion/1"


def test_a_first_champion_that_persistence_beats_is_refused_and_nothing_is_in_force(here):
    here.alias(POOR)
    assert here.champion() == 0
    assert "gate: worse: " in here.tags(POOR)["oal.error"] and "of persistence, difference -0." in here.tags(POOR)[
        "oal.error"]
    assert here.tags(POOR)["oal.gate"].startswith("refused: worse: ")


def test_a_worse_version_is_refused_and_what_is_in_force_stays(here):
    here.alias(GOOD)
    before = here.topic.of("rwnd-fair")["champion", "fleet"]
    here.alias(POOR)
    assert here.topic.of("rwnd-fair")["champion", "fleet"] == before
    assert "of congestion/1 in force, difference -0." in here.tags(POOR)["oal.error"]
    assert "oal.released_at.champion/fleet" not in here.tags(POOR)
    assert here.status.value("oal_registry_gate_total", result="refused") == 1
    here.alias(POOR)
    assert here.status.value("oal_registry_gate_total", result="refused") == 1, "it is not judged again in each pass"
    here.alias(OTHER)
    assert here.champion() == OTHER and here.tags(OTHER)["oal.gate"].startswith("passed: ")
    here.alias(GOOD)
    assert here.champion() == GOOD and here.tags(GOOD)["oal.gate"] == "returned: it stood here before"


def test_a_canary_shows_nothing_before_it_is_tried(here):
    here.alias(GOOD)
    here.alias(POOR, slot="canary")
    assert here.topic.of("rwnd-fair")["canary", "fleet"].version == POOR


def test_a_site_is_compared_with_what_it_has_from_the_fleet(here):
    here.alias(GOOD)
    here.mlflow.set_tag("congestion", POOR, "site", "hall")
    here.alias(POOR)
    assert ("champion", "site/hall") not in here.topic.of("rwnd-fair")
    assert "of congestion/1 in force" in here.tags(POOR)["oal.error"]


@pytest.mark.parametrize("lacks", ["run", "tags", "items", "file", "a byte", "later items", "features"])
def test_what_cannot_be_known_is_refused(here, lacks):
    tags = here.mlflow.runs[f"run-{OTHER}"]
    file = here.mlflow.folder / f"evaluation-{here.fitted.digest}.parquet"
    version, said = OTHER, {
        "run": "nobody knows which items", "tags": "nobody knows which items", "items": "held no items out",
        "file": "are not there", "a byte": "is not what was kept", "later items": "no later than those",
        "features": "takes other features",
    }[lacks]
    if lacks in ("run", "tags"):
        version = NOTHING if lacks == "run" else BARE
    elif lacks == "items":
        del tags[data_sets.hash_tag("evaluation")]
    elif lacks == "file":
        file.unlink()
    elif lacks == "a byte":
        file.write_bytes(file.read_bytes()[:-9] + b"x" + file.read_bytes()[-8:])
    elif lacks == "later items":
        tags[data_sets.UNTIL_TAG] = str(here.fitted.until + 400_000_000)
    else:
        items = kept.read(file, here.fitted.digest)
        other = here.mlflow.folder / "other.parquet"
        digest = kept.write(other, replace(items, feature_hash=7))
        other.rename(here.mlflow.folder / f"evaluation-{digest}.parquet")
        tags[data_sets.hash_tag("evaluation")] = digest
    here.alias(version)
    assert here.champion() == 0 and said in here.tags(version)["oal.error"]


def test_a_person_opens_the_gate_and_who_and_why_are_in_the_release(here):
    here.alias(GOOD)
    here.open(BARE, "", "")
    here.alias(BARE)
    assert here.champion() == GOOD
    here.open(BARE, "version 1 stalls hall 7, call 4711", "")
    here.alias(BARE)
    assert here.champion() == GOOD and "nobody knows who set it" in here.tags(BARE)["oal.error"]
    here.open(BARE, "version 1 stalls hall 7, call 4711", "ada")
    here.alias(BARE)
    now = here.topic.of("rwnd-fair")["champion", "fleet"]
    assert now.version == BARE and now.reason.endswith("; gate opened by ada: version 1 stalls hall 7, call 4711")
    assert here.tags(BARE)["oal.gate"].startswith("opened: by ada: version 1 stalls hall 7, call 4711 (nobody knows")
    assert "oal.error" not in here.tags(BARE)


def test_the_later_of_the_two_brings_the_items(here):
    """An older version beside one that learned later, also from what the older one held out."""
    here.alias(GOOD)
    late = here.mlflow.folder / f"evaluation-{here.fitted.digest}.parquet"
    items = kept.read(late, here.fitted.digest)
    half = items.ts_us[0] + 60_000_000
    part = items[items.ts_us > half]
    digest = kept.write(here.mlflow.folder / "part.parquet", part)
    (here.mlflow.folder / "part.parquet").rename(here.mlflow.folder / f"evaluation-{digest}.parquet")
    here.mlflow.runs[f"run-{GOOD}"] = {data_sets.UNTIL_TAG: str(half), data_sets.hash_tag("evaluation"): digest}
    here.alias(OTHER)
    assert "6 blocks of 10 s are too few to draw from" in here.tags(OTHER)["oal.error"], "of its own there are 12"


def test_a_policy_that_asks_for_no_rule_lets_the_first_in_and_compares_the_next(here):
    here.alias(BARE, "example")
    assert here.champion("example") == BARE
    assert here.tags(BARE, "example")["oal.gate"].startswith("first: nothing is in force")
    here.alias(POOR, "example")
    assert here.champion("example") == BARE and "of example/4 in force" in here.tags(POOR, "example")["oal.error"]


def test_a_tree_fitted_again_from_the_kept_items_gives_the_same_bundle_byte_for_byte(fitted, tmp_path):
    """What `oal-train rebuild` compares is the tree; the bundle follows from it."""
    again = compiler.tree(run.as_tree(run.fit(fitted.early(), experiment.load(experiment.OWN), lambda _line: None)),
                          PROGRAM.feature_hash)
    key = keys.make(tmp_path / "key.pem")
    signed = [
        package.build(FAIR, [CompiledModel(FAIR.role("class"), 1, "run-1", PROGRAM, table)], target="fleet", serial=7,
                      rollback_to=[], key=key, policy=Policy()).signed
        for table in (fitted.good, again, fitted.other)
    ]
    assert signed[0] == signed[1] != signed[2]


def test_the_setting_is_a_word_of_two():
    assert gates.required("required", "here") and not gates.required("none", "here")
    with pytest.raises(RegistryError, match="champion_gate is `off`"):
        gates.required("off", "champion_gate")


def test_only_the_server_says_who_opened_and_only_admins_write_what_the_registry_writes():
    body = lambda key: {"key": key, "value": "x"}
    for key in ("oal.gate_opened_by", "oal.promoted_by.champion"):
        assert promoter.forbidden(body(key), lambda: True) == key
    for key in ("oal.gate", "oal.gate.scores", "oal.released_at.champion/fleet", "oal.bundle.champion/fleet"):
        assert promoter.forbidden(body(key), lambda: True) == "" and promoter.forbidden(body(key), lambda: False) == key
        assert promoter.forbidden({"name": "m", "tags": [body(key)]}, lambda: False) == key
    assert promoter.forbidden(body("gate.open"), lambda: False) == promoter.forbidden({}, lambda: False) == ""


def test_items_with_features_more_are_good_for_a_tree_that_knows_fewer():
    """Features are only added, at the end; a tree of an earlier release is in force while items are of this one."""
    whole = programs.of_name("congestion")
    assert programs.begins(whole.feature_hash, whole.beginning(45).feature_hash)
    assert not programs.begins(whole.beginning(45).feature_hash, whole.feature_hash)
    assert not programs.begins(whole.feature_hash, 1)
