"""What a client of a running instance needs of each service: addresses, credentials, and calls.

Each takes the instance (platform.Platform), of which it uses `state`, `settings` and `issue_certificates`.
"""
import base64
import json
import urllib.error
import urllib.request

from oal_local import clickhouse, flink, kafka, mlflow, passwords, pki, push
from oal_local.errors import PlatformError
from oal_local.paths import write_private


class Kafka:
    """What a client of this instance's Kafka needs."""

    def __init__(self, platform):
        self._platform = platform

    @property
    def bootstrap(self) -> str:
        return kafka.bootstrap(self._platform.settings)

    def client(self, name: str) -> dict:
        """librdkafka options for a role (admin, stream-jobs, trainer, viewer) or an AP whose certificate was issued."""
        return kafka.client(self._platform.state, self._platform.settings, name)

    def java_client(self, name: str) -> dict:
        return kafka.java_client(self._platform.state, self._platform.settings, name)

    def ap(self, ap_id: str, site: str = "", plays: int = 1) -> dict:
        """librdkafka options of an AP; issues its certificate when there is none. Who plays several has their quota."""
        self._platform.issue_certificates(ap_id, site=site)
        if plays > 1:
            kafka.widen_quota(self._platform.state, self._platform.settings, ap_id, plays)
        return self.client(ap_id)

    def mac_keys(self, name: str, ap_ids, site: str):
        """A file for an exporter's option mac_keys, with the batch keys of these APs at a site."""
        state = self._platform.state
        file = state.agents / f"{name}.mac-keys"
        write_private(file, pki.run(state, "mac-keys", *ap_ids, "--site", site))
        return file


class ClickHouse:
    def __init__(self, platform):
        self._platform = platform

    @property
    def http_url(self) -> str:
        return clickhouse.url(self._platform.settings)

    def password(self, user: str) -> str:
        return passwords.read(self._platform.state, user)

    def password_file(self, user: str):
        return passwords.file(self._platform.state, user)

    def query(self, sql: str, user: str = "admin", timeout_s: float = 60) -> str:
        return clickhouse.query(self._platform.state, self._platform.settings, sql, user, timeout_s)

    def rows(self, sql: str, user: str = "admin") -> list[dict]:
        """The answer's rows, decoded; 64-bit numbers are numbers."""
        answer = self.query(f"{sql} FORMAT JSONEachRow SETTINGS output_format_json_quote_64bit_integers = 0", user)
        return [json.loads(line) for line in answer.splitlines()]


class Flink:
    def __init__(self, platform):
        self._platform = platform

    @property
    def rest_url(self) -> str:
        return flink.rest_url(self._platform.settings)

    def get(self, path: str):
        """A GET of the REST interface, decoded."""
        return flink.get(self._platform.state, self._platform.settings, path)

    def completed_checkpoints(self) -> int:
        """Of the present run of the JobManager; 0 while it is not there."""
        try:
            jobs = self.get("/jobs/overview")["jobs"]
            return sum(self.get(f"/jobs/{job['jid']}/checkpoints")["counts"]["completed"] for job in jobs)
        except (OSError, ValueError, KeyError):
            return 0


class MLflow:
    def __init__(self, platform):
        self._platform = platform

    @property
    def url(self) -> str:
        return mlflow.url(self._platform.settings)

    def password_file(self, user: str = "admin"):
        return passwords.file(self._platform.state, user, "mlflow")

    def password(self, user: str = "admin") -> str:
        return passwords.read(self._platform.state, user, "mlflow")

    def api(self, path: str, body: dict | None = None, method: str | None = None, user: str = "admin") -> dict:
        """A call of MLflow's REST interface, `path` below /api/2.0/mlflow/; PlatformError with MLflow's words when it
        refuses.
        """
        return call(f"{self.url}/api/2.0/mlflow/{path}", body, method, {"Authorization": "Basic " + base64.b64encode(
            f"{user}:{self.password(user)}".encode()).decode()})


class Push:
    def __init__(self, platform):
        self._platform = platform

    @property
    def ap_url(self) -> str:
        return push.ap_url(self._platform.settings)

    @property
    def admin_url(self) -> str:
        return push.admin_url(self._platform.settings)

    @property
    def token_file(self):
        return passwords.token_file(self._platform.state, "push-admin.token")

    def get(self, path: str, body: dict | None = None, method: str | None = None, token_file=None):
        """A call of the admin interface, decoded; as admin, or whoever's token is in the file."""
        return call(self.admin_url + path, body, method,
                    {"Authorization": f"Bearer {(token_file or self.token_file).read_text().strip()}"})

    def approve(self, rollout: str, reason: str) -> dict:
        """Let a rollout reach more than a canary, as the user who does nothing else."""
        return self.get(f"/v1/rollouts/{rollout}/approve", {"reason": reason}, "POST",
                        passwords.token_file(self._platform.state, push.APPROVER_TOKEN))


def call(url: str, body: dict | None, method: str | None, headers: dict, timeout_s: float = 60):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method,
                                     headers=headers | ({"Content-Type": "application/json"} if data else {}))
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        raise PlatformError(
            f"{request.get_method()} {url}: {error.code} {error.read().decode(errors='replace')[:2000]}") from None
