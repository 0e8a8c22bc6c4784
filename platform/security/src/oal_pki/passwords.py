"""Passwords and tokens: random, made once, one file each."""
import secrets

from oal_pki import folder as files
from oal_pki.folder import Folder

BYTES = 32
FILES = (
    *(f"clickhouse-{user}.password" for user in ("admin", "ingest", "analyst", "grafana", "telegraf")),
    *(f"mlflow-{user}.password" for user in ("admin", "trainer", "model-registry")),
    *(f"postgres-{user}.password" for user in ("mlflow", "push")),
    "grafana-admin.password", "grafana-secret.key", "jolokia.password",
    "push-admin.token", "push-approver.token", "metrics.token", "mlflow-webhook.secret",
    "clickhouse-cluster.secret",  # what the servers of a cluster show each other
)


def ensure(folder: Folder) -> list[str]:
    """Make those that are missing; their names."""
    made = [name for name in FILES if not (folder.secrets / name).exists()]
    for name in made:
        files.write(folder.secrets / name, secrets.token_urlsafe(BYTES))
    return made
