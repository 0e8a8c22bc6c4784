"""A run of the experiment `factors` in MLflow."""

from __future__ import annotations

from pathlib import Path

EXPERIMENT = "factors"


def log_run(where, name: str, lineage, figures: dict[str, float], folder: Path, params: dict) -> str:
    """One run of the experiment `factors`: lineage (lineage.Lineage) as tags, figures as metrics, the folder's files as
    artifacts; its id.
    """
    from oal_training.lineage import TAG
    from oal_training.tracking import said

    mlflow = where.connect()
    with said("logging the run"):
        mlflow.set_experiment(EXPERIMENT)
        tags = lineage.tags() | {
            TAG + "experiment": EXPERIMENT,
            "mlflow.source.name": f"oal-train {name}",
            "mlflow.note.content": "What it says: report/*.md. Beside the paper: docs/paper.md.",
        }
        with mlflow.start_run(run_name=name, tags=tags) as made:
            mlflow.log_params(params)
            mlflow.log_metrics(figures)
            mlflow.log_artifacts(str(folder), "report")
            return made.info.run_id
