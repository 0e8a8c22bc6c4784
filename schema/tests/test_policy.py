"""Policies: the list, its checks, and files of policies/in-force."""

import json
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from oal_schema import golden_bundles as golden
from oal_schema import golden_policies, policy_file, policy_list
from oal_schema import policy as policies
from oal_schema.bundle import decode, encode
from oal_schema.bundle_wire import SIGNED, parse
from oal_schema.model import ROOT
from oal_schema.nodes import BundleError
from oal_schema.policy import ENFORCE, OFF, PREDICT_ONLY, SHADOW, Policy
from oal_schema.policy_file import PolicyError, load, read
from oal_schema.policy_folder import SHIPPED

FIELDS = policies.spec()["fields"]
LIST = (ROOT.parent / "policies" / "rwnd-fair" / "numbers.yaml").read_text()
MESSAGE = [*policy_list.HEAD, *((f["name"], f["field"]) for f in FIELDS), ("weight_port", 26), ("weight_permille", 27)]


# --- the list


def test_the_list_is_that_of_the_message():
    assert policy_list.read(LIST, MESSAGE) == policies.spec()


@pytest.mark.parametrize(
    "text, message, said",
    [
        (LIST, MESSAGE[:-1], "weights stand side by side"),
        (LIST, [*MESSAGE[:4], ("act_grade", 5), *MESSAGE[5:]], "act_class, act_grade"),
        (LIST.replace("default: 600000", "default: 30000"), MESSAGE, "ttl_us"),
        (LIST.replace("default: 20000", "default: 400000"), MESSAGE, "defaults break the rule 2 \\* step_us <= ttl_us"),
        (LIST.replace("name: hold_us", "name: ttl_us"), MESSAGE, "ttl_us"),
        (LIST.replace("low: step_us", "low: stride_us", 1), MESSAGE, "stride_us"),
    ],
)
def test_a_list_that_contradicts_itself_or_the_message_is_refused(text, message, said):
    with pytest.raises(policy_list.PolicyListError, match=said):
        policy_list.read(text, message)


PROTO = (ROOT / "proto" / "oal" / "bundle.proto").read_text()


def test_a_new_number_becomes_the_next_field_of_the_message_and_the_others_keep_theirs():
    assert policy_list.declare(LIST, PROTO) == PROTO
    line = '  - {name: patience_us, min: 0, max: 9, default: 1, unit: us, doc: "x"}\n'
    longer = LIST.replace("  # how much\n", line + "  # how much\n", 1)
    assert longer != LIST
    declared = policy_list.declare(longer, PROTO)
    assert declared.replace("  uint32 patience_us = 45;\n", "") == PROTO
    fields = {f["name"]: f["field"] for f in policy_list.read(longer, [*MESSAGE, ("patience_us", 31)])["fields"]}
    assert fields == {f["name"]: f["field"] for f in FIELDS} | {"patience_us": 31}


def test_a_number_that_was_taken_out_is_never_given_again():
    kept = re.search(r"^  reserved (.+);\n  reserved (.+);$", PROTO, re.M)
    assert [int(n) for n in kept[1].split(",")] == list(golden_policies.TAKEN_OUT)
    names = [name.strip(' "') for name in kept[2].split(",")]
    assert len(names) == len(golden_policies.TAKEN_OUT) and not set(names) & {f["name"] for f in FIELDS}
    signed = {name: data for name, data, _ in golden.cases()}
    payloads = [parse(SIGNED, signed[f"ok_policy_{name}"])["payload"] for name in ("most", "taken_out")]
    assert payloads[0] != payloads[1] and decode(payloads[0]).policy == decode(payloads[1]).policy


def test_the_json_schema_has_every_number_with_its_bounds():
    control = json.loads((ROOT / "generated" / "policy.schema.json").read_text())["properties"]["control"]
    assert {k: (v["minimum"], v["maximum"], v["default"]) for k, v in control["properties"].items()} == {
        f["name"]: (f["min"], f["max"], f["default"]) for f in FIELDS
    } and control["additionalProperties"] is False


