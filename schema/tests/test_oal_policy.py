"""`policies/oal-policy`: a policy made from the template passes its check and leaves no trace; mistakes are named."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from oal_schema import manifest

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("schema/src", "schema/proto", "schema/generated", "schema/golden", "policies")
LINKED = ("ap-exporter", "stream-jobs")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """What the commands read and write, in a folder of its own; the AP's and the job's code is that of the repository.
    """
    top = tmp_path_factory.mktemp("repository")
    for name in COPIED:
        shutil.copytree(ROOT / name, top / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (ROOT / "schema").glob("*.yaml"):
        shutil.copy(path, top / "schema")
    for name in LINKED:
        (top / name).symlink_to(ROOT / name)
    return top


def run(top: Path, *command: str) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": str(top / "schema" / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=900)


def oal_policy(top: Path, *arguments: str) -> subprocess.CompletedProcess:
    return run(top, "-m", "oal_schema.oal_policy", *arguments)


def content(top: Path) -> dict[str, bytes]:
    return {str(p.relative_to(top)): p.read_bytes() for name in COPIED for p in (top / name).rglob("*") if p.is_file()}


@pytest.mark.slow  # builds the AP's evaluator and compiles the job's
def test_a_new_policy_passes_and_its_folder_is_all_there_is_to_it(copy):
    before = content(copy)
    made = oal_policy(copy, "new", "my-policy-2")
    assert made.returncode == 0, made.stderr
    again = oal_policy(copy, "new", "my-policy-2")
    assert again.returncode == 1 and "my-policy-2 is there already" in again.stderr
    alike = oal_policy(copy, "new", "another")
    assert alike.returncode == 1 and "policies another and my-policy-2 compute the same" in alike.stderr
    assert not (copy / "policies" / "another").exists()
    checked = oal_policy(copy, "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    for name in ("rwnd-fair", "my-policy-2"):
        said = [line for line in checked.stdout.splitlines() if line.startswith(f"{name}: ")]
        assert said[-1] == f"{name}: ok" and any(": C: 100 instants" in line for line in said)
        assert any(": Java: 100 instants" in line for line in said)
    assert "my-policy-2: bundle: format 2" in checked.stdout and "rwnd-fair: bundle: format 1" in checked.stdout
    listed = oal_policy(copy, "list").stdout.splitlines()
    shipped = manifest.load()
    assert sorted(line.split()[:4] for line in listed) == sorted(
        [[m.name, m.law.name, "on", m.subject] for m in shipped] + [["my-policy-2", "direct", "on", "flow"]]
    )
    assert listed[0].startswith("rwnd-fair")
    found = json.loads((copy / "schema/generated/policies.json").read_text())["policies"]
    assert {p["name"]: p["program"] for p in found} == {m.name: m.program for m in shipped} | {
        "my-policy-2": "my_policy_2"
    }

    shutil.rmtree(copy / "policies" / "my-policy-2")
    assert run(copy, "-m", "oal_schema.generate").returncode == 0
    assert content(copy) == before


@pytest.mark.parametrize(
    "name, says",
    [
        ("Example", "name 'Example'"),
        ("in-force", "not in-force"),
        ("", "name ''"),
        ("../x", "name '../x'"),
        ("rwnd-fair", "is there already"),
        ("window", "policy rwnd-fair has a program or a model window"),
        ("congestion", "has a program or a model congestion"),
    ],
)
def test_a_name_that_is_none_or_taken_is_refused(copy, name, says):
    done = oal_policy(copy, "new", "--", name)
    assert done.returncode == 1 and says in done.stderr and "Traceback" not in done.stderr


def test_wrong_usage_is_said(copy):
    assert oal_policy(copy).returncode == 2
    none = oal_policy(copy, "check", "nothing")
    assert none.returncode == 1 and "nothing: not ok: nothing/policy.yaml: cannot be read" in none.stdout


MANIFEST = """name: bad
title: A policy with mistakes
subject: flow
program: bad
label: congestion
models: [{role: class, kind: tree, registered: bad}]
law: {name: direct, values: [0, 0, 60000, 30000]}
action: rwnd
"""
FEATURES = "name: bad\nfeatures:\n  - {name: backlog, op: last, input: station_ac.backlog_bytes, group: sum}\n"
#: rwnd-fair's features under another name
SAME = (ROOT / "policies/rwnd-fair/features.yaml").read_text(encoding="utf-8")
SAME = SAME.replace("name: congestion", "name: bad", 1)
#: (changed file, old, new, what must be said)
MISTAKES = [
    ("policy.yaml", "name: bad", "name: good", "bad/policy.yaml: name good is not the folder's, bad"),
    ("policy.yaml", "action: rwnd\n", "", "bad/policy.yaml: action is missing"),
    ("policy.yaml", "subject: flow", "subject: station", "bad/policy.yaml: law 'direct' on 'station'"),
    ("policy.yaml", "30000]", "30000", "bad/policy.yaml:7: no YAML"),
    ("policy.yaml", "60000, 30000", "60000", "bad/policy.yaml: law direct has values [0, 0, 60000]; 4 of 0 to 2^40"),
    ("policy.yaml", "60000", "2000000000000", "4 of 0 to 2^40"),
    ("policy.yaml", "kind: tree", "kind: centroids", "models[0]: kind 'centroids'; one of tree, sum"),
    ("policy.yaml", "registered: bad", "registered: window", "bad/policy.yaml: registered window is that of rwnd-fair"),
    ("policy.yaml", "program: bad", "program: congestion", "bad/policy.yaml: program congestion is that of rwnd-fair"),
    ("policy.yaml", "label: congestion", "label: luck", "label makers are congestion, session"),
    ("features.yaml", "name: bad", "name: worse", "bad/features.yaml: name worse is not the manifest's program, bad"),
    ("features.yaml", "op: last", "op: least", "bad/features.yaml: feature backlog: unknown operator 'least'"),
    ("features.yaml", "backlog_bytes,", "backlog_byte,", "table station_ac has no column backlog_byte"),
    ("features.yaml", "group: sum", "group: all", "bad/features.yaml: feature backlog: group must be one of sum"),
    ("features.yaml", FEATURES, "name: bad\nfeatures: []\n", "features is a list"),
    ("features.yaml", FEATURES, "- a\n", "bad/features.yaml: a program is a name and a list of features"),
    ("features.yaml", FEATURES, "name: [", "bad/features.yaml:1: no YAML"),
    ("features.yaml", FEATURES, None, "bad/features.yaml: cannot be read: [Errno 2]"),
    ("features.yaml", FEATURES, SAME, "features.yaml of policies rwnd-fair and bad compute the same"),
    ("experiment.yaml", "", "model: {kind: knn}\n", "bad/experiment.yaml: name is missing"),
    ("experiment.yaml", "", "[1]\n", "bad/experiment.yaml: key: value is missing"),
    ("evaluate.yaml", "", "controls: [", "bad/evaluate.yaml:1: no YAML"),
    ("", "", "", "generated files are stale: "),
]
#: writes the folder anew for each mistake and checks it; prints what was said of each
CHECK = """
import contextlib, io, json, pathlib, sys
from oal_schema import manifest, oal_policy
folder = manifest.POLICIES / "bad"
said = []
for files in json.load(sys.stdin):
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, text in files.items():
        (folder / name).write_text(text)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = oal_policy.main(["check", "bad"])
    said.append([status, out.getvalue()])
for old in folder.iterdir():
    old.unlink()
folder.rmdir()
print(json.dumps(said))
"""


def test_mistakes_are_named(copy):
    """One process for all of them: reading the contract takes longer than finding a mistake."""
    good = {"policy.yaml": MANIFEST, "features.yaml": FEATURES}
    assert yaml.safe_load(MANIFEST)["name"] == "bad"
    cases = []
    for file, old, new, _ in MISTAKES:
        files = dict(good)
        if file:
            assert old in files.get(file, ""), (file, old)
            files[file] = files.get(file, "").replace(old, new or "", 1)
        cases.append({k: v for k, v in files.items() if v})
    environment = os.environ | {"PYTHONPATH": str(copy / "schema" / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        input=json.dumps(cases),
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    for (file, _, new, says), (status, said) in zip(MISTAKES, json.loads(done.stdout), strict=True):
        last = said.strip().splitlines()[-1]
        assert status == 1 and last.startswith("bad: not ok: ") and says in last, (file, new, last)
