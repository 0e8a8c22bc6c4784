"""The push service, which delivers bundles to APs."""
import hashlib

from oal_local import clickhouse, health, kafka, passwords, pki
from oal_local.errors import PlatformError
from oal_local.paths import REPO, State, write_config, write_private
from oal_local.settings import Settings

NAME = "push"
BINARY = REPO / "deploy" / "build" / "oal-deploy"


#: A user of the push service who approves rollouts, and does nothing else.
APPROVER, APPROVER_TOKEN = "approver", "push-approver.token"


def config_file(state: State):
    return state.push / "deploy.yaml"


def users_file(state: State):
    return state.push / "admin-users"


def ap_url(settings: Settings) -> str:
    return f"https://127.0.0.1:{settings.ports['push_ap']}"


def admin_url(settings: Settings) -> str:
    return f"http://127.0.0.1:{settings.ports['push_admin']}"


def enrol_url(settings: Settings) -> str:
    return f"https://127.0.0.1:{settings.ports['push_enrol']}"


def render(state: State, settings: Settings) -> None:
    config = {
        "ap_listen": f"127.0.0.1:{settings.ports['push_ap']}",
        "tls": {
            "cert": str(state.pki / "deploy.crt"), "key": str(state.pki / "deploy.key"),
            "client_ca": str(state.pki / "ca.crt")
        },
        "admin_listen": f"127.0.0.1:{settings.ports['push_admin']}",
        "enrol_listen": f"127.0.0.1:{settings.ports['push_enrol']}",
        "enrol": {
            "url": enrol_url(settings), "ca_cert": str(state.pki / "ap-ca.crt"), "ca_key": str(state.pki / "ap-ca.key"),
            "root": str(state.pki / "ca.crt"), "mac_masters": str(state.mac_masters)
        },
        "metrics_token_file": str(passwords.token_file(state, "metrics.token")),
        "admin_token_file": str(passwords.token_file(state, "push-admin.token")),
        "admin_users_file": str(users_file(state)),
        "approvals": settings.approvals,
        "kafka": {
            "bootstrap": kafka.bootstrap(settings), "ca": str(state.pki / "ca.crt"),
            "cert": str(state.pki / "deploy.crt"), "key": str(state.pki / "deploy.key")
        },
        "trusted_keys": str(state.trusted_keys),
        "store": {"path": str(state.push / "state.db")},
        "clickhouse": clickhouse.client(state, settings, "analyst"),
    }
    write_config(config_file(state), config)
    digest = hashlib.sha256(passwords.token_file(state, APPROVER_TOKEN).read_text().strip().encode()).hexdigest()
    write_private(users_file(state), f"{APPROVER} approver {digest}\n")


def prepare(state: State, settings: Settings) -> None:
    if not BINARY.exists():
        raise PlatformError(f"{BINARY.relative_to(REPO)} is not built; run `make build`")


def command(state: State, settings: Settings) -> list[str]:
    return [str(BINARY), "serve", "--config", str(config_file(state))]


def files(state: State, settings: Settings) -> list:
    return [config_file(state), BINARY, *pki.files(state, "deploy", "ap-ca"), state.mac_masters]


def ready(state: State, settings: Settings) -> bool:
    return health.ok(admin_url(settings) + "/readyz")
