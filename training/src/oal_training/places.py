"""Where MLflow and ClickHouse are: from a configuration file and the command line."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from oal_training.errors import TrainingError
from oal_training.stored.clickhouse import Connection
from oal_training.tracking import Tracking


@dataclass(frozen=True)
class Places:
    """Where things are; None where nothing was said."""

    tracking: Tracking | None
    connection: Connection | None

    @classmethod
    def of(cls, arguments) -> Places:
        """Connections from --config, with what the command line says instead; a command need not have all options.

        TrainingError names what is missing or wrong.
        """
        given = vars(arguments).get
        config = {}
        if arguments.config:
            try:
                config = yaml.safe_load(arguments.config.read_text(encoding="utf-8")) or {}
            except (OSError, yaml.YAMLError) as error:
                raise TrainingError(f"{arguments.config}: {error}") from None
            if not isinstance(config, dict):
                raise TrainingError(f"{arguments.config} must hold sections, such as mlflow and clickhouse")
        tracking, connection = _section(config, "mlflow", Tracking), _section(config, "clickhouse", Connection)
        if given("tracking_uri") or given("mlflow_user"):
            tracking = Tracking(
                given("tracking_uri") or (tracking.tracking_uri if tracking else ""),
                given("mlflow_user") or (tracking.user if tracking else None),
                given("mlflow_password_file") or (tracking.password_file if tracking else None),
                tracking.ca_file if tracking else None,
            )
        if given("clickhouse"):
            if not arguments.clickhouse_password_file:
                raise TrainingError("--clickhouse needs --clickhouse-password-file")
            connection = Connection(
                arguments.clickhouse,
                arguments.clickhouse_user,
                arguments.clickhouse_password_file,
                arguments.database,
                connection.ca_file if connection else None,
            )
        return cls(tracking, connection)


def _section(config: dict, name: str, kind: type):
    values = config.get(name)
    if values is None:
        return None
    try:
        return kind(**values)
    except TypeError as error:
        raise TrainingError(f"section {name} of the configuration: {error}") from None
