"""Policy cc-select: its trees of sessions become bundles for hosts, and its gate asks what the run says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from oal_registry import compile as compiler
from oal_registry import programs, promoter, registered
from oal_registry.gate import Gate
from oal_registry.mlflow_client import MlflowRegistry
from oal_registry.models import CompiledModel
from oal_registry.promotion import Promotion
from oal_registry.retrain import STATE_TAG, TAG, Retraining
from oal_registry.slot_memory import SlotMemory
from oal_registry.status import Status
from oal_schema import bundle, keys
from oal_schema.grant import grant
from oal_schema.manifest import known
from oal_schema.policy_folder import PolicyFolder
from sklearn.tree import DecisionTreeClassifier
from test_several_policies import CANARY, Mlflow, Topic
from topics import released
from waiting import until

ROOT = Path(__file__).resolve().parents[2]
POLICY = known()["cc-select"]
PROGRAM = programs.of_name(POLICY.program)
CC = PROGRAM.features.index("cc")
GOOD = {"over_best_fixed": 4.0, "over_best_fixed_low": 0.5, "over_best_fixed_high": 8.0, "over_best_fixed_networks": 20}
FEW, CHANCE, SILENT, BETTER = 1, 2, 3, 4
RUNS = {FEW: GOOD | {"over_best_fixed_networks": 3}, CHANCE: GOOD | {"over_best_fixed_low": -0.1}, SILENT: {},
        BETTER: GOOD}


def tree(classes=(0, 1, 3)) -> DecisionTreeClassifier:
    """A tree of sessions that says some of the four classes."""
    draw = np.random.default_rng(1)
    x = draw.integers(0, 100_000, (300, len(PROGRAM.features)))
    x[:, CC] = draw.integers(1, 5, 300)
    y = np.array(classes)[(x[:, CC] + x[:, 8] // 50_000) % len(classes)]
    return DecisionTreeClassifier(max_leaf_nodes=8, random_state=0).fit(x.astype(np.float32), y)


class Runs(Mlflow):
    """Versions whose runs have metrics and no kept items."""

    def version(self, name, version):
        found = super().version(name, version)
        found.run_id = f"run-{version}"
        return found

    def run_metrics(self, run_id):
        return RUNS.get(int(run_id.removeprefix("run-")))


@pytest.fixture
def here(tmp_path):
    folder = tmp_path / "in-force"
    shutil.copytree(ROOT / "policies/in-force", folder)
    made = SimpleNamespace(topic=Topic(), mlflow=Runs("cc-select"), status=Status(lambda _line: None), folder=folder)
    key = keys.make(tmp_path / "key.pem")
    made.topic.trusted[keys.key_id(key)] = keys.TrustedKey(key.public_key(), "test", grant("registry"))
    table = compiler.tree(tree(), PROGRAM.feature_hash)

    class Models:
        def __init__(self):
            self.manifest, self.registry = POLICY, made.mlflow

        def compiled(self, plan, version):
            return CompiledModel(plan, version, f"run-{version}", PROGRAM, table)

    def alias(version: int):
        made.mlflow.models["cc-select"]["champion"] = version
        Promotion(Models(), made.topic, key, SlotMemory(tmp_path / "slots.json"), made.status, CANARY,
                  PolicyFolder(folder), Gate(made.mlflow, "cc-select", True, made.status)).reconcile()
        return made.topic.of("cc-select").get(("champion", "fleet"))

    made.alias, made.table = alias, table
    made.tags = lambda version: made.mlflow.tags.get(("cc-select", version), {})
    return made


@pytest.mark.parametrize(("version", "says"), [
    (FEW, "judged against the best congestion control for all on 3 networks; 8 are needed"),
    (CHANCE, "no better beyond chance: +4.0 % over the best congestion control for all (95 % -0.1 to +8.0, 20 net"),
    (SILENT, "its run does not say what it brings over the best congestion control for all"),
    (5, "its run does not say")])
def test_what_a_run_does_not_show_is_refused(here, version, says):
    assert here.alias(version) is None
    assert says in here.tags(version)["oal.error"] and here.tags(version)["oal.gate"].startswith("refused: ")


def test_a_version_that_shows_it_is_released_with_its_law_and_without_a_file_in_shadow(here):
    now = here.alias(BETTER)
    held = now.bundle()
    assert (held.of_policy, held.model, held.version) == ("cc-select", "cc-select", BETTER)
    assert held.policy.mode_name == "shadow"
    law = held.law
    assert (law.name, law.subject, law.action, law.values) == ("direct", "destination", "cc", (1, 3, 4, 2))
    assert held.feature_hash == PROGRAM.feature_hash and [m.role for m in held.models] == ["class"]
    assert bundle.decode(bundle.split_signed(now.signed)[0]).golden is not None
    assert here.tags(BETTER)["oal.gate"] == (
        "first: +4.0 % over the best congestion control for all (95 % +0.5 to +8.0, 20 networks)")
    assert json.loads(here.tags(BETTER)["oal.gate.scores"]) == GOOD
    assert here.topic.records.keys() == {"champion/fleet/cc-select"}


def test_a_refused_one_does_not_take_its_place_and_a_person_may_let_it(here):
    first = here.alias(BETTER)
    assert here.alias(CHANCE) == first
    here.mlflow.tags["cc-select", CHANCE] |= {promoter.OPEN: "trial on hall 7", promoter.OPENED_BY: "ada"}
    now = here.alias(CHANCE)
    assert now.version == CHANCE and now.reason.endswith("; gate opened by ada: trial on hall 7")
    assert "no better beyond chance" in here.tags(CHANCE)["oal.gate"]


def test_the_example_of_a_file_in_force_is_one_and_changes_what_hosts_may(here):
    example = (here.folder / "examples" / "cc-select.yaml").read_text()
    (here.folder / "hosts.yaml").write_text(
        example.replace("name: cc-select", "name: hosts").replace("site/example", "fleet")
        .replace("mode: shadow", "mode: enforce"))
    held = here.alias(BETTER).bundle()
    assert (held.policy.name, held.policy.mode_name) == ("hosts", "enforce")
    assert (held.policy.control["cc_explore_permille"], held.policy.control["cc_keep_s"]) == (20, 3600)


def test_a_gate_file_that_cannot_be_understood_lets_nothing_in(here, monkeypatch, tmp_path):
    from oal_training import policies

    monkeypatch.setattr(policies, "POLICIES", tmp_path)
    (tmp_path / "cc-select").mkdir()
    (tmp_path / "cc-select" / policies.GATE).write_text("beats: [luck]\n")
    assert here.alias(BETTER) is None and "beats are some of" in here.tags(BETTER)["oal.error"]


@pytest.mark.parametrize("classes", [(0, 1, 2, 3), (1,), (2, 0)])
def test_a_tree_of_some_classes_answers_as_the_compiled_one(classes):
    model = tree(classes)
    table = compiler.tree(model, PROGRAM.feature_hash)
    x = np.random.default_rng(2).integers(0, 100_000, (500, len(PROGRAM.features)))
    assert (table.predict(x) == model.predict(x.astype(np.float32))).all()
    leaf = table.apply(x)
    shares = np.column_stack([1000 - table.leaf_permille[leaf].sum(axis=1), table.leaf_permille[leaf]])
    assert np.abs(shares.max(axis=1) - 1000 * model.predict_proba(x.astype(np.float32)).max(axis=1)).max() <= 1


def test_a_retrain_runs_the_command_that_knows_sessions_and_drift_looks_at_items_alone(tmp_path, monkeypatch):
    assert registered.trainer("cc-select") == "cc-select" and registered.trainer("congestion") == "fit"
    assert registered.trainer("mine") == "fit"
    assert "cc-select" in registered.heads() and "cc-select" not in registered.heads_with_items()
    assert "congestion" in registered.heads_with_items()

    class Asked:
        tracking_uri = "http://127.0.0.1:9"

        def __init__(self):
            self.tags = {TAG: "requested"}

        def versions(self, model, where=""):
            if STATE_TAG in where and self.tags.get(STATE_TAG) != "running":
                return []
            return [SimpleNamespace(version="3", tags=self.tags)]

        def set_tag(self, _model, _number, key, value):
            self.tags[key] = value

        def delete_tag(self, _model, _number, key):
            self.tags.pop(key, None)

    out = tmp_path / "said"
    command = ["/bin/sh", "-c", f'echo "$@" > {out}', "train"]
    here = Retraining(Asked(), ("cc-select",), command, "c.yaml", tmp_path / "r", 60, Status(lambda _line: None))
    try:
        assert here.step() == 1
        here._run.process.wait(10)
        assert out.read_text().startswith("cc-select --retrain cc-select/3 --tracking-uri")
        assert " --register cc-select --result " in out.read_text()
    finally:
        here.stop()


@pytest.mark.usefixtures("running")
def test_an_alias_in_mlflow_becomes_a_release_of_the_policy(owner, topics, mlflow, trusted):
    """The real server, broker and service, whose gate is open here."""
    model, program = tree(), (programs.FOLDER / f"{POLICY.program}.oalf").read_bytes()
    version = owner.register(name="cc-select", estimator=model, program=program)
    owner.alias("champion", version, "cc-select")
    now = released(topics, "champion", version, policy="cc-select")
    content, _ = bundle.open_signed(now.signed, trusted, "h1", "here")
    assert content.law == POLICY.law and content.policy.mode_name == "shadow"
    x = np.random.default_rng(3).integers(0, 100_000, (500, len(PROGRAM.features)))
    assert (content.tree.predict(x) == model.predict(x.astype(np.float32))).all()
    for name, value in GOOD.items():
        owner.client.log_metric(now.run_id, name, value)
    registry = MlflowRegistry(mlflow.url, "admin", mlflow.passwords["admin"])
    try:
        assert registry.run_metrics(now.run_id) == GOOD and registry.run_metrics("0" * 32) is None
    finally:
        type(owner)(mlflow.url, "owner", mlflow.passwords["owner"])
    owner.unalias("champion", "cc-select")
    until(lambda: topics.in_force("champion", policy="cc-select") is None, "withdrawn")
