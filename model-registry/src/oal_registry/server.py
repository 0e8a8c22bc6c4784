"""`oal-registry server`: the MLflow server with authentication, ready to run from an empty folder.

Everything that MLflow would ask for on its command line or leave at a default is settled here, then this process
is MLflow's (one process, one worker): databases migrated, users made from their password files, keys kept, jobs
off.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from oal_registry import config, secret_files
from oal_registry.errors import RegistryError

ROLES = ("viewer", "owner", "admin")
# MLflow hashes a password slowly on purpose; a client that asks several times a second is checked once in this time.
AUTH_CACHE_S = 300
WEBHOOK_LIST_CACHE_S = 2  # a webhook registered anew is in use after this
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class User:
    """A user of MLflow, from the configuration."""

    name: str
    password: str
    role: str  # viewer: reads; owner: trains, promotes, deletes; admin: also users and webhooks


@dataclass(frozen=True)
class ServerConfig:
    """The configuration file of `oal-registry server`, checked."""

    host: str
    port: int
    state: Path
    users: tuple[User, ...]  # the first is the administrator
    webhook_key_file: Path
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    database_uri: str
    artifacts: str
    tls: tuple[str, str] | None  # files of certificate and key of `listen`
    ca_file: str  # authority behind the addresses of webhooks, beside the public ones

    @classmethod
    def load(cls, path: str) -> ServerConfig:
        """Read it; RegistryError names the key that is missing or wrong."""
        top = config.Section(config.load(path), path)
        host, port = config.address(top.get("listen", str), f"{path}: listen")
        state = config.folder(top.get("state_dir", str))
        users = [_user(top.section("admin"), "admin")]
        for i, entry in enumerate(top.get("users", list, [])):
            users.append(_user(config.Section(entry, f"{path}: users[{i}]"), "owner"))
        names = [user.name for user in users]
        if twice := {name for name in names if names.count(name) > 1}:
            raise RegistryError(f"{path}: user {', '.join(sorted(twice))} is there twice")
        made = cls(
            host=host,
            port=port,
            state=state,
            users=tuple(users),
            webhook_key_file=Path(top.get("webhook_key_file", str, str(state / "webhook.key"))),
            allowed_hosts=tuple(top.get("allowed_hosts", list, [])),
            allowed_origins=tuple(top.get("allowed_origins", list, [])),
            database_uri=top.get("database_uri", str, f"sqlite:///{state / 'mlflow.db'}"),
            artifacts=top.get("artifacts", str, str(state / "artifacts")),
            tls=config.tls(top),
            ca_file=top.get("ca_file", str, ""),
        )
        top.done()
        if host not in LOOPBACK and not made.allowed_hosts:
            raise RegistryError(
                f"{path}: listen is not loopback; name the host names that browsers use in `allowed_hosts`"
            )
        return made


def _user(section: config.Section, default_role: str) -> User:
    role = section.get("role", str, default_role)
    if role not in ROLES:
        raise RegistryError(f"role `{role}` is none of {', '.join(ROLES)}")
    name = section.get("user", str)
    password = secret_files.read(section.get("password_file", str), f"password of {name}")
    if len(password) < 12:
        raise RegistryError(f"password of {name}: MLflow wants at least 12 characters")
    section.done()
    return User(name, password, role)


def serve(path: str) -> None:
    """Prepare, then be the MLflow server until a signal ends it.

    In one process: MLflow's modules take longer to import than everything else that a start does.
    """
    settings = ServerConfig.load(path)
    for kind in (UserWarning, DeprecationWarning):
        warnings.simplefilter("ignore", kind)
    prepare(settings)
    import uvicorn

    scheme = "https" if settings.tls else "http"
    print(
        f"oal-registry: MLflow at {scheme}://{settings.host}:{settings.port}, state in {settings.state}",
        file=sys.stderr,
        flush=True,
    )
    cert, key = settings.tls or (None, None)
    uvicorn.run(
        "oal_registry.promoter:create_app",
        factory=True,
        host=settings.host,
        port=settings.port,
        log_level="warning",
        timeout_graceful_shutdown=5,
        ssl_certfile=cert,
        ssl_keyfile=key,
    )


def _server_environment(settings: ServerConfig) -> dict[str, str]:
    """Variables by which MLflow's command line tells its server what to serve."""
    from importlib.util import find_spec, module_from_spec, spec_from_file_location

    # The names are in a module of `mlflow.server` whose import reads them, so only that file is read here.
    (package,) = find_spec("mlflow").submodule_search_locations
    spec = spec_from_file_location("mlflow_server_constants", Path(package) / "server" / "constants.py")
    spec.loader.exec_module(names := module_from_spec(spec))
    return {
        names.BACKEND_STORE_URI_ENV_VAR: settings.database_uri,
        names.ARTIFACT_ROOT_ENV_VAR: "mlflow-artifacts:/",
        names.ARTIFACTS_DESTINATION_ENV_VAR: settings.artifacts,
        names.SERVE_ARTIFACTS_ENV_VAR: "true",
        "_MLFLOW_SGI_NAME": "uvicorn",
    }


