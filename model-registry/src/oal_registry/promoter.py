"""Who set an alias, and who opened the gate: MLflow's server writes it on the version, in tags that nobody else may
write.

MLflow knows who asks and does not keep it. The push service compares who promoted with who approves. What the registry
writes of releases and of the gate, only admins may write, of whom the registry is one.
"""

from __future__ import annotations

import json
from collections.abc import Callable

TAG = "oal.promoted_by."  # what follows is the alias
OPEN, OPENED_BY = "gate.open", "oal.gate_opened_by"  # the reason, set by a user; that user's name
OF_REGISTRY = ("oal.released_at.", "oal.bundle.", "oal.gate")
ALIAS = "/mlflow/registered-models/alias"
# Requests of MLflow's REST interface that write tags of a version.
SET_TAG, DELETE_TAG, CREATE = (f"/mlflow/model-versions/{what}" for what in ("set-tag", "delete-tag", "create"))


def create_app():
    """MLflow with logins, as `mlflow server --app-name basic-auth` serves it, with what is above."""
    from mlflow.server import app
    from mlflow.server.auth import create_app as with_logins

    served = with_logins(app)
    app.before_request(_before)  # after MLflow's own, which refuses who may not
    return served


def _before():
    """An answer that refuses, or None: MLflow goes on."""
    from flask import Response, request
    from mlflow.server.auth import store

    body = request.get_json(force=True, silent=True)
    body = json.loads(body) if isinstance(body, str) else body  # as MLflow reads it
    if not isinstance(body, dict):
        return None
    user = request.authorization.username if request.authorization is not None else ""
    if request.path.endswith((SET_TAG, DELETE_TAG, CREATE)):
        if tag := forbidden(body, lambda: bool(user) and store.get_user(user).is_admin):
            return Response(f"tag {tag} is not written by people\n", 403)
    if request.method == "POST" and user:
        if request.path.endswith(ALIAS):
            _note(body, TAG + str(body.get("alias", "")), user)
        elif request.path.endswith(SET_TAG) and body.get("key") == OPEN:
            _note(body, OPENED_BY, user)
    return None


def forbidden(body: dict, is_admin: Callable[[], bool]) -> str:
    """The tag that a request would write and may not, "" for none."""
    tags = body.get("tags") or []
    keys = [str(k) for k in (body.get("key"), *(tag.get("key") for tag in tags if isinstance(tag, dict)))]
    for key in keys:
        if key.startswith((TAG, OPENED_BY)) or (key.startswith(OF_REGISTRY) and not is_admin()):
            return key
    return ""


def _note(body: dict, tag: str, user: str) -> None:
    """Called before it is done: the registry learns of it at once, and reads both."""
    from mlflow.entities.model_registry import ModelVersionTag
    from mlflow.exceptions import MlflowException
    from mlflow.server.handlers import _get_model_registry_store

    name, version = (str(body.get(part, "")) for part in ("name", "version"))
    try:
        _get_model_registry_store().set_model_version_tag(name, version, ModelVersionTag(tag, user))
    except MlflowException:
        pass  # there is no such version: MLflow says so when it sets the alias or tag
