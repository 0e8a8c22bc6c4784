"""Is a policy right? Manifest, features, files beside them, and the same golden vectors in C, Java and Python.

A bundle of the policy is made, with random models of its roles and kinds. The AP's code (ap-exporter/tests/evaluate.c)
opens it and runs it over the golden records; the stream job's (EvaluateProgram.java) runs its features over them, but
for a policy about destinations, whose features it never computes. Both must say what the reference implementation says.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import numpy as np

from . import generate, golden_bundles, manifest, policy_file
from .bundle import Bundle, Model, encode, open_signed, sign
from .codec import decode
from .features import Interpreter
from .golden_file import read_container
from .manifest import Manifest, ManifestError
from .model import ROOT, load, program_of
from .nodes import BundleError
from .policy_folder import SHIPPED
from .program_check import what_is_wrong
from .program_compile import MISSING, Program
from .program_file import program_hash, to_bytes
from .tables import SchemaError

REPOSITORY = ROOT.parent
RECORDS = ROOT / "golden" / "features.bin"
#: nodes of a random tree, trees and nodes a tree of a random sum
TREE_NODES, SUM_TREES, SUM_NODES = 63, 5, 7
SECONDS = 600


class CheckError(Exception):
    """What is wrong with a policy, or why it could not be found out."""


def check(name: str) -> Iterator[str]:
    """What holds of a policy, one sentence each as it is found. CheckError with the first thing that does not hold."""
    try:
        m = manifest.read(manifest.POLICIES / name)
        yield f"manifest: {m.title}"
        manifest.load()
        program = program_of(load(), m)
        if wrong := what_is_wrong(program.words, program.decision_interval_us):
            raise CheckError(f"{name}/features.yaml: {wrong}")
        yield f"program {m.program}: {len(program.features)} features"
        _other_files(m)
        if stale := generate.stale(generate.outputs()):
            raise CheckError(f"generated files are stale: {', '.join(stale[:5])}; fix: make gen")
        bundle, signed = _bundle(m, program)
    except (ManifestError, SchemaError, BundleError, policy_file.PolicyError) as e:
        raise CheckError(str(e)) from None
    yield f"bundle: format {bundle.format}, {len(signed)} bytes"
    yield from _golden(bundle, program, signed)


def _other_files(m: Manifest) -> None:
    """Files that other stages read closer: here only that they are what they should be."""
    policy_file.load(SHIPPED)
    for file, keys in (
        ("experiment.yaml", ("name", "model")),
        ("window.yaml", ("flow_inputs", "xgboost")),
        ("evaluate.yaml", ("controls", "queues", "acts")),
    ):
        path = manifest.POLICIES / m.name / file
        if not path.exists():
            continue
        found = manifest.read_yaml(path)
        if not isinstance(found, dict) or (missing := [k for k in keys if k not in found]):
            raise CheckError(f"{m.name}/{file}: {missing[0] if isinstance(found, dict) else 'key: value'} is missing")


def _bundle(m: Manifest, program: Program) -> tuple[Bundle, bytes]:
    """A bundle of the policy with random models, as it is opened, and signed."""
    n, hash_ = len(program.words), int.from_bytes(program_hash(program.words, program.decision_interval_us)[:8], "big")
    made = {
        "tree": lambda seed: golden_bundles.random_tree(seed, TREE_NODES, hash_, n_features=n),
        "sum": lambda seed: golden_bundles.random_window(seed, SUM_TREES, SUM_NODES, hash_, n_features=n),
    }
    models = [Model(role.role, made[role.kind](i)) for i, role in enumerate(m.models)]
    content = Bundle(
        golden_bundles.SERIAL,
        "fleet",
        "registry",
        m.release_name,
        1,
        [],
        list(program.words),
        program.decision_interval_us,
        models,
        law=m.law,
        of_policy=m.name,
    )
    signed = sign(encode(content), golden_bundles.KEY)
    trusted = golden_bundles.TRUSTED
    return open_signed(signed, trusted, "ap-1", "lab")[0], signed


def _golden(bundle: Bundle, program: Program, signed: bytes) -> Iterator[str]:
    want, leaves = _reference(bundle, program)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "bundle").write_bytes(signed)
        (Path(folder) / "program.oalf").write_bytes(to_bytes(program.words, program.decision_interval_us))
        said = _run([_c_program(), f"{folder}/bundle", RECORDS], "C").splitlines()
        _compare("C", said, [f"{line} {leaf}".rstrip() for line, leaf in zip(want, leaves)])
        yield f"C: {len(said)} instants, features and leaves as the reference says"
        if bundle.law.subject == "destination":
            return  # on hosts alone: of one row by itself, which the stream job never computes
        with _java_classes() as classes:
            java = ["java", "-cp", classes, "oal.stream.feature.EvaluateProgram", f"{folder}/program.oalf", RECORDS]
            said = _run(java, "Java").splitlines()
        _compare("Java", said, want)
        yield f"Java: {len(said)} instants, features as the reference says"


def _reference(bundle: Bundle, program: Program) -> tuple[list[str], list[str]]:
    """(a line of features for each instant, the trees' leaves of each instant)."""
    interpreter, batches = Interpreter(program.words), {}
    for topic, data in read_container(RECORDS.read_bytes()):
        b = decode(topic, data)
        batches.setdefault(b.header["t0_us"], []).append(b)
    found = [one for group in batches.values() for one in interpreter.feed(*group)]
    x = np.array([values for _, values in found], np.int64)
    trees = [(m.role, m.table.apply(x)) for m in bundle.models if m.kind.name == "tree"]
    lines = [f"{instant} " + " ".join("-" if v == MISSING else str(v) for v in values) for instant, values in found]
    return lines, [" ".join(f"{role}={leaf[i]}" for role, leaf in trees) for i in range(len(found))]


def _compare(who: str, said: list[str], want: list[str]) -> None:
    if len(said) != len(want):
        raise CheckError(f"{who} gives {len(said)} instants, the reference {len(want)}")
    for i, (a, b) in enumerate(zip(said, want)):
        if a != b:
            at = next((k for k, (x, y) in enumerate(zip(a.split(), b.split())) if x != y), -1)
            raise CheckError(f"{who} differs at instant {i}, value {at}: {a.split()[at]}, not {b.split()[at]}")


@lru_cache(maxsize=1)
def _c_program() -> Path:
    """The AP's evaluator, built where ap-exporter builds."""
    folder = REPOSITORY / "ap-exporter"
    _run(["make", "--no-print-directory", "-s", "-C", folder, "build/opt/evaluate"], "building the AP's evaluator")
    return folder / "build" / "opt" / "evaluate"


@contextmanager
def _java_classes() -> Iterator[str]:
    """Folder with the stream job's interpreter, compiled without its libraries."""
    path = os.pathsep.join(str(REPOSITORY / p) for p in ("schema/generated/java", "stream-jobs/src/main/java"))
    main = REPOSITORY / "stream-jobs/src/main/java/oal/stream/feature/EvaluateProgram.java"
    with tempfile.TemporaryDirectory() as folder:
        _run(["javac", "-nowarn", "-d", folder, "-sourcepath", path, main], "compiling the job's interpreter")
        yield folder


def _run(command: list, what: str) -> str:
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=SECONDS)
    except FileNotFoundError as e:
        raise CheckError(f"{what}: {e.filename} is not installed") from None
    except subprocess.TimeoutExpired:
        raise CheckError(f"{what}: took longer than {SECONDS} s") from None
    if done.returncode:
        raise CheckError(f"{what}: exit status {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def run(names: list[str], say: Callable[[str], None]) -> int:
    """Check policies by name and say what is found. 0, or 1 when something is wrong."""
    wrong = 0
    for name in names:
        try:
            for found in check(name):
                say(f"{name}: {found}")
            say(f"{name}: ok")
        except CheckError as e:
            say(f"{name}: not ok: {e}")
            wrong = 1
    return wrong
