#!/usr/bin/env python3
"""Make what is missing of the platform's keys and passwords (`oal-ca init`), and keep them as Secrets of this
namespace.

The whole state folder is one Secret, which no pod but this one mounts; the others are parts of it, one for each use.
Run at every install and upgrade: what is there stays, what lapses is made anew. The key of the root that a first
install makes is written nowhere; one that is in the Secret, of an earlier version, stays and is warned about. Standard
library only.

usage: publish_secrets.py PREFIX [--certificates] [--hosts NAME=HOST,…]… [--fill NAME=FILE --label KEY=VALUE]
       --certificates: those of services too, without cert-manager
       --fill: Secret PREFIX-NAME of FILE, in which $__file{…/KEY} becomes what the key of PREFIX-secrets holds
"""
import argparse
import base64
import hashlib
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

ACCOUNT = Path(os.environ.get("OAL_ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount"))
SERVICES = ("broker", "admin", "stream-jobs", "trainer", "model-registry", "deploy", "viewer", "transactions",
            "clickhouse", "postgres", "mlflow", "jolokia")
FLINK = ("flink-internal.p12", "flink-internal.password", "flink-rest.p12", "flink-rest.password",
         "flink-rest-trust.p12", "operator.crt", "operator.key", "ca.crt")


class Api:
    """The Secrets of one namespace."""

    def __init__(self):
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        self.url = f"https://{host}:{port}/api/v1/namespaces/{(ACCOUNT / 'namespace').read_text().strip()}/secrets"
        self.context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))

    def call(self, method: str, name: str = "", body: dict | None = None) -> dict | None:
        """The answer; None when there is no such Secret."""
        request = urllib.request.Request(
            self.url + (f"/{name}" if name else ""), method=method, data=json.dumps(body).encode() if body else None,
            headers={
                "Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}", "Content-Type": "application/json"
            })
        try:
            with urllib.request.urlopen(request, timeout=30, context=self.context) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise SystemExit(
                f"publish_secrets: {method} of Secret {name or body['metadata']['name']}:"
                f" {error.read().decode(errors='replace')[:500]}"
            ) from None

    def read(self, name: str) -> dict[str, bytes]:
        found = self.call("GET", name) or {}
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}

    def write(self, name: str, data: dict[str, bytes], more_labels: dict[str, str] | None = None) -> bool:
        """True when the Secret was not so before. Labels are given to one that is made."""
        found = self.call("GET", name)
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        if found is None:
            labels = {
                "app.kubernetes.io/name": "oal", "app.kubernetes.io/part-of": "oal",
                "app.kubernetes.io/component": "secrets", "app.kubernetes.io/instance": os.environ["OAL_INSTANCE"]
            } | (more_labels or {})
            self.call(
                "POST", body={
                    "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                    "metadata": {"name": name, "labels": labels}, "data": encoded
                })
            return True
        if found.get("data") == encoded:
            return False
        self.call("PUT", name, found | {"data": encoded})
        return True


def restore(folder: Path, state: dict[str, bytes]) -> None:
    """Keys are `pki.ca.crt` for pki/ca.crt: a Secret's keys hold no slash."""
    for key, content in state.items():
        part, _, name = key.partition(".")
        (folder / part).mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(folder / part / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)


def collected(folder: Path) -> dict[str, bytes]:
    return {
        f"{part}.{file.name}": file.read_bytes() for part in ("pki", "secrets")
        for file in sorted((folder / part).iterdir()) if file.is_file()
    }


def passfile(user: str, password: bytes) -> bytes:
    """A line of libpq's password file, for any server."""
    return f"*:*:*:{user}:".encode() + password.strip().replace(b"\\", b"\\\\").replace(b":", b"\\:") + b"\n"


def admin_users(token: bytes) -> bytes:
    """The push service's user who approves, as `oal-deploy user` would print it."""
    return f"approver approver {hashlib.sha256(token.strip()).hexdigest()}\n".encode()


def tls(pki: Path, name: str) -> dict[str, bytes]:
    """The keys that cert-manager uses."""
    certificate, key = (pki / f"{name}.crt").read_bytes(), (pki / f"{name}.key").read_bytes()
    return {
        "tls.crt": certificate, "tls.key": key, "tls-combined.pem": key + certificate,
        "ca.crt": (pki / "ca.crt").read_bytes()
    }


def secrets(folder: Path, certificates: bool) -> dict[str, dict[str, bytes]]:
    """Name without prefix → content."""
    pki = folder / "pki"
    passwords = {file.name: file.read_bytes() for file in sorted((folder / "secrets").iterdir()) if file.is_file()}
    for user in ("mlflow", "push"):
        passwords[f"{user}.pgpass"] = passfile(user, passwords[f"postgres-{user}.password"])
    passwords["admin-users"] = admin_users(passwords["push-approver.token"])
    made = {"secrets": passwords | {"bundle-keys.txt": (pki / "bundle-keys.txt").read_bytes()},
            "flink": {name: (pki / name).read_bytes() for name in FLINK}}
    if certificates:
        made |= {f"tls-{name}": tls(pki, name) for name in SERVICES} | {"ap-ca": tls(pki, "ap-ca")}
    return made


def filled(file: Path, known: dict[str, bytes]) -> bytes:
    """The YAML with what Grafana elsewhere could read from no file: passwords, and the authority's certificate."""
    def content(found: re.Match) -> str:
        return json.dumps(known[Path(found[1]).name].decode().strip())
    return re.sub(r"\$__file\{([^}]+)\}", content, file.read_text()).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix")
    parser.add_argument("--certificates", action="store_true")
    parser.add_argument("--hosts", action="append", default=[])
    parser.add_argument("--fill")
    parser.add_argument("--label", default="")
    options = parser.parse_args()
    api = Api()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "state"
        folder.mkdir(mode=0o700)
        restore(folder, api.read(f"{options.prefix}-state"))
        done = subprocess.run([
            *os.environ.get("OAL_CA", "oal-ca").split(), "init",
            str(folder), "--no-root-key", *(word for hosts in options.hosts for word in ("--hosts", hosts))
        ])
        if done.returncode != 0:
            sys.exit(f"publish_secrets: oal-ca init ended with {done.returncode}; nothing was changed")
        # The whole first: should this end in between, the next run makes the parts of the same keys.
        changed = [
            name for name, data in ({"state": collected(folder)} | secrets(folder, options.certificates)).items()
            if api.write(f"{options.prefix}-{name}", data)
        ]
        if options.fill:
            name, _, file = options.fill.partition("=")
            key, _, value = options.label.partition("=")
            known = secrets(folder, False)["secrets"] | {"ca.crt": (folder / "pki" / "ca.crt").read_bytes()}
            if api.write(f"{options.prefix}-{name}", {Path(file).name: filled(Path(file), known)}, {key: value}):
                changed.append(name)
    print(
        f"publish_secrets: {', '.join(f'{options.prefix}-{name}' for name in changed) or 'every Secret is as it was'}")


if __name__ == "__main__":
    main()
