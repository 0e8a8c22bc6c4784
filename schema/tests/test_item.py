"""Training items: the contract's fields, the golden vectors, and what is refused by which field."""

import json

import pytest
import yaml
from oal_schema import golden_items, item, messages
from oal_schema.model import ROOT
from oal_schema.settings import generated

GOLDEN = ROOT / "golden"


def golden(name: str) -> list[str]:
    return (GOLDEN / name).read_text().splitlines()


def test_the_class_has_the_fields_of_the_contract_in_its_order():
    names = [f["name"] for f in generated()["messages"]["training_item"]["fields"]]
    assert [item.ATTRIBUTES.get(n, n) for n in names] == list(item.Item.__dataclass_fields__)


def test_golden_items_are_read_as_they_were_meant():
    found = list(item.lines(GOLDEN / "items.jsonl"))
    assert found == golden_items.items()
    for one, line in zip(found, golden("items.txt"), strict=True):
        ap_id, site, *numbers = line.split(" ")
        loss = numbers.pop(6)
        assert (one.ap_id, one.site or "-", one.loss_ratio) == (ap_id, site, float(loss))
        assert [
            one.ts_us,
            one.boot_id,
            one.feature_hash,
            one.horizon_us,
            one.class_now,
            one.truth,
            one.offered_pkts,
            int(one.complete),
            one.loss_permille_resent,
            one.loss_permille_now_resent,
            one.since_drop_us,
            one.until_drop_us,
            *one.features,
        ] == list(map(int, numbers))


def test_items_of_older_jobs_say_that_they_do_not_know_of_drops():
    later = golden_items.LATER
    old = {k: v for k, v in item.as_record(golden_items.items()[0]).items() if k not in later}
    assert [getattr(item.from_dict(old), name) for name in later] == [-1] * 4


def test_golden_items_that_lacked_input_are_read_as_they_were_meant():
    found = [item.parse(line) for line in golden("items.lacking.jsonl")]
    assert found == golden_items.lacking_items()
    assert all(one.lacked_input and not one.complete for one in found)
    assert not any(item.parse(line).lacked_input for line in golden("items.jsonl"))  # of jobs older than the field
    assert "lacked_input" not in item.as_record(golden_items.items()[0])


def test_golden_items_under_control_are_read_as_they_were_meant():
    found = [item.parse(line) for line in golden("items.controlled.jsonl")]
    assert found == golden_items.controlled_items()
    assert all(one.under_control and not one.complete for one in found)
    assert not any(item.parse(line).under_control for line in golden("items.jsonl"))  # of jobs older than the field
    assert "under_control" not in item.as_record(golden_items.items()[0])


def test_golden_items_of_other_policies_are_read_as_they_were_meant():
    found = list(item.lines(GOLDEN / "items.policies.jsonl"))
    assert found == golden_items.other_items()
    assert [one.policy for one in found] == [line.split(" ")[0] for line in golden("items.policies.txt")]


def test_an_item_without_a_policy_is_of_rwnd_fair_and_is_written_without():
    assert {one.policy for one in item.lines(GOLDEN / "items.jsonl")} == {"rwnd-fair"}
    assert "policy" not in item.as_record(golden_items.items()[0])


@pytest.mark.parametrize("policy", ["", 7, None])
def test_what_is_no_policy_is_refused(policy):
    with pytest.raises(item.BadItem, match="policy"):
        item.from_dict(item.as_record(golden_items.items()[0]) | {"policy": policy})


def test_what_is_written_is_what_is_read():
    for line in golden("items.jsonl") + golden("items.policies.jsonl") + golden("items.lacking.jsonl"):
        assert item.dumps(item.parse(line)) == line


def test_later_fields_other_orders_and_blanks_are_read():
    assert [item.parse(line) for line in golden("items.read.jsonl")] == golden_items.items()[:2]


def test_a_record_without_a_site_has_none():
    record = item.as_record(golden_items.items()[0])
    del record["site"]
    assert item.from_dict(record).site == ""


@pytest.mark.parametrize(
    ("line", "field"), zip(golden("items.refused.jsonl"), golden("items.refused.txt"), strict=True)
)
def test_what_is_no_item_is_refused_by_its_field(line, field):
    with pytest.raises(item.BadItem, match="JSON" if field == "-" else field):
        item.parse(line)


def test_a_file_is_refused_by_its_line(tmp_path):
    good = golden("items.jsonl")[0]
    (tmp_path / "x.jsonl").write_text(f"{good}\n{good[:-1]}\n")
    with pytest.raises(item.BadItem, match="line 2: not JSON"):
        list(item.lines(tmp_path / "x.jsonl"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"type": "int"}, "m.f: type 'int' is none of"),
        ({"min": -1}, "more than uint32 holds"),
        ({"comment": ""}, "a name in lower case and a comment"),
        ({"unit": "s"}, "unknown key unit"),
        ({"left_out": True, "default": 1}, "only a string with a default, or a bool that is false, can be left out"),
    ],
)
def test_a_mistake_in_messages_is_named(change, says):
    field = {"name": "f", "type": "uint32", "comment": "c"} | change
    with pytest.raises(messages.MessageError, match=says):
        messages.read({"m": {"topic": "t", "key": "f", "comment": "c", "fields": [field]}})


def test_messages_are_those_of_the_file():
    found = {m.name: m.as_dict() for m in messages.read(yaml.safe_load((ROOT / "messages.yaml").read_text()))}
    assert json.loads(json.dumps(found)) == generated()["messages"]
