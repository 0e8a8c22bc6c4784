"""Who set an alias: MLflow's server writes it on the version, in a tag that nobody else may write.

MLflow knows who asks and does not keep it. The push service compares it with who approves.
"""

from __future__ import annotations

import json

TAG = "oal.promoted_by."  # what follows is the alias
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

    body = request.get_json(force=True, silent=True)
    body = json.loads(body) if isinstance(body, str) else body  # as MLflow reads it
    if not isinstance(body, dict):
        return None
    if request.path.endswith((SET_TAG, DELETE_TAG, CREATE)) and forbidden(body):
        return Response(f"tags {TAG}* are written by the server alone\n", 403)
    if request.method == "POST" and request.path.endswith(ALIAS) and request.authorization is not None:
        _note(body, request.authorization.username)
    return None


def forbidden(body: dict) -> bool:
    """Does a request write a tag that says who promoted?"""
    tags = body.get("tags") or []
    keys = [body.get("key"), *(tag.get("key") for tag in tags if isinstance(tag, dict))]
    return any(str(key).startswith(TAG) for key in keys)


def _note(body: dict, user: str) -> None:
    """Before the alias is set: the registry is told of that at once, and reads both."""
    from mlflow.entities.model_registry import ModelVersionTag
    from mlflow.exceptions import MlflowException
    from mlflow.server.handlers import _get_model_registry_store

    name, version, alias = (str(body.get(part, "")) for part in ("name", "version", "alias"))
    try:
        _get_model_registry_store().set_model_version_tag(name, version, ModelVersionTag(TAG + alias, user))
    except MlflowException:
        pass  # there is no such version: MLflow says so when it sets the alias
