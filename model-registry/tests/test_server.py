"""The real MLflow server as we set it up: who may do what, and that a start mends what it can."""

from __future__ import annotations

import json
import stat

from processes import MlflowServer, get

API = "/api/2.0/mlflow"


def call(server, user: str | None, path: str, body: dict | None = None) -> int:
    login = (user, server.passwords[user]) if user else None
    data = json.dumps(body).encode() if body is not None else None
    return get(server.url + path, login, data, {"Content-Type": "application/json"})[0]


def test_nobody_gets_anything_without_a_login(mlflow):
    for path in (
        "/",
        "/version",
        f"{API}/registered-models/search",
        f"{API}/experiments/search?max_results=1",
        "/ajax-api/2.0/mlflow/registered-models/search",
        "/api/2.0/mlflow-artifacts/artifacts",
        "/graphql",
        "/signup",
        "/metrics",
    ):
        assert get(mlflow.url + path)[0] == 401, path
    assert get(mlflow.url + f"{API}/users/create", None, b"{}", {"Content-Type": "application/json"})[0] == 401
    for user, password in (("admin", "password1234"), ("admin", "password"), ("admin", ""), ("nobody", "x" * 20)):
        assert get(mlflow.url + f"{API}/registered-models/search", (user, password))[0] == 401, user
    assert get(mlflow.url + "/health")[0] == 200


def test_roles(mlflow, owner, versions):
    assert call(mlflow, "visitor", f"{API}/registered-models/get?name=congestion") == 200
    change = {"name": "congestion", "alias": "try", "version": str(versions[0])}
    assert call(mlflow, "visitor", f"{API}/registered-models/alias", change) == 403
    assert (
        call(
            mlflow,
            "visitor",
            f"{API}/model-versions/set-tag",
            {"name": "congestion", "version": "1", "key": "retrain", "value": "requested"},
        )
        == 403
    )
    assert call(mlflow, "owner", f"{API}/registered-models/alias", change) == 200
    owner.unalias("try")
    assert call(mlflow, "owner", f"{API}/webhooks") == 403
    assert call(mlflow, "registry", f"{API}/webhooks") == 200
    assert (
        call(mlflow, "owner", f"{API}/users/create", {"username": "friend", "password": "a good long password"}) == 403
    )
    assert call(mlflow, "owner", f"{API}/users/update-admin", {"username": "owner", "is_admin": True}) == 403


def test_who_set_an_alias_is_on_the_version_and_nobody_else_writes_it(mlflow, owner, versions):
    tag = "oal.promoted_by.mine"
    version = {"name": "congestion", "version": str(versions[0])}
    assert call(mlflow, "visitor", f"{API}/registered-models/alias", {**version, "alias": "mine"}) == 403
    assert tag not in owner.tags(versions[0])
    assert call(mlflow, "owner", f"{API}/registered-models/alias", {**version, "alias": "mine"}) == 200
    assert owner.tags(versions[0])[tag] == "owner"
    assert call(mlflow, "registry", f"{API}/registered-models/alias", {**version, "alias": "mine"}) == 200
    assert owner.tags(versions[0])[tag] == "registry"
    for who in ("owner", "registry"):
        for path in (f"{API}/model-versions/set-tag", "/ajax-api/2.0/mlflow/model-versions/set-tag"):
            assert call(mlflow, who, path, {**version, "key": tag, "value": "somebody"}) == 403
        made = {"name": "congestion", "source": "x", "tags": [{"key": tag, "value": "somebody"}]}
        assert call(mlflow, who, f"{API}/model-versions/create", made) == 403
    assert call(mlflow, "owner", f"{API}/registered-models/alias", {**version, "version": "999", "alias": "x"}) == 404
    assert owner.tags(versions[0])[tag] == "registry"
    owner.unalias("mine")


def test_who_opened_the_gate_is_on_the_version_and_owners_write_nothing_of_it(mlflow, owner, admin, versions):
    path, version = f"{API}/model-versions/set-tag", {"name": "congestion", "version": str(versions[0])}
    assert call(mlflow, "visitor", path, {**version, "key": "gate.open", "value": "why"}) == 403
    assert call(mlflow, "owner", path, {**version, "key": "gate.open", "value": "why"}) == 200
    assert owner.tags(versions[0])["oal.gate_opened_by"] == "owner"
    for key, code in (("oal.gate_opened_by", 403), ("oal.gate", 200), ("oal.released_at.x", 200)):
        assert call(mlflow, "owner", path, {**version, "key": key, "value": "somebody"}) == 403, key
        assert call(mlflow, "registry", path, {**version, "key": key, "value": "somebody"}) == code, key
    for key in ("gate.open", "oal.gate", "oal.released_at.x"):
        admin("model-versions/delete-tag", {**version, "key": key})


def test_another_host_name_is_refused(mlflow):
    assert (
        get(
            mlflow.url + f"{API}/registered-models/search",
            ("owner", mlflow.passwords["owner"]),
            None,
            {"Host": "evil.example"},
        )[0]
        == 403
    )
    assert (
        get(
            mlflow.url + f"{API}/registered-models/create",
            ("owner", mlflow.passwords["owner"]),
            b"{}",
            {"Origin": "http://evil.example", "Content-Type": "application/json"},
        )[0]
        == 403
    )


def test_files_with_secrets_are_private(mlflow):
    state = mlflow.folder / "state"
    for path in (mlflow.folder / "webhook.key", state / "basic_auth.ini", state / "flask.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    for password in mlflow.passwords.values():
        assert password not in (state / "basic_auth.ini").read_text()


def test_a_start_takes_new_passwords_and_forgets_webhooks_of_a_lost_key(tmp_path):
    """Without a running server: what `prepare` leaves in the databases, three times over."""
    import subprocess
    import sys

    from processes import ENVIRONMENT

    server = MlflowServer(tmp_path)
    script = """
import sqlite3, sys
from pathlib import Path
from oal_registry import server
from cryptography.fernet import Fernet

config, password, again, key_file = sys.argv[1:]

def start(password):
    settings = server.ServerConfig.load(config)
    key = server.prepare(settings)
    from mlflow.server.auth import store
    store.init_db("sqlite:///" + str(settings.state / "auth.db"))
    database = sqlite3.connect(settings.state / "mlflow.db")
    (webhooks,) = database.execute("SELECT count(*) FROM webhooks").fetchone()
    print(store.authenticate_user("owner", password), store.get_user("registry").is_admin, webhooks)
    return key, database

key, database = start(password)
secret = Fernet(key).encrypt(b"s").decode()
columns = "webhook_id, name, url, status, secret, workspace"
row = ("1", "w", "http://x", "ACTIVE", secret, "default")
database.execute(f"INSERT INTO webhooks ({columns}) VALUES (?, ?, ?, ?, ?, ?)", row)
database.commit()
owners = Path(config).with_name("owner.password")
owners.write_text(again)
start(again)
Path(key_file).unlink()
start(again)
"""
    arguments = [server.config, server.passwords["owner"], "another good password", tmp_path / "webhook.key"]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True True 0", "True True 1", "True True 0"]
