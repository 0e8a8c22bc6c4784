"""What a fit says: the page, figures of the run, and the run with its version in MLflow."""

from __future__ import annotations

import hashlib
import json
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from oal_training import policies
from oal_training.batch import stored_tree, tree_view, versions
from oal_training.cc_select import gate
from oal_training.cc_select.choice import LEAST_NETWORKS, Choice, Gain, Judged
from oal_training.cc_select.experiment import POLICY, Experiment, candidates, feature_names, name_of, number
from oal_training.cc_select.lessons import Lessons
from oal_training.lineage import TAG, Lineage
from oal_training.stored.programs import known_programs
from oal_training.tracking import EXPERIMENT_FILE, FEATURES_FILE, PROGRAM_FILE, Tracking, said

PAGE_FILE, LESSONS_FILE = "cc-select.md", "lessons.parquet"
LESSONS_TAG = TAG + "lessons_sha256"
MAX_CHARACTERS = 5000  # of a description in MLflow's database


@dataclass(frozen=True, eq=False)
class Made:
    """A fit. sessions: that were read; split: how it was judged, in words."""

    experiment: Experiment
    lessons: Lessons
    sessions: int
    choice: Choice
    judged: Judged
    split: str
    lineage: Lineage

    @property
    def networks(self) -> int:
        return len(np.unique(self.lessons.network))


def figures(made: Made) -> dict[str, float]:
    """Metrics of a run; what cannot be said is absent."""
    judged = made.judged
    out = {
        "sessions": made.sessions,
        "lessons": len(made.lessons),
        "networks": made.networks,
        "nodes": made.choice.tree.tree_.node_count,
        "leaves": made.choice.tree.get_n_leaves(),
        "changed_share": judged.changed,
    }
    for name in ("over_same", "over_best_fixed", "possible"):
        gain: Gain = getattr(judged, name)
        out |= {name: gain.percent, f"{name}_sessions": gain.sessions, f"{name}_networks": gain.networks}
        if gain.low is not None:
            out |= {f"{name}_low": gain.low, f"{name}_high": gain.high}
    return {name: float(value) for name, value in out.items() if np.isfinite(value)}


def params(made: Made) -> dict[str, str]:
    """Parameters of a run."""
    e = made.experiment
    return {
        "kind": "decision_tree",
        "utility": e.utility,
        "window_s": f"{e.window_s:g}",
        "least_sessions": str(e.least_sessions),
        "min_bytes": str(e.least_bytes),
        "cc_share_permille": str(round(made.choice.confidence * 1000)),
        "candidates": ", ".join(map(name_of, candidates())),
        "best_fixed": name_of(candidates()[made.judged.fixed]),
        "split": made.split,
    }


def markdown(made: Made) -> str:
    """The page."""
    judged, e = made.judged, made.experiment
    names = [name_of(n) for n in candidates()]
    lines = [
        f"{len(made.lessons)} lessons of {made.sessions} sessions, of {made.networks} networks; a tree of"
        f" {made.choice.tree.get_n_leaves()} leaves. Worth: utility *{e.utility}*, mean of {e.least_sessions} sessions"
        f" or more within {e.window_s / 60:g} minutes. Judged {made.split}.",
        "",
        "| what the tree's choices bring | | 95 % | sessions | networks |",
        "|---|--:|--:|--:|--:|",
        _row("over staying with what each session had", judged.over_same),
        _row(f"over {names[judged.fixed]} for all, the best one", judged.over_best_fixed),
        _row("what the best known one would bring over staying", judged.possible),
        "",
        "| congestion control | sessions had it | right | said |",
        "|---|--:|--:|--:|",
        *(f"| {name} | {had} | {right} | {said_} |"
          for name, had, right, said_ in zip(names, judged.had, judged.right, judged.said, strict=True)),
        "",
        f"{100 * judged.changed:.0f} % of sessions would get another one. Left out: {left_out(made.lessons)}.",
    ]
    if judged.over_same.low is None:
        lines.append(f"No intervals: of fewer than {LEAST_NETWORKS} networks they would say nothing.")
    refused = gate.judge(figures(made), gate.rules(POLICY)).refused
    lines.append(f"The gate before champion would refuse it: {refused}." if refused else "The gate would let it pass.")
    return "\n".join(lines) + "\n"


def _row(words: str, gain: Gain) -> str:
    between = "–" if gain.low is None else f"{gain.low:+.1f} to {gain.high:+.1f}"
    percent = f"{gain.percent:+.1f} %" if np.isfinite(gain.percent) else "–"
    return f"| {words} | {percent} | {between} | {gain.sessions} | {gain.networks} |"


