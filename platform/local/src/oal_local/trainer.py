"""The online trainer."""
from oal_local import health, kafka, mlflow, passwords, pki
from oal_local.paths import REPO, State, write_config
from oal_local.settings import Settings

NAME = "trainer"


def config_file(state: State):
    return state.trainer / "online.yaml"


def url(settings: Settings) -> str:
    return f"http://127.0.0.1:{settings.ports['trainer']}"


def render(state: State, settings: Settings) -> None:
    config = {
        "kafka": kafka.client(state, settings, "trainer"),
        "mlflow": mlflow.client(state, settings, "trainer"),
        "signing_key": str(passwords.signing_key(state, "online")),
        "trusted_keys": str(state.trusted_keys),
        "state_dir": str(state.trainer),
        "listen": f"127.0.0.1:{settings.ports['trainer']}",
        "settings": settings.trainer_settings or None,
        "policies": settings.policies,
        "metrics_token_file": str(passwords.token_file(state, "metrics.token")),
    }
    write_config(config_file(state), config)


def command(state: State, settings: Settings) -> list[str]:
    return [str(REPO / "training" / "oal-train"), "online", "--config", str(config_file(state))]


def files(state: State, settings: Settings) -> list:
    return [config_file(state), *pki.files(state, "trainer")]


def ready(state: State, settings: Settings) -> bool:
    return health.ok(url(settings) + "/healthz")
