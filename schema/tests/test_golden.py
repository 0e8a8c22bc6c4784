"""The committed golden vectors are what the reference implementation gives."""

import pytest
from oal_schema import golden, golden_batches, golden_file, golden_refused, mac
from oal_schema.codec import decode
from oal_schema.model import ROOT
from oal_schema.wire import Refused


def test_committed_vectors_are_current():
    stale = [name for name, content in golden.outputs().items() if (ROOT / "golden" / name).read_bytes() != content]
    assert not stale, f"stale: {stale}; fix: make -C schema golden"


@pytest.mark.parametrize("case", range(len(golden_refused.refused())))
def test_refused_with_its_reason(case):
    topic, data, reason = golden_refused.refused()[case]
    with pytest.raises(Refused) as e:
        decode(topic, data, golden_batches.KEY, golden_batches.NOW_US)
    assert e.value.reason == reason, e.value.detail


def test_container_round_trip():
    records = golden_batches.extremes()
    assert golden_file.read_container(golden_file.container(records)) == records


def test_a_mac_is_of_one_key_topic_and_value():
    key = mac.ap_key(bytes(32), "ap-1", "hall")
    headers = {
        mac.header(1, k, topic, value)
        for k in (key, mac.ap_key(bytes(32), "ap-1", ""), mac.ap_key(bytes(32), "ap-2", "hall"))
        for topic in mac.TOPICS
        for value in (b"", b"x")
    }
    assert len(headers) == 18 and {len(h) for h in headers} == {17}


@pytest.mark.parametrize(
    "text",
    ["", "0 " + "A" * 43 + "=", "256 " + "A" * 43 + "=", "1 AAAA", "1", f"1 {'A' * 43}=\n1 {'A' * 43}=\n", "x y"],
)
def test_a_file_of_master_keys_with_a_mistake_is_refused_by_name(tmp_path, text):
    file = tmp_path / "masters"
    file.write_text(text)
    with pytest.raises(ValueError, match="a line is: KEY_ID"):
        mac.read_masters(file)


def test_an_access_point_gets_the_key_of_the_newest_master(tmp_path):
    file = tmp_path / "masters"
    file.write_text(f"# old\n1 {'A' * 43}=\n2 {'B' * 42}A=\n")
    assert mac.ap_lines(mac.read_masters(file), [("ap-1", "")]).startswith("ap-1 - 2 ")
