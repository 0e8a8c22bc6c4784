"""The service that promotes and retrains what MLflow's page asks for."""
from oal_local import clickhouse, health, kafka, mlflow, passwords, pki
from oal_local.paths import REPO, State, write_config
from oal_local.settings import Settings

NAME = "model-registry"


def config_file(state: State):
    return state.registry / "registry.yaml"


def url(settings: Settings) -> str:
    return f"http://127.0.0.1:{settings.ports['model_registry']}"


def render(state: State, settings: Settings) -> None:
    config = {
        "kafka": kafka.client(state, settings, "model-registry"),
        "mlflow": mlflow.client(state, settings, "model-registry"),
        "signing_key": str(passwords.signing_key(state, "registry")),
        "trusted_keys": str(state.trusted_keys),
        "listen": f"127.0.0.1:{settings.ports['model_registry']}",
        "webhook_secret_file": str(passwords.token_file(state, "mlflow-webhook.secret")),
        "state_dir": str(state.registry),
        "poll_s": 2,
        "train_command": [str(REPO / "training" / "oal-train")],
        "clickhouse": clickhouse.client(state, settings, "analyst"),
        "policies": settings.policies,
        "metrics_token_file": str(passwords.token_file(state, "metrics.token")),
    }
    write_config(config_file(state), config)


def command(state: State, settings: Settings) -> list[str]:
    return [str(mlflow.COMMAND), "serve", "--config", str(config_file(state))]


def files(state: State, settings: Settings) -> list:
    return [config_file(state), *pki.files(state, "model-registry")]


def ready(state: State, settings: Settings) -> bool:
    return health.ok(url(settings) + "/healthz")