def left_out(of: Lessons) -> str:
    """Sessions that are no lessons, by why."""
    return ", ".join(f"{n} {why}" for why, n in of.left_out.items() if n) or "none"


def write_lessons(path: Path, of: Lessons) -> str:
    """The lessons as Parquet; SHA-256 of the file. Networks are numbers: no address is kept."""
    columns = {"network": pa.array(of.network), "ts_us": pa.array(of.ts_us), "own": pa.array(of.own)}
    columns |= {f"worth_{name_of(n)}": pa.array(of.worth[:, i]) for i, n in enumerate(candidates())}
    columns |= {name: pa.array(of.x[:, i]) for i, name in enumerate(feature_names())}
    pq.write_table(pa.table(columns), path, compression="zstd")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write(folder: Path, made: Made) -> str:
    """What the registry compiles a version by, what a retrain repeats it by, and the lessons; SHA-256 of these."""
    program = known_programs()[policies.feature_hash(POLICY)]
    (folder / EXPERIMENT_FILE).write_text(made.experiment.text, encoding="utf-8")
    (folder / PROGRAM_FILE).write_bytes(program.oalf)
    (folder / FEATURES_FILE).write_bytes(program.json)
    for part in ("data", "tree"):
        (folder / part).mkdir()
    units = tree_view.units_of(program.json)
    names = feature_names()
    classes = tuple(name_of(n) for n in candidates())
    view = tree_view.of_sklearn(made.choice.tree, names, tuple(units.get(n, "1") for n in names), classes)
    tree_view.write(folder / "tree", view, POLICY)
    return write_lessons(folder / "data" / LESSONS_FILE, made.lessons)


def log(tracking: Tracking, made: Made, source: dict, register: str | None, retrained_from: str | None) -> dict:
    """One run, and with `register` a version of it: {"run_id", "version" or None}. TrainingError before anything is
    written when a version is asked for that lineage does not allow.
    """
    if register:
        versions.check(made.lineage, True, POLICY)
    mlflow = tracking.connect()
    import mlflow.sklearn as flavour

    page = markdown(made)
    tags = made.lineage.tags() | {
        TAG + "experiment": POLICY,
        TAG + "source": json.dumps(source, sort_keys=True),
        "policy": POLICY,
        "mlflow.source.name": "oal-train cc-select",
        "mlflow.note.content": page,
    }
    tags |= {"retrained_from": retrained_from} if retrained_from else {}
    with said("logging the run"), tempfile.TemporaryDirectory(prefix="oal-") as temporary:
        folder = Path(temporary)
        tags[LESSONS_TAG] = _write(folder, made)
        mlflow.set_experiment(POLICY)
        with mlflow.start_run(run_name=POLICY, tags=tags) as run:
            mlflow.log_params(params(made))
            mlflow.log_metrics(figures(made))
            mlflow.log_text(page, f"report/{PAGE_FILE}")
            mlflow.log_artifacts(temporary)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "X has feature names")  # the tree asks for none
                model = flavour.log_model(
                    made.choice.tree,
                    name="model",
                    signature=_signature(),
                    serialization_format="skops",
                    skops_trusted_types=stored_tree.TRUSTED_TYPES,
                    pip_requirements=[f"scikit-learn=={made.lineage.environment['scikit-learn']}", "skops"],
                )
            mlflow.set_tag(stored_tree.HASH_TAG, stored_tree.content_sha256(made.choice.tree))
            run_id = run.info.run_id
    if not register:
        return {"run_id": run_id, "version": None}
    with said(f"registering {register}"):
        client = mlflow.MlflowClient()
        version = mlflow.register_model(model.model_uri, register)
        client.update_model_version(register, version.version, page[:MAX_CHARACTERS])
        for key, value in {
            "retrained_from": retrained_from,
            "policy": POLICY,
            "feature_hash": made.lineage.feature_hash,
            TAG + "experiment": POLICY,
        }.items():
            if value:
                client.set_model_version_tag(register, version.version, key, value)
    return {"run_id": run_id, "version": int(version.version)}


def _signature():
    """What the tree takes and gives, by name."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    takes = Schema([ColSpec("long", name) for name in feature_names()])
    return ModelSignature(takes, Schema([ColSpec("long", "class")]))


def confidence() -> float:
    """Share that a leaf's class must have, as hosts ask for it."""
    return number("cc_share_permille") / 1000
