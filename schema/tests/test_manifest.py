"""Manifests of policies, and what is generated of them."""

import json
import shutil

import pytest
import yaml
from oal_schema import bundle_law, manifest
from oal_schema.bundle_law import RWND_FAIR
from oal_schema.manifest import POLICIES, ManifestError, load, of, read
from oal_schema.policy import spec
from oal_schema.program_file import program_hash, to_bytes
from oal_schema.settings import FILE, policies, settings

FAIR = yaml.safe_load((POLICIES / RWND_FAIR / "policy.yaml").read_text())
DIRECT = FAIR | {
    "name": "example",
    "program": "example",
    "law": {"name": "direct", "values": [0, 0, 60_000, 30_000]},
    "models": [{"role": "class", "kind": "tree", "registered": "example"}],
}
MODEL = DIRECT["models"][0]


def test_rwnd_fair_is_what_bundles_of_format_1_say():
    m = read(POLICIES / RWND_FAIR)
    assert (m.name, m.subject, m.action, m.law.name, m.law.values) == (RWND_FAIR, "flow", "rwnd", "fair_window", ())
    assert [(r.role, r.kind, r.optional) for r in m.models] == [("class", "tree", False), ("window", "sum", True)]
    assert manifest.MAX_MODELS == settings()["max_bundle_models"]
    assert bundle_law.CONGESTION_CONTROLS == len(spec()["congestion_controls"])


def test_the_generated_list_is_the_folders():
    found = load()
    assert list(manifest.known().values()) == found and found[0].name == RWND_FAIR
    for m, v in zip(found, policies()):
        assert {k: v[k] for k in manifest.KEYS} == m.columns()
        words = [tuple(w) for w in v["words"]]
        assert str(int.from_bytes(program_hash(words, v["decision_interval_us"])[:8], "big")) == v["feature_hash"]
        assert len(words) == len(v["feature_names"]) and all(len(w) == 12 for w in words)
        folder = FILE.parent / "features"
        assert (folder / f"{m.program}.oalf").read_bytes() == to_bytes(words, v["decision_interval_us"])
        assert [f["name"] for f in json.loads((folder / f"{m.program}.json").read_text())["features"]] == v[
            "feature_names"
        ]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"subject": "ap"},
        {"models": [MODEL, {"role": "r2", "kind": "sum", "registered": "r2"}]},
        {"models": [], "law": {"name": "backlog_cap"}},
        {"models": [MODEL | {"optional": True}], "law": {"name": "backlog_cap"}},
        {"models": [MODEL | {"optional": True}], "law": {"name": "mark"}, "subject": "station", "action": "mark"},
    ],
)
def test_good_manifests(change):
    m = of(DIRECT | change, "x")
    assert of(m.columns(), "again") == m
    assert m.release_name == "example"