# --- a policy in a bundle


def test_defaults_fill_what_is_not_said():
    p = policies.make("a", 1, SHADOW, {"alpha": 2}, {443: 2000, 80: 500})
    assert (
        p.control == policies.defaults() | {"alpha": 2}
        and list(p.weights.items()) == [(80, 500), (443, 2000)]
        and p.mode_name == "shadow"
    )


def test_a_bundle_gives_its_policy_back_and_two_orders_of_weights_are_one_bundle():
    one, other = (
        policies.make("a", 1, ENFORCE, weights=dict(w)) for w in ([(443, 2000), (80, 500)], [(80, 500), (443, 2000)])
    )
    assert encode(golden.bundle(policy=one)) == encode(golden.bundle(policy=other))
    back = decode(encode(golden.bundle(policy=one)))
    assert back.policy == one and back.policy_mode == ENFORCE
    assert decode(encode(golden.bundle())).policy == PREDICT_ONLY
    none = decode(encode(golden.bundle(policy=None)))
    assert none.policy is None and none.policy_mode == OFF


@pytest.mark.parametrize(
    "policy",
    [
        Policy(ENFORCE),
        Policy(SHADOW, "a", 1),
        Policy(SHADOW, "", 1),
        Policy(7),
        Policy(SHADOW, "a", 0, policies.defaults()),
        Policy(SHADOW, "a", 1, policies.defaults() | {"ttl_us": 5}),
    ],
)
def test_what_no_ap_would_take_is_not_written(policy):
    with pytest.raises(BundleError) as e:
        encode(golden.bundle(policy=policy))
    assert e.value.reason == "bad_policy"


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(st.sampled_from([f["name"] for f in FIELDS]), st.integers(0, (1 << 32) - 1), max_size=4),
    st.dictionaries(st.integers(0, 70_000), st.integers(0, 200_000), max_size=20),
)
def test_what_is_taken_is_within_bounds_and_rules(control, weights):
    try:
        p = policies.make("a", 1, ENFORCE, control, weights)
    except BundleError as e:
        assert e.reason == "bad_policy" and e.detail.split()[0] in (
            *control,
            *(r["low"] for r in policies.spec()["rules"]),
            "weight_port",
            "weight_permille",
        )
        return
    assert all(f["min"] <= p.control[f["name"]] <= f["max"] for f in FIELDS)
    assert 2 * p.control["step_us"] <= min(p.control["ttl_us"], p.control["guard_window_us"])
    assert len(p.weights) <= 16 and all(1 <= port <= 65535 and 10 <= w <= 100_000 for port, w in p.weights.items())


# --- files

GOOD = """\
name: hall
version: 3           # after the complaint of May
applies_to: site/hall-7
mode: enforce
control:
  act_queue_us: 40000
  alpha: 0
weights:
  443: 4000
"""


def write(folder, text, name="hall.yaml"):
    (folder / name).write_text(text)
    return folder / name


