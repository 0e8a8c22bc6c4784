"""Passwords and tokens: random, made once, one file each."""
import secrets

from oal_pki import folder as files
from oal_pki.folder import Folder

FILES = (
    *(f"clickhouse-{user}.password" for user in ("admin", "ingest", "analyst", "grafana", "telegraf")),
    *(f"mlflow-{user}.password" for user in ("admin", "trainer", "model-registry")),
    *(f"postgres-{user}.password" for user in ("mlflow", "push")),
    "grafana-admin.password", "grafana-secret.key", "jolokia.password",
    "push-admin.token", "metrics.token", "mlflow-webhook.secret",
)


def ensure(folder: Folder) -> list[str]:
    """Make those that are missing; their names."""
    made = [name for name in FILES if not (folder.secrets / name).exists()]
    for name in made:
        files.write(folder.secrets / name, secrets.token_urlsafe(24))
    return made
