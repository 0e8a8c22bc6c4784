"""Command `online`: the trainer as a service."""

from __future__ import annotations


def register(add) -> None:
    """Add the command to `oal-train`."""
    parser = add(
        "online",
        help="retrain each AP's tree every second from Kafka, ship what is better",
        description=(
            "Read training items from Kafka, fit a tree per AP every second, ship it when it beats the tree in force"
            " and persistence. See training/README.md."
        ),
    )
    parser.add_argument(
        "--config", required=True, metavar="FILE", help="YAML: kafka, mlflow, signing_key, state_dir, listen, settings"
    )
    parser.set_defaults(run=run)


def run(arguments) -> int:
    """Serve until SIGTERM."""
    from oal_training.online import service

    return service.main(arguments.config)
