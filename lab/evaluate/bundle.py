"""The bundle that OAL runs with in an evaluation: a committed tree, perhaps a window model, a policy file; signed with
a key made here.

The access points find it where they keep their last good bundle, so that no push service takes part."""
import datetime
import functools
import hashlib
import json
import pathlib

import numpy as np
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from oal_schema import keys, policy, policy_file
from oal_schema.bundle import Bundle, decode, encode, models_of, sign, split_signed
from oal_schema.bundle_law import Law
from oal_schema.grant import grant
from oal_schema.nodes import BundleError
from oal_schema.tree import Tree

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE / "models/tree.json"
POLICIES = HERE.parent.parent / "policies"
DEFAULT_POLICY = POLICIES / "in-force/default.yaml"
MODEL, SERIAL = "lab-evaluate", 1


class BundleMistake(Exception):
    """What is wrong with a file that the bundle is made of."""


def read_policy(path: pathlib.Path | None, overrides: tuple[tuple[str, int], ...]) -> policy.Policy:
    """A policy file's numbers with those of the command line over them, in mode enforce. Without a file: the defaults.
    """
    try:
        if not path:
            return policy.make("defaults", 1, policy.ENFORCE, dict(overrides))
        given = policy_file.read(path).policy
        return policy.make(given.name, given.version, policy.ENFORCE, {**given.control, **dict(overrides)},
                           given.weights)
    except (policy_file.PolicyError, BundleError) as error:
        raise BundleMistake(str(error)) from None


@functools.cache
def inputs(path: pathlib.Path | None, overrides: tuple[tuple[str, int], ...], tree: pathlib.Path,
           window: pathlib.Path | None, own: tuple[str, ...] = ()) -> str:
    """Hash of what a bundle is made of, its name and version left out. `own`: trees of single access points."""
    made = read_policy(path, overrides)
    parts = [
        json.dumps({**made.columns(), "name": "", "version": 0}, sort_keys=True).encode(),
        tree.read_bytes(),
        window.read_bytes() if window else b"", *(text.encode() for text in own)
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def credentials(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """A key that signs the bundle, and the PEM files without which an agent does not start; nobody else ever trusts
    them.
    """
    signing = keys.make(folder / "signing.pem")
    (folder / "trusted").write_text(keys.public_line(signing, "evaluate", grant("registry")) + "\n")
    key = ec.generate_private_key(ec.SECP256R1())
    name, begin = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lab")]), datetime.datetime(2020, 1, 1)
    certificate = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(
        key.public_key()).serial_number(1).not_valid_before(begin).not_valid_after(begin + datetime.timedelta(
            days=36500)).sign(key, hashes.SHA256()))
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return {
        "signing": folder / "signing.pem", "trusted": folder / "trusted", "certificate": folder / "certificate.pem",
        "key": folder / "key.pem"
    }


def models(tree_text: str, window_file: pathlib.Path | None):
    """(tree, its feature program, window model or None). The window model is taken from a signed bundle that has one,
    say of an AP's state_dir.
    """
    from oal_registry import json_tree
    tree, program = json_tree.loads(tree_text)
    window = None
    if window_file:
        content = decode(split_signed(window_file.read_bytes())[0])
        if content.window is None or content.feature_hash != program.feature_hash:
            raise BundleMistake(f"{window_file}: a bundle with a window model of the tree's feature program is needed")
        window = content.window
    return tree, program, window


def without_class(program: str):
    """(a tree that always says Good, its feature program): for a law that needs no class."""
    from oal_registry import programs
    found = next(p for p in programs.known().values() if p.name == program)
    tree = Tree(np.array([-1], np.int32), np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1, bool),
                np.zeros(1, np.uint8), np.zeros((1, 3), np.uint16), found.feature_hash)
    tree.check(len(found.features))
    return tree, found


def make_other(folder: pathlib.Path, of_policy: str, path: pathlib.Path | None,
               overrides: tuple[tuple[str, int], ...]) -> dict:
    """As `make`, of a policy whose law needs no class: its manifest says program, law, action, and whether there is one
    all the same.
    """
    if dict(overrides).get("mark_ahead"):
        raise BundleMistake(f"{of_policy} with mark_ahead needs a class model, and its bundle here has none")
    files, said = credentials(folder), yaml.safe_load((POLICIES / of_policy / "policy.yaml").read_text())
    tree, program = without_class(said["program"])
    content = Bundle(serial=SERIAL, target="fleet", source="registry", model=MODEL, version=1, rollback_to=[],
                     program=list(program.words), decision_interval_us=program.decision_interval_us,
                     models=models_of(tree, None) if said["models"] else [],
                     policy=read_policy(path, overrides),
                     law=Law(said["law"]["name"], said["subject"], said["action"]), of_policy=of_policy)
    file = folder / "bundle"
    file.write_bytes(sign(encode(content), keys.load(files["signing"])))
    return {
        "bundle": str(file), "of_policy": of_policy,
        "sections": [agent(files), {"kind": said["action"], "mode": "enforce", "backend": "bpf", "kill_file": ""}]
    }


def agent(files: dict[str, pathlib.Path]) -> dict:
    """The exporter's section `agent` with these credentials."""
    return {
        "kind": "agent", "url": "https://127.0.0.1:9", "ca": f"host:{files['certificate']}",
        "cert": f"host:{files['certificate']}", "key": f"host:{files['key']}",
        "trusted_keys": f"host:{files['trusted']}", "store_interval_s": 86400
    }


def make(folder: pathlib.Path, path: pathlib.Path | None, overrides: tuple[tuple[str, int], ...],
         tree_file: pathlib.Path, window_file: pathlib.Path | None, own: dict[str, str] | None = None) -> dict:
    """Write bundle and credentials to a folder; `bundle`: its path, `sections`: of the exporter's configuration (host:
    a file on this machine). `own`: a tree in JSON by AP; then `bundle` is a path by AP.
    """
    files = credentials(folder)
    policy_, signing = read_policy(path, overrides), keys.load(files["signing"])
    paths = {}
    for ap_id, text in (own or {"": tree_file.read_text()}).items():
        tree, program, window = models(text, window_file)
        content = Bundle(serial=SERIAL, target="fleet", source="registry", model=MODEL, version=1, rollback_to=[],
                         program=list(program.words), decision_interval_us=program.decision_interval_us,
                         models=models_of(tree, window), policy=policy_)
        paths[ap_id] = str(folder / (f"bundle-{ap_id}" if ap_id else "bundle"))
        pathlib.Path(paths[ap_id]).write_bytes(sign(encode(content), signing))
    return {
        "bundle": paths if own else paths[""],
        "sections": [agent(files), {"kind": "rwnd", "mode": "enforce", "backend": "bpf", "kill_file": ""}]
    }
