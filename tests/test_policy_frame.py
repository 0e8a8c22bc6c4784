"""The frame's proof: a policy that is data alone goes from a folder to rows in `action`, and leaves no trace.

In a copy of the tree `policies/oal-policy new example` makes a policy with the law `direct`; play_policy.py plays it
through schema, Flink, training, registry and push service to access points in shadow; then the folder is removed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tree
import yaml

NAME = "example"
PLAY_S = 1200  # a platform starts, a model is trained, three access points follow: two minutes on an idle machine


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    return tree.copy(tmp_path_factory.mktemp("tree"), built=True)


def test_a_policy_without_code_acts_and_its_removal_leaves_no_trace(copy, tmp_path):
    tree.run(copy, "policies/oal-policy", "new", NAME)
    folder = {name for name in tree.changed(copy) if not name.startswith("schema/generated/")}
    assert folder and all(name.startswith(f"policies/{NAME}/") for name in folder), folder
    assert not [name for name in folder if name.endswith((".c", ".h"))], "the template has code"
    law = yaml.safe_load((copy / f"policies/{NAME}/policy.yaml").read_text())["law"]
    assert law["name"] == "direct"
    assert NAME in tree.run(copy, "policies/oal-policy", "check", NAME)
    tree.commit(copy, "a policy")

    try:
        done = subprocess.run([sys.executable, copy / "tests/play_policy.py", NAME, tmp_path], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PLAY_S)
    finally:
        tree.run(copy, "platform/local/oal-local", "down", "--state", tmp_path / "state")
    assert done.returncode == 0, done.stderr[-6000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["items"].get(NAME, 0) > 0 and seen["items"].get("rwnd-fair", 0) > 0, seen["items"]
    assert seen["actions"] and {a["backend"] for a in seen["actions"]} == {1}, "a replayed AP is in shadow"
    # A window in shadow is what the next ACK would say: rounded down to the scale of its client, at most 2^14.
    wrong = [a["value"] for a in seen["actions"] if not any(0 <= v - a["value"] < 1 << 14 for v in law["values"])]
    assert not wrong, f"values that the law does not have: {wrong}"
    assert seen["rejected"] == 0

    tree.run(copy, "git", "rm", "-rq", f"policies/{NAME}")
    tree.run(copy, "make", "-s", "-C", "schema", "gen")
    tree.git(copy, "add", "-A")
    left = tree.run(copy, "git", "diff", "--cached", "--name-only", "HEAD~1").split()
    assert left == [], f"traces of a policy that was removed: {left}"
