"""The MLflow server: tracking, registry and its web page, with users of its own."""
from oal_local import health, passwords
from oal_local.paths import REPO, State, write_config
from oal_local.settings import Settings

NAME = "mlflow"
COMMAND = REPO / "model-registry" / "oal-registry"


def url(settings: Settings) -> str:
    return f"http://127.0.0.1:{settings.ports['mlflow']}"


def config_file(state: State):
    return state.mlflow / "server.yaml"


def render(state: State, settings: Settings) -> None:
    config = {
        "listen": f"127.0.0.1:{settings.ports['mlflow']}",
        "state_dir": str(state.mlflow),
        "admin": _user(state, "admin"),
        # Only an admin may keep a webhook.
        "users": [_user(state, "trainer"), _user(state, "model-registry") | {"role": "admin"}],
        "webhook_key_file": str(state.secrets / "mlflow-webhook.key"),
    }
    write_config(config_file(state), config)


def _user(state: State, user: str) -> dict:
    return {"user": user, "password_file": str(passwords.file(state, user, "mlflow"))}


def client(state: State, settings: Settings, user: str) -> dict:
    """The `mlflow` section of a service's configuration."""
    return {"tracking_uri": url(settings), **_user(state, user)}


def command(state: State, settings: Settings) -> list[str]:
    return [str(COMMAND), "server", "--config", str(config_file(state))]


def files(state: State, settings: Settings) -> list:
    return [config_file(state)]


def ready(state: State, settings: Settings) -> bool:
    return health.ok(url(settings) + "/health")
