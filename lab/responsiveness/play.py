"""Play one cell, a test with a method and a seed, and keep what it gave under a hash of everything that it depends on.
"""
import datetime
import functools
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from evaluate import bundle
from evaluate import play as evaluation
from evaluate.methods import Method
from host import guest

from . import catalogue, figures, flent

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build/responsiveness"
#: Whose code the guest runs, or whose arithmetic the figures are.
CODE = ("loop", "channel", "server", "client", "pings", "throughput", "inside", "catalogue", "rpm", "flent", "figures")


@dataclass(frozen=True)
class Cell:
    test: str
    method: Method
    seed: int

    @property
    def name(self) -> str:
        return f"{self.test}/{self.method.name}/{self.seed}"


@functools.cache
def code() -> str:
    files = [*(HERE / f"{name}.py" for name in CODE), HERE / "requirements.txt"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@functools.cache
def libraries() -> str:
    """Folder of HTTP/2's packages, all of plain Python: the guest's interpreter is the system's."""
    venv = subprocess.run([ROOT / "platform/setup/venv", HERE / "requirements.txt"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()
    return str(next(pathlib.Path(venv).glob("lib/python3*/site-packages")))


def credentials(folder: pathlib.Path) -> dict[str, str]:
    """A server's certificate that its client trusts, of the usual kind: P-256, for the length of the lab's life."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, begin = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")]), datetime.datetime(2020, 1, 1)
    made = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(1).not_valid_before(begin).not_valid_after(begin + datetime.timedelta(days=36500))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256()))
    (folder / "server.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                                          serialization.NoEncryption()))
    return {"certificate": str(folder / "server.crt"), "key": str(folder / "server.key")}


def made_of(cell: Cell, how: evaluation.Settings) -> dict[str, str | None]:
    """Short hashes of what a cell was played with; None where it takes no part."""
    acts = cell.method.policy is not None
    return {
        "exporter": evaluation.digest(how.exporter)[:12] if acts else None,
        "policy": bundle.inputs(how.policy, numbers(cell), how.tree, None)[:12] if acts else None,
        "tree": evaluation.digest(how.tree)[:12] if acts else None
    }


def numbers(cell: Cell) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((cell.method.policy or {}).items()))


def folder(cell: Cell, how: evaluation.Settings) -> pathlib.Path:
    """Where what the cell gave is kept; its name says what it was made of."""
    inputs = [catalogue.plan(cell.test, cell.method, cell.seed), pathlib.Path(evaluation.kernel()).parent.name,
              evaluation.code(), code(), made_of(cell, how)]
    key = hashlib.sha256(json.dumps(inputs, sort_keys=True, default=str).encode()).hexdigest()[:16]
    return how.build / cell.test / cell.method.name / f"{cell.seed}-{key}"


def result(cell: Cell, how: evaluation.Settings) -> dict | None:
    """The cell's figures if it was played before with the same inputs."""
    path = folder(cell, how) / "figures.json"
    return json.loads(path.read_text()) if path.exists() else None


def prepare(cell: Cell, how: evaluation.Settings, there: pathlib.Path) -> dict:
    """The guest's plan; what it names is made in a folder."""
    plan = catalogue.plan(cell.test, cell.method, cell.seed)
    if cell.method.policy is not None:
        made = bundle.make(there, how.policy, numbers(cell), how.tree, None)
        plan |= {"exporter": str(how.exporter), "bundle": made["bundle"], "sections": made["sections"]}
    elif cell.method.act:
        raise ValueError(f"{cell.method.name}: these tests know no bounds, only policies")
    if plan["test"]["kind"] == "rpm":
        plan["test"] |= {"libraries": libraries(), **credentials(there)}
    return plan


def understand(cell: Cell, plan: dict, seen: dict, out: pathlib.Path) -> dict:
    """Write what is kept of a run beside its figures, and give these."""
    if plan["test"]["kind"] == "rpm":
        if seen["failures"]:
            raise RuntimeError(f"{cell.name}: a connection failed, so the draft ends the test: {seen['failures'][:3]}")
        (out / "probes.json").write_text(json.dumps(seen))
        return figures.of_rpm(seen, plan["test"]["direction"])
    data = flent.content(plan, seen, f"{cell.method.name}-{cell.seed}")
    flent.write(out / f"{cell.test}.flent.gz", data)
    test = plan["test"]
    return figures.of_flent(data, test["delay_s"], test["length_s"], catalogue.down(cell.test))


def play(cell: Cell, how: evaluation.Settings) -> dict:
    """Play the cell and store what it gave. RuntimeError with the guest's log where it failed."""
    before = os.times()
    how.build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cell-", dir=how.build) as name:
        there = pathlib.Path(name)
        plan = prepare(cell, how, there)
        guest.play(plan, there / "run", extra=["MAIN=responsiveness.inside"], timeout_s=evaluation.TIMEOUT_S)
        seen = json.loads((there / "run" / f"{plan['name']}.seen.json").read_text())
        kept = there / "kept"
        kept.mkdir()
        found = understand(cell, plan, seen, kept)
        truth = json.loads((there / "run" / f"{plan['name']}.truth.json").read_text())
        found |= {"queue_drops": truth["queue_drops"], **made_of(cell, how)}
        now = os.times()
        found["cpu_s"] = round(sum(now[:4]) - sum(before[:4]), 2)
        (kept / "figures.json").write_text(json.dumps(found, indent=1))
        out = folder(cell, how)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(out, ignore_errors=True)
        os.replace(kept, out)
    return found
