"""The command line on files: import, export, predict; what it says when it cannot."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from oal_registry import cli, features_csv, programs
from oal_schema import bundle, keys
from oal_schema.tree import Tree

PROGRAM = programs.of_name("congestion")
N = len(PROGRAM.features)
TEXT = "0,0,backlog_bytes,1000,0|0,1,leaf,0,0|0,2,txq_drops,-4.5,0|2,3,leaf,0,2|2,4,leaf,0,3\n"


@pytest.fixture
def run(capsys):
    def run(*arguments) -> tuple[int, str, str]:
        code = cli.main([str(a) for a in arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "tree.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def signed(tmp_path):
    """A bundle with a tree that text cannot hold wholly."""
    tree = Tree(
        np.array([0, -1, -1], np.int32),
        np.array([7, 0, 0]),
        np.array([2, 0, 0], np.int32),
        np.array([True, False, False]),
        np.array([0, 1, 3], np.uint8),
        np.array([[0, 0, 0], [600, 100, 0], [0, 300, 700]], np.uint16),
        PROGRAM.feature_hash,
    )
    payload = bundle.encode(
        bundle.Bundle(
            1,
            "fleet",
            "registry",
            "congestion",
            3,
            [],
            list(PROGRAM.words),
            PROGRAM.decision_interval_us,
            bundle.models_of(tree),
        )
    )
    path = tmp_path / "tree.bundle"
    path.write_bytes(bundle.sign(payload, keys.make(tmp_path / "key.pem")))
    return path


def test_import_gives_json_that_predict_and_export_take(run, text_file, tmp_path):
    code, out, said = run("import", text_file)
    assert code == 0 and said == "oal-registry import: 5 nodes over the features of congestion\n"
    assert json.loads(out)["threshold"][2] == -5
    (tmp_path / "tree.json").write_text(out)
    assert run("export", tmp_path / "tree.json")[1] == TEXT.replace("-4.5", "-5")
    assert run("export", "--json", text_file)[1] == out
    code, seen, _ = run("export", "--view", "--depth", 1, text_file)
    assert code == 0 and " ≤ " in seen.splitlines()[0] and "Good" in seen
    assert run("export", "--picture", tmp_path / "tree.png", text_file)[0] == 0
    assert (tmp_path / "tree.png").read_bytes().startswith(b"\x89PNG")


def test_predict_takes_text_json_and_bundles(run, text_file, signed, tmp_path):
    table = tmp_path / "features.csv"
    names = ["ap_id", *reversed(PROGRAM.features)]
    rows = [
        {"backlog_bytes": 1000},
        {"backlog_bytes": 1001, "txq_drops": -5},
        {"backlog_bytes": 1001, "txq_drops": "-4.0"},
        {"backlog_bytes": ""},
    ]
    table.write_text(
        "\n".join(
            [
                ",".join(names),
                *(",".join(str(row.get(n, "ap-1" if n == "ap_id" else 0)) for n in names) for row in rows),
            ]
        )
        + "\n"
    )
    header = "leaf,class,class_name,congested_permille\n"
    assert run("predict", "--tree", text_file, table) == (
        0,
        header + "1,0,Good,0\n3,2,Poor,1000\n4,3,Bad,1000\n1,0,Good,0\n",
        "",
    )
    assert run("predict", "--tree", signed, table)[1] == header + "2,3,Bad,1000\n" * 4
    code, out, said = run("export", signed)
    assert out == "0,0,backlog_bytes,7,0|0,1,leaf,0,1|0,2,leaf,0,3\n"
    assert "1 nodes send a missing value right" in said and "probabilities" in said


def test_predict_agrees_with_the_tree_on_many_rows(text_file, run, tmp_path):
    x = np.random.default_rng(1).integers(-(2**62), 2**62, (45_000, N))
    x[:, 0] %= 2000
    x[:, 5] %= 10
    table = tmp_path / "many.csv"
    np.savetxt(table, x, fmt="%d", delimiter=",", header=",".join(PROGRAM.features), comments="")
    lines = run("predict", "--tree", text_file, table)[1].splitlines()[1:]
    expected = np.where(x[:, 0] <= 1000, 0, np.where(x[:, 5] <= -5, 2, 3))
    assert [int(line.split(",")[1]) for line in lines] == expected.tolist()


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "names none of the features"),
        ("a,b\n1,2\n", "names none of the features"),
        ("backlog_bytes\n1\n", f"no column for {N - 1} features"),
        (
            ",".join(PROGRAM.features) + "\n" + ",".join(["1"] * (N - 1)) + "\n",
            f"line 2: {N - 1} cells under {N} columns",
        ),
        (
            ",".join(PROGRAM.features) + "\n" + ",".join(["1"] * (N - 1) + ["1.5"]) + "\n",
            "line 2, column .*: `1.5` is not an integer of 64 bits",
        ),
        (
            ",".join(PROGRAM.features) + "\n" + ",".join(["1"] * (N - 1) + ["9223372036854775808"]) + "\n",
            "is not an integer of 64 bits",
        ),
        (",".join([*PROGRAM.features, "ap_id", "ap_id"]) + "\n", "a column is there twice"),
    ],
)
def test_a_bad_csv_is_refused_with_its_place(text, said):
    with pytest.raises(features_csv.RegistryError, match=said):
        list(features_csv.read(io.StringIO(text), PROGRAM.features))


def test_messages_instead_of_tracebacks(run, tmp_path, text_file):
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\x00\xff" * 50)
    for arguments, said in (
        (("predict", "--tree", garbage, "-"), "is neither text records nor JSON nor a bundle"),
        (("predict", "--tree", tmp_path / "none", "-"), "No such file"),
        (("import", garbage), "is not ASCII text"),
        (("import", "--program", "none", text_file), "no feature program none; there are congestion"),
        (("export", "congestion/3"), "name the configuration of `serve` with --config"),
        (("serve", "--config", tmp_path / "none.yaml"), "cannot read the configuration"),
        (("server", "--config", text_file), "must be a mapping of settings"),
        (("keys", "show", garbage), "not an unencrypted private key in PEM"),
    ):
        code, _, err = run(*arguments)
        assert code == 1 and said in err and err.startswith(f"oal-registry {arguments[0]}: "), err
    (tmp_path / "bad.json").write_text('{"format": "oal-tree/1", "feature_program": "00"}')
    assert "not a tree in JSON" in run("predict", "--tree", tmp_path / "bad.json", "-")[2]
    (tmp_path / "deep.json").write_text('{"feature":' + "[" * 200_000)
    code, _, err = run("predict", "--tree", tmp_path / "deep.json", "-")
    assert code == 1 and "nested too deeply" in err
