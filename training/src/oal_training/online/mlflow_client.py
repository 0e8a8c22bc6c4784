"""The few calls of MLflow's REST interface that the trainer needs.

(MLflow's own library costs 250 MB of memory and seconds of start.)
"""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from oal_training.errors import TrainingError
from oal_training.online.config import Mlflow

TIMEOUT_S = 10


class Refused(Exception):
    """MLflow answered and would not do it: the same call again will not help."""


class Unavailable(Exception):
    """MLflow did not answer, or not now."""


class Client:
    """Speaks to one tracking server. The password is read with each call, so that it can be changed."""

    def __init__(self, config: Mlflow):
        self._config = config
        self._base = config.tracking_uri.rstrip("/")
        if urllib.parse.urlsplit(self._base).scheme not in ("http", "https"):
            raise TrainingError(f"mlflow.tracking_uri {config.tracking_uri!r} is not an http(s) address")
        try:
            self._tls = ssl.create_default_context(cafile=config.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise TrainingError(f"mlflow.ca_file {config.ca_file}: {error}") from None

    def experiment(self, name: str) -> str:
        """Id of the experiment, made when it is not there."""
        try:
            return self._api("GET", f"experiments/get-by-name?experiment_name={urllib.parse.quote(name)}")[
                "experiment"
            ]["experiment_id"]
        except Refused:
            return self._api("POST", "experiments/create", {"name": name})["experiment_id"]

    def find_run(self, experiment: str, tags: dict[str, str]) -> str | None:
        """Id of the newest run that has these tags."""
        words = " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
        runs = self._api(
            "POST", "runs/search", {"experiment_ids": [experiment], "filter": words, "max_results": 1}
        ).get("runs", [])
        return runs[0]["info"]["run_id"] if runs else None

    def create_run(self, experiment: str, name: str, start_ms: int, tags: dict[str, str]) -> str:
        """Start a run; its id."""
        body = {
            "experiment_id": experiment,
            "run_name": name,
            "start_time": start_ms,
            "tags": [{"key": k, "value": v} for k, v in tags.items()],
        }
        return self._api("POST", "runs/create", body)["run"]["info"]["run_id"]

    def finish_run(self, run_id: str, end_ms: int) -> None:
        """The run's day is over."""
        self._api("POST", "runs/update", {"run_id": run_id, "status": "FINISHED", "end_time": end_ms})

    def log_metrics(self, run_id: str, at_ms: int, step: int, metrics: dict[str, float]) -> None:
        """Metrics at one instant."""
        rows = [{"key": k, "value": v, "timestamp": at_ms, "step": step} for k, v in metrics.items()]
        self._api("POST", "runs/log-batch", {"run_id": run_id, "metrics": rows})

    def put_artifact(self, experiment: str, run_id: str, path: str, data: bytes) -> None:
        """Store a file of the run through the server's artifact proxy."""
        self._call("PUT", self._artifact(experiment, run_id, path), data, "application/octet-stream")

    def artifacts(self, run_id: str, folder: str) -> list[str]:
        """Paths of the files in a folder of the run."""
        found = self._api("GET", f"artifacts/list?run_id={run_id}&path={urllib.parse.quote(folder)}")
        return [f["path"] for f in found.get("files", [])]

    def delete_artifact(self, experiment: str, run_id: str, path: str) -> None:
        """Remove a file of the run."""
        self._call("DELETE", self._artifact(experiment, run_id, path))

    def _artifact(self, experiment: str, run_id: str, path: str) -> str:
        folder = f"{self._base}/api/2.0/mlflow-artifacts/artifacts/{experiment}/{run_id}/artifacts"
        return f"{folder}/{urllib.parse.quote(path)}"

    def _api(self, method: str, call: str, body: dict | None = None) -> dict:
        data = None if body is None else json.dumps(body).encode()
        return json.loads(self._call(method, f"{self._base}/api/2.0/mlflow/{call}", data, "application/json") or b"{}")

    def _call(self, method: str, url: str, data: bytes | None = None, kind: str = "") -> bytes:
        request = urllib.request.Request(url, data=data, method=method)
        if kind:
            request.add_header("Content-Type", kind)
        try:
            password = Path(self._config.password_file).read_text().strip()
            request.add_header(
                "Authorization", "Basic " + base64.b64encode(f"{self._config.user}:{password}".encode()).decode()
            )
            with urllib.request.urlopen(  # noqa: S310 (scheme checked above)
                request, timeout=TIMEOUT_S, context=self._tls
            ) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            text = (
                f"{method} {urllib.parse.urlsplit(url).path}: {error.code} {error.read(300).decode(errors='replace')}"
            )
            raise (Unavailable if error.code in (401, 408, 429) or error.code >= 500 else Refused)(text) from None
        except (OSError, ValueError) as error:
            raise Unavailable(f"{method} {urllib.parse.urlsplit(url).path}: {error}") from None