def test_a_file_is_read_and_what_it_does_not_say_is_the_default(tmp_path):
    one = read(write(tmp_path, GOOD))
    assert one.applies_to == "site/hall-7"
    assert one.policy == policies.make("hall", 3, ENFORCE, {"act_queue_us": 40_000, "alpha": 0}, {443: 4000})
    bare = read(write(tmp_path, "name: bare\nversion: 1\napplies_to: fleet\nmode: off\n", "bare.yaml"))
    assert bare.policy == policies.make("bare", 1, OFF), "off is a word here, no boolean"


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("alpha: 0", "alfa: 0", "hall.yaml:7: unknown number alfa"),
        ("alpha: 0", "alpha: 3", "hall.yaml:7: alpha 3; 0 to 2"),
        ("alpha: 0", "alpha: 0.5", "hall.yaml:7: alpha '0.5'; a whole number, 0 to 2"),
        ("alpha: 0", "alpha: true", "hall.yaml:7: alpha 'true'; a whole number"),
        ("alpha: 0", "alpha: -1", "hall.yaml:7: alpha '-1'; a whole number"),
        ("alpha: 0", "alpha: [1]", "hall.yaml:7: alpha is a list; a whole number"),
        ("alpha: 0", "alpha: 1_0", "hall.yaml:7: alpha '1_0'; a whole number"),
        ("alpha: 0", "alpha: 0o2", "hall.yaml:7: alpha '0o2'; a whole number"),
        ("alpha: 0", "alpha: 0\n  alpha: 1", "hall.yaml:8: alpha is there twice"),
        (
            "alpha: 0",
            "step_us: 400000",
            "hall.yaml:7: step_us 400000 is more than 300000: 2 times step_us is at most ttl_us \\(600000\\)",
        ),
        ("alpha: 0", "ttl_us: 1000001", "hall.yaml:7: ttl_us 1000001; 100000 to 1000000"),
        ("version: 3 ", "version: 0 ", "hall.yaml:2: version 0; 1 to"),
        ("version: 3 ", "revision: 3 ", "hall.yaml:2: unknown key revision"),
        ("mode: enforce", "", "hall.yaml:1: mode is missing"),
        ("mode: enforce", "mode: on", "hall.yaml:4: mode 'on'; off, shadow, enforce"),
        ("mode: enforce", "mode: enforce\nmode: shadow", "hall.yaml:5: mode is there twice"),
        ("site/hall-7", "hall-7", "hall.yaml:3: applies_to 'hall-7'; fleet, site/SITE or ap/AP_ID"),
        ("site/hall-7", "site/a/b", "hall.yaml:3: applies_to"),
        ("name: hall", "name: other", "hall.yaml:1: name other is not the file's, hall"),
        ("name: hall", "name: Hall", "hall.yaml:1: name 'Hall'; lower case"),
        ("443: 4000", "0: 4000", "hall.yaml:9: port 0; 1 to 65535"),
        ("443: 4000", "443: 9", "hall.yaml:9: weight of port 443 9; 10 to 100000"),
        ("443: 4000", "443: 4000\n  443: 9", "hall.yaml:10: 443 is there twice"),
        ("443: 4000", "\n".join(f"  {p}: 1000" for p in range(1, 18)).lstrip(), "hall.yaml:8: 17 weights; at most 16"),
        ("weights:\n  443: 4000", "weights: [443]", "hall.yaml:8: weights is a list of `key: value`"),
        ("control:", "control: {", "hall.yaml:.*: no YAML"),
        (GOOD, "", "hall.yaml:1: the file is empty"),
        (GOOD, "- a\n", "hall.yaml:1: a policy is a list"),
        (GOOD, "name: !!python/object/apply:os.system [x]\n", "hall.yaml:1: "),
    ],
)
def test_a_mistake_is_named_with_file_and_line(tmp_path, old, new, said):
    with pytest.raises(PolicyError, match=said):
        read(write(tmp_path, GOOD.replace(old, new, 1)))


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"name: \xff\n")
    with pytest.raises(PolicyError, match="a.yaml: cannot be read"):
        read(tmp_path / "a.yaml")
    with pytest.raises(PolicyError, match="b.yaml: cannot be read"):
        read(tmp_path / "b.yaml")


FLEET = "name: default\nversion: 1\napplies_to: fleet\nmode: shadow\n"


def test_the_most_specific_policy_counts(tmp_path):
    write(tmp_path, FLEET, "default.yaml")
    write(tmp_path, GOOD)
    write(tmp_path, "name: one\nversion: 1\napplies_to: ap/ap-7\nmode: off\n", "one.yaml")
    (tmp_path / "notes.txt").write_text("no policy")
    (tmp_path / "examples").mkdir()
    write(tmp_path / "examples", "no policy", "broken.yaml")
    p = load(tmp_path)
    assert [
        p.of_ap(ap, site).name
        for ap, site in (("ap-7", "hall-7"), ("ap-8", "hall-7"), ("ap-8", "hall-8"), ("ap-7", "hall-8"))
    ] == ["one", "hall", "default", "one"]
    assert (p.of("fleet").name, p.of("site/hall-7").name, p.of("site/x").name, p.of("ap/ap-7").name) == (
        "default",
        "hall",
        "default",
        "one",
    )
    assert p.narrower() == ["site/hall-7", "ap/ap-7"]