def prepare(settings: ServerConfig) -> str:
    """Make or upgrade both databases, the users and the keys; the key of the webhooks' secrets.

    Leaves in this process's environment what MLflow's server reads there.
    """
    from cryptography.fernet import Fernet

    key = secret_files.read_or_make(
        settings.webhook_key_file, "key of the webhooks' secrets", lambda: Fernet.generate_key().decode()
    )
    csrf = secret_files.read_or_make(
        settings.state / "flask.key", "key of the UI's forms", lambda: secrets.token_urlsafe(32)
    )
    auth_database = f"sqlite:///{settings.state / 'auth.db'}"
    ini = settings.state / "basic_auth.ini"
    secret_files.write(
        ini,
        "[mlflow]\n"
        "default_permission = READ\n"
        f"database_uri = {auth_database.replace('%', '%%')}\n"
        f"admin_username = {settings.users[0].name}\n"
        f"auth_cache_ttl_seconds = {AUTH_CACHE_S}\n",
    )
    made = {
        "MLFLOW_AUTH_CONFIG_PATH": str(ini),
        "MLFLOW_FLASK_SERVER_SECRET_KEY": csrf,
        "MLFLOW_WEBHOOK_SECRET_ENCRYPTION_KEY": key,
        "MLFLOW_WEBHOOK_ALLOWED_SCHEMES": "http,https",
        "MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS": "true",
        "MLFLOW_WEBHOOK_CACHE_TTL": str(WEBHOOK_LIST_CACHE_S),
        "MLFLOW_WEBHOOK_REQUEST_TIMEOUT": "5",
        # A webhook only wakes its receiver, which polls as well: repeating a lost one for a minute would help nobody.
        "MLFLOW_WEBHOOK_REQUEST_MAX_RETRIES": "1",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    if settings.allowed_hosts:
        made["MLFLOW_SERVER_ALLOWED_HOSTS"] = ",".join(settings.allowed_hosts)
    else:
        made["MLFLOW_SERVER_ALLOWED_HOSTS"] = ",".join(
            f"{host},{host}:*" for host in ("127.0.0.1", "localhost", "[[]::1]")
        )
    if settings.ca_file:
        made["REQUESTS_CA_BUNDLE"] = str(_bundle(settings))
    if settings.allowed_origins:
        made["MLFLOW_SERVER_CORS_ALLOWED_ORIGINS"] = ",".join(settings.allowed_origins)
    # MLflow's modules read these when they are imported.
    for name in [name for name in os.environ if name.startswith(("MLFLOW_", "_MLFLOW_"))]:
        del os.environ[name]
    os.environ.update(made | _server_environment(settings))

    if settings.ca_file:
        _trust_in_webhooks(made["REQUESTS_CA_BUNDLE"])
    from mlflow.server.auth import store
    from mlflow.store.db.utils import _safe_initialize_tables, _upgrade_db, create_sqlalchemy_engine_with_retry

    if "://" not in settings.artifacts:
        Path(settings.artifacts).mkdir(parents=True, exist_ok=True)
    engine = create_sqlalchemy_engine_with_retry(settings.database_uri)
    _safe_initialize_tables(engine)
    _upgrade_db(engine)
    engine.dispose()
    forget_unreadable_webhooks(settings, key)
    store.init_db(auth_database)
    _make_users(store, settings.users)
    store.engine.dispose()
    return key


def _bundle(settings: ServerConfig) -> Path:
    """A file of the public authorities and of ca_file: what `requests` verifies webhooks and object stores by."""
    import certifi

    try:
        own = Path(settings.ca_file).read_text()
    except OSError as error:
        raise RegistryError(f"ca_file {settings.ca_file}: {error.strerror}") from None
    bundle = settings.state / "authorities.pem"
    secret_files.write(bundle, Path(certifi.where()).read_text() + own)
    return bundle


def _trust_in_webhooks(bundle: str) -> None:
    """MLflow's session for webhooks takes nothing from the environment, so it is set here."""
    from mlflow.webhooks import delivery

    make = delivery._create_webhook_session

    def trusting():
        session = make()
        session.verify = bundle
        return session

    delivery._create_webhook_session = trusting


def _make_users(store, users: tuple[User, ...]) -> None:
    """Users, passwords and rights as configured; users that were made otherwise stay as they are."""
    for user in users:
        if not store.has_user(user.name):
            store.create_user(user.name, user.password, is_admin=user.role == "admin")
        else:
            same = store.authenticate_user(user.name, user.password)
            store.update_user(user.name, password=None if same else user.password, is_admin=user.role == "admin")
        for kind in ("experiment", "registered_model"):
            store.grant_user_permission(user.name, kind, "*", "READ" if user.role == "viewer" else "MANAGE")


def forget_unreadable_webhooks(settings: ServerConfig, key: str) -> int:
    """Delete webhooks whose secret was stored under another key; the number of those.

    MLflow reads all of an event's webhooks at once: one that it cannot decrypt silences the others, and it cannot be
    listed or deleted through its interface. Whoever registered it finds it gone and registers it anew.
    """
    prefix = "sqlite:///"
    if not settings.database_uri.startswith(prefix):
        return 0
    from cryptography.fernet import Fernet, InvalidToken

    cipher = Fernet(key)
    with sqlite3.connect(settings.database_uri.removeprefix(prefix)) as database:
        unreadable = []
        for webhook, name, secret in database.execute(
            "SELECT webhook_id, name, secret FROM webhooks WHERE secret IS NOT NULL"
        ):
            try:
                cipher.decrypt(secret.encode())
            except InvalidToken:
                unreadable.append((webhook,))
                print(f"oal-registry: webhook {name} was stored under another key; forgotten", file=sys.stderr)
        database.executemany("DELETE FROM webhook_events WHERE webhook_id = ?", unreadable)
        database.executemany("DELETE FROM webhooks WHERE webhook_id = ?", unreadable)
    database.close()
    return len(unreadable)
