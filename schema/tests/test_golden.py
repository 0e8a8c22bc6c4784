"""The committed golden vectors are what the reference implementation gives."""

import pytest
from oal_schema import golden
from oal_schema.codec import decode
from oal_schema.model import ROOT
from oal_schema.wire import Refused


def test_committed_vectors_are_current():
    stale = [name for name, content in golden.outputs().items() if (ROOT / "golden" / name).read_bytes() != content]
    assert not stale, f"stale: {stale}; fix: make -C schema golden"


@pytest.mark.parametrize("case", range(len(golden.refused())))
def test_refused_with_its_reason(case):
    topic, data, reason = golden.refused()[case]
    with pytest.raises(Refused) as e:
        decode(topic, data, golden.KEY, golden.NOW_US)
    assert e.value.reason == reason, e.value.detail


def test_container_round_trip():
    records = golden.extremes()
    assert golden.read_container(golden.container(records)) == records