EXAMPLE = "name: example-hall\nversion: 2\napplies_to: site/hall-7\nmode: enforce\npolicy: example\n"


@pytest.fixture
def two_policies(monkeypatch):
    """As if policies/ had another one, `example`."""
    monkeypatch.setattr(policy_file, "known", lambda: {"rwnd-fair": None, "example": None})


def test_each_policy_has_files_of_its_own(tmp_path, two_policies):
    write(tmp_path, FLEET, "default.yaml")
    write(tmp_path, GOOD)
    write(tmp_path, EXAMPLE, "example-hall.yaml")
    p = load(tmp_path)
    example = p.of_policy("example")
    assert (p.of("site/hall-7").name, example.of("site/hall-7").name, example.of("site/hall-7").mode) == (
        "hall",
        "example-hall",
        ENFORCE,
    )
    assert p.of_policy("rwnd-fair") is p and example.narrower() == ["site/hall-7"] and len(p.every()) == 3
    assert [f.path.name for f in p.not_raised([policies.make("example-hall", 2, SHADOW)])] == ["example-hall.yaml"]
    for without_a_file in (example.of("fleet"), example.of("site/x"), p.of_policy("third").of("ap/ap-7")):
        assert (
            without_a_file.mode == SHADOW
            and without_a_file.control == policies.defaults()
            and without_a_file.version == 1
        )
    assert example.of("fleet").name == "example"


def test_a_file_of_a_policy_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(PolicyError, match="example-hall.yaml:5: policy 'example'; rwnd-fair"):
        read(write(tmp_path, EXAMPLE, "example-hall.yaml"))


def test_two_files_of_one_policy_and_scope_are_one_too_many(tmp_path, two_policies):
    write(tmp_path, FLEET, "default.yaml")
    write(tmp_path, EXAMPLE, "example-hall.yaml")
    write(tmp_path, EXAMPLE.replace("example-hall", "other"), "other.yaml")
    with pytest.raises(PolicyError, match="other.yaml: applies to site/hall-7, as example-hall.yaml does"):
        load(tmp_path)


def test_a_folder_is_taken_whole_or_not_and_every_mistake_is_said(tmp_path):
    with pytest.raises(PolicyError, match="no such folder"):
        load(tmp_path / "none")
    write(tmp_path, GOOD)
    with pytest.raises(PolicyError, match="no policy applies to the fleet"):
        load(tmp_path)
    write(tmp_path, FLEET, "default.yaml")
    write(tmp_path, GOOD.replace("name: hall", "name: hall2"), "hall2.yaml")
    write(tmp_path, "name: x\n", "x.yaml")
    with pytest.raises(PolicyError) as e:
        load(tmp_path)
    assert str(e.value).splitlines() == [
        "hall2.yaml: applies to site/hall-7, as hall.yaml does; one policy each",
        "x.yaml:1: version is missing",
    ]


def test_the_shipped_policies_are_good_and_the_fleet_is_in_shadow():
    shipped = load(SHIPPED)
    assert (
        set(shipped.files) == {"fleet"} and shipped.of("fleet").mode == SHADOW and shipped.of("fleet").name == "default"
    )
    example = read(SHIPPED / "examples" / "enforce.yaml")
    assert example.policy.mode == ENFORCE and example.applies_to.startswith("site/")
    for path in (*SHIPPED.glob("*.yaml"), *SHIPPED.glob("examples/*.yaml")):
        said = yaml.safe_load(path.read_text())
        assert all(read(path).policy.control[k] == v for k, v in said.get("control", {}).items())
