"""Certificates and secrets of a Compose project: made where they are missing (oal-ca), and to each service a copy of
its own, in a volume that only it mounts, owned by its user. secrets.yaml says who gets what. Runs in the image
oal-setup before everything else, at each `up`.

usage: python distribute.py SECRETS_YAML REPOSITORY STATE OUT        OAL_HOST: the name that access points know this
                                                                     host by
"""
import hashlib
import os
import re
import secrets as random
import subprocess
import sys
from pathlib import Path
from string import Template

import yaml


def passwords(state: Path) -> dict[str, str]:
    """What templates may name: clickhouse_admin_password, clickhouse_admin_sha256, push_admin_token, …"""
    values = {}
    for file in [*(state / "secrets").iterdir(), *(state / "pki").glob("*.password")]:
        if file.suffix in (".password", ".token"):
            text, name = file.read_text().strip(), re.sub(r"\W", "_", file.stem)
            values[f"{name}_{file.suffix[1:]}"] = text
            values[f"{name}_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return values


def fill(template: str, values: dict, source: Path) -> str:
    """SystemExit names what nothing fills, and `source`."""
    try:
        return Template(template).substitute(values)
    except KeyError as name:
        raise SystemExit(f"secrets: {source} names {name}, which nothing fills") from None


def key(line: str) -> str:
    """Of a line of properties or of flat YAML."""
    return re.match(r"[A-Za-z0-9._-]*", line)[0]


def rendered(repository: Path, how: dict, values: dict) -> str:
    """One entry of `render`: the template `from`, filled with `values` and the entry's own, lines with a key of `over`
    replaced by those.
    """
    values = values | how.get("values", {})

    def filled(name: str) -> str:
        return fill((repository / name).read_text(), values, repository / name)

    text = filled(how["from"])
    if over := how.get("over"):
        above = filled(over)
        keys = {key(line) for line in above.splitlines()} - {""}
        text = "\n".join(line for line in text.splitlines() if key(line) not in keys) + "\n" + above
    return text


def clickhouse_users(repository: Path, values: dict) -> dict[str, str]:
    """clickhouse/users/*.xml with the hashes of the passwords, which they would take from the server's environment."""
    def hashed(match):
        return f"<password_sha256_hex>{values[f'clickhouse_{match[1].lower()}_sha256']}</password_sha256_hex>"

    return {file.name: re.sub(r'<password_sha256_hex from_env="OAL_(\w+)_PASSWORD_SHA256"/>', hashed, file.read_text())
            for file in sorted((repository / "clickhouse" / "users").glob("*.xml"))}


def contents(service: dict, spec: dict, repository: Path, state: Path, there: Path, values: dict) -> dict[str, bytes]:
    """File name → content of one service's volume."""
    files = {
        name: (state / folder / name).read_bytes() for folder in ("pki", "secrets") for name in service.get(folder, [])
    }
    files |= {name: rendered(repository, how, values).encode() for name, how in service.get("render", {}).items()}
    if service.get("users"):
        files |= {name: text.encode() for name, text in clickhouse_users(repository, values).items()}
    for name in service.get("made", []):  # of no one else's interest: it stays in the volume
        files[name] = (there / name).read_bytes() if (there / name).exists() else random.token_urlsafe(24).encode()
    if service.get("aps"):
        aps = spec["sim"]["aps"]
        files |= {f"{ap}.{end}": (state / "pki" / f"{ap}.{end}").read_bytes() for ap in aps for end in ("crt", "key")}
        files["mac-keys"] = b"".join((state / "pki" / f"{ap}.mac-keys").read_bytes() for ap in aps)
    return files


def deliver(folder: Path, files: dict[str, bytes], uid: int) -> bool:
    """Make the folder hold just these; True if anything changed."""
    changed = False
    os.chown(folder, uid, uid)
    folder.chmod(0o500)
    for old in folder.iterdir():
        if old.name not in files:
            old.unlink()
            changed = True
    for name, data in files.items():
        file = folder / name
        if not file.exists() or file.read_bytes() != data:
            new = folder / f".{name}.new"
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o400), "wb") as out:
                out.write(data)
            os.chown(new, uid, uid)
            new.replace(file)
            changed = True
    return changed


def belongs_to_its_owner(state: Path) -> None:
    """What root has made in the state folder is of whoever made the folder."""
    owner = state.stat()
    for path in state.rglob("*"):
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def tls_values(switch: str) -> dict[str, str]:
    """What templates say with OAL_TLS on, or off when it is empty."""
    if switch not in ("on", ""):
        raise SystemExit(f"secrets: OAL_TLS is {switch!r}; it is `on`, or empty for plain connections")
    if not switch:
        return {"scheme": "http", "ssl": "", "sslmode": "disable", "if_tls": "# "}
    return {
        "scheme": "https", "ssl": "ssl", "sslmode": "verify-full&sslrootcert=/run/secrets/oal/ca.crt", "if_tls": ""
    }


def load(spec_file: Path, environment) -> dict:
    """secrets.yaml, with the name of this host from OAL_HOST, and what OAL_TLS says (not set: on)."""
    spec = yaml.safe_load(spec_file.read_text())
    if environment.get("OAL_HOST"):
        spec["values"]["host"] = environment["OAL_HOST"]
    spec["values"] |= tls_values(environment.get("OAL_TLS", "on"))
    return spec


def all_values(spec: dict, state: Path) -> dict[str, str]:
    """What every template may name."""
    values = spec["values"] | passwords(state)
    # as local's template calls them
    return values | {
        "internal_password": values["flink_internal_password"], "rest_password": values["flink_rest_password"]
    }


def main(spec_file: str, repository: str, state: str, out: str) -> None:
    spec_file, repository, state, out = Path(spec_file), Path(repository), Path(state), Path(out)
    spec = load(spec_file, os.environ)
    # A certificate for every name, also for services whose profile is off: the next `up` may have it on.
    hosts = [
        f"--hosts={name}=" + ",".join(fill(host, spec["values"], spec_file) for host in names)
        for name, names in spec["hosts"].items()
    ]
    # The root's key is written nowhere: platform/security/README.md, "The root's key".
    subprocess.run(["oal-ca", "init", str(state), "--no-root-key", *hosts], check=True)
    subprocess.run(["oal-ca", "ap", str(state), *spec["sim"]["aps"], "--site", spec["sim"]["site"]], check=True,
                   stdout=subprocess.DEVNULL)
    belongs_to_its_owner(state)
    values = all_values(spec, state)
    for name, service in spec["services"].items():
        if deliver(out / name, contents(service, spec, repository, state, out / name, values), service["uid"]):
            print(f"secrets: {name} has what it needs")


if __name__ == "__main__":
    main(*sys.argv[1:])
