"""Rotation of the signing key, seen from an AP that checks what it gets against its trusted file."""

from __future__ import annotations

import numpy as np
import pytest
from oal_registry import cli, programs, signing_keys
from oal_registry.errors import RegistryError
from oal_schema import bundle, keys
from oal_schema.grant import grant
from oal_schema.nodes import BundleError
from oal_schema.tree import Tree

PROGRAM = programs.of_name("congestion")
REGISTRY = grant("registry")


def signed_with(key_file, serial: int) -> bytes:
    zeros = np.zeros(1, np.int32)
    tree = Tree(
        np.full(1, -1, np.int32),
        zeros.astype(np.int64),
        zeros,
        zeros.astype(bool),
        zeros.astype(np.uint8),
        np.zeros((1, 3), np.uint16),
        PROGRAM.feature_hash,
    )
    content = bundle.Bundle(
        serial,
        "fleet",
        "registry",
        "congestion",
        1,
        [],
        list(PROGRAM.words),
        PROGRAM.decision_interval_us,
        bundle.models_of(tree),
    )
    return bundle.sign(bundle.encode(content), keys.load(key_file))


def ap_takes(data: bytes, trusted) -> str:
    """`yes`, or the reason."""
    try:
        bundle.open_signed(data, keys.read_trusted(trusted), "ap-1", "hall")
    except BundleError as error:
        return error.reason
    return "yes"


def test_rotation_leaves_no_moment_without_a_trusted_bundle(tmp_path):
    key, trusted = tmp_path / "registry.pem", tmp_path / "trusted"
    signing_keys.make(key, "first", trusted, REGISTRY)
    assert key.stat().st_mode & 0o777 == 0o600
    before = signed_with(key, 1)
    old_file = trusted.read_text()

    signing_keys.begin(key, trusted, "second")
    signing_keys.begin(key, trusted, "second")  # interrupted and repeated: still one next key
    assert len(keys.read_trusted(trusted)) == 2
    during = signed_with(key, 2)
    assert ap_takes(before, trusted) == ap_takes(during, trusted) == "yes"

    signing_keys.switch(key, trusted)
    after = signed_with(key, 3)
    assert ap_takes(before, trusted) == ap_takes(after, trusted) == "yes"
    (tmp_path / "stale").write_text(old_file)
    assert ap_takes(after, tmp_path / "stale") == "unknown_key", "an AP that did not get the new file says why"

    signing_keys.end(key, trusted)
    assert ap_takes(after, trusted) == "yes" and ap_takes(before, trusted) == "unknown_key"
    assert not list(tmp_path.glob("registry.pem.*"))


def test_steps_out_of_order_are_refused(tmp_path):
    key, trusted, other = tmp_path / "key", tmp_path / "trusted", tmp_path / "other"
    signing_keys.make(key, "one", trusted, REGISTRY)
    signing_keys.make(tmp_path / "stranger", "two", other, REGISTRY)
    for step, said in (
        (lambda: signing_keys.switch(key, trusted), "`keys rotate begin` makes it"),
        (lambda: signing_keys.end(key, trusted), "there is no old key"),
        (lambda: signing_keys.begin(key, other, "x"), "does not hold the present key"),
        (lambda: signing_keys.make(key, "again", None, REGISTRY), "cannot be made again"),
    ):
        with pytest.raises(RegistryError, match=said):
            step()
    signing_keys.begin(key, trusted, "next")
    with pytest.raises(RegistryError, match="does not hold the next key"):
        signing_keys.switch(key, other)


def test_the_commands(tmp_path, capsys):
    key, trusted = str(tmp_path / "key"), str(tmp_path / "trusted")
    assert cli.main(["keys", "make", key, "--name", "plant-1", "--trusted", trusted]) == 0
    line = capsys.readouterr().out
    assert line.startswith("ed25519 ") and line.endswith(" plant-1 role=registry scope=fleet max_mode=enforce\n")
    assert line in open(trusted).read()
    assert cli.main(["keys", "show", key, "--name", "plant-1"]) == 0 and capsys.readouterr().out == line
    for step in ("begin", "switch", "end"):
        assert cli.main(["keys", "rotate", step, key, "--trusted", trusted, "--name", "plant-2"]) == 0
        assert "next" in capsys.readouterr().err.lower()
    assert "plant-2" in open(trusted).read() and "plant-1" not in open(trusted).read()


def test_a_rotated_key_keeps_what_it_may_sign(tmp_path, capsys):
    key, trusted = str(tmp_path / "key"), tmp_path / "trusted"
    options = ["--role", "operator", "--scope", "site/hall", "--max-mode", "shadow"]
    assert cli.main(["keys", "make", key, "--name", "hand", "--trusted", str(trusted), *options]) == 0
    for step in ("begin", "switch", "end"):
        assert cli.main(["keys", "rotate", step, key, "--trusted", str(trusted), "--name", "hand-2"]) == 0
    (held,) = keys.read_trusted(trusted).values()
    assert held.name == "hand-2" and held.grant == grant("operator", "site/hall", "shadow")
    assert cli.main(["keys", "show", key, "--role", "operator"]) == 1
    assert "narrower than fleet" in capsys.readouterr().err


def test_a_key_of_an_older_line_is_not_rotated_before_its_role_is_said(tmp_path):
    key, trusted = tmp_path / "key", tmp_path / "trusted"
    trusted.write_text(keys.public_line(keys.make(key), "old") + "\n")
    with pytest.raises(RegistryError, match="write after its name: role=registry"):
        signing_keys.begin(key, trusted, "new")
    assert ap_takes(signed_with(key, 1), trusted) == "not_permitted"