@pytest.mark.parametrize(
    "change, says",
    [
        ({"name": "Example"}, r"name 'Example'; \[a-z\]"),
        ({"name": "in-force"}, "and not in-force"),
        ({"name": 7}, "name is 7; a text"),
        ({"name": "x" * 32}, "name 'xxx"),
        ({"title": ""}, "title is ''; a text"),
        ({"colour": 1}, "unknown key colour; there are name"),
        ({"subject": "room"}, "subject 'room'; one of ap, station, flow, destination"),
        ({"subject": "station"}, "law 'direct' on 'station'; known are fair_window on flow, direct on flow/ap"),
        ({"program": "a-b"}, "program 'a-b'"),
        ({"label": "luck"}, "label 'luck'; label makers are congestion, session"),
        ({"models": []}, "law direct needs a model of role class, and there are none"),
        ({"models": "tree"}, "models is a list"),
        ({"models": [MODEL] * 5}, "models is a list"),
        ({"models": ["tree"]}, r"models\[0\]: it is `key: value`, not str"),
        ({"models": [{"role": "class", "kind": "tree"}]}, r"models\[0\]: registered is missing"),
        ({"models": [MODEL, MODEL]}, r"models\[1\]: role class is there twice"),
        ({"models": [MODEL | {"role": ""}]}, "role ''; 1 to 16"),
        ({"models": [MODEL | {"role": "x" * 17}]}, "1 to 16 printable"),
        ({"models": [MODEL | {"kind": "grid"}]}, "kind 'grid'; one of tree, sum"),
        ({"models": [MODEL | {"kind": "sum"}]}, "role class is of kind tree, not sum"),
        ({"models": [MODEL | {"registered": "A b"}]}, "registered 'A b'"),
        ({"models": [MODEL | {"optional": "no"}]}, "optional 'no'; true or false"),
        ({"models": [MODEL | {"optional": True}]}, "needs a model of role class"),
        ({"models": [MODEL | {"role": "other"}]}, "models without one of role class"),
        ({"law": {"name": "mark"}}, "law 'mark' on 'flow'"),
        ({"law": {}}, "law: name is missing"),
        ({"law": "direct"}, "law: it is `key: value`"),
        ({"law": {"name": "direct"}}, r"law direct has values \[\]; 4 of 0 to 2\^40"),
        ({"law": {"name": "direct", "values": [0, 0, 1]}}, "4 of 0"),
        ({"law": {"name": "direct", "values": [0, 0, 0, -1]}}, "4 of 0 to"),
        ({"law": {"name": "direct", "values": [0, 0, 0, 1 << 41]}}, "4 of 0 to"),
        ({"law": {"name": "direct", "values": [0, 0, 0, 0.5]}}, "law.values .*; a list of whole numbers"),
        ({"law": {"name": "direct", "values": [0, 0, 0, True]}}, "a list of whole numbers"),
        ({"law": {"name": "fair_window", "values": [0, 0, 0, 0]}}, "0 of 0 to"),
        ({"action": "mark"}, "action 'mark' on 'flow'; known are rwnd"),
    ],
)
def test_a_manifest_with_a_mistake_is_refused_by_key(change, says):
    with pytest.raises(ManifestError, match=f"^here: .*{says}"):
        of(DIRECT | change, "here")


@pytest.mark.parametrize(
    "text, says",
    [
        ("name: [", "x/policy.yaml:1: no YAML"),
        ("", "not NoneType"),
        ("- 1", "not list"),
        (yaml.safe_dump({k: v for k, v in DIRECT.items() if k != "law"}), "x/policy.yaml: law is missing"),
        (yaml.safe_dump(DIRECT), "name example is not the folder's, x"),
    ],
)
def test_a_file_with_a_mistake_is_named(tmp_path, text, says):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "policy.yaml").write_text(text)
    with pytest.raises(ManifestError, match=says):
        read(tmp_path / "x")
    with pytest.raises(ManifestError, match="cannot be read"):
        read(tmp_path)


@pytest.mark.parametrize(
    "change, says",
    [
        ({}, None),
        ({"program": "congestion"}, "example/policy.yaml: program congestion is that of rwnd-fair"),
        ({"models": [MODEL | {"registered": "window"}]}, "registered window is that of rwnd-fair"),
    ],
)
def test_policies_share_no_program_and_no_model(tmp_path, change, says):
    shutil.copytree(POLICIES / RWND_FAIR, tmp_path / RWND_FAIR)
    (tmp_path / "example").mkdir()
    (tmp_path / "in-force").mkdir()
    (tmp_path / "example" / "policy.yaml").write_text(yaml.safe_dump(DIRECT | change))
    if says is None:
        assert [m.name for m in load(tmp_path)] == [RWND_FAIR, "example"]
    else:
        with pytest.raises(ManifestError, match=says):
            load(tmp_path)


def test_without_rwnd_fair_there_are_no_numbers(tmp_path):
    with pytest.raises(ManifestError, match="no policy rwnd-fair"):
        load(tmp_path)
