"""The reference codec: round trip, self-description, and bytes that a stock Protobuf runtime reads."""

import random

import pytest
from google.protobuf import descriptor_pool, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st
from oal_schema import golden_batches
from oal_schema.codec import Batch, contract, decode, encode
from oal_schema.model import descriptors
from oal_schema.wire import Refused, unzigzag


@st.composite
def batches(draw):
    """Batches of random rows over all tables of a topic."""
    topic = draw(st.integers(0, 2))
    flows = (
        golden_batches.made_flows(random.Random(draw(st.integers(0, 99))), draw(st.integers(1, 5)))
        if topic == 1
        else []
    )
    tables = {}
    for t in contract().tables:
        if t.topic != topic:
            continue
        rows = []
        for _ in range(draw(st.integers(0, 8))):
            absent = draw(st.integers(0, (1 << sum(c.optional >= 0 for c in t.columns)) - 1))
            row = {"absent": absent}
            for c in t.columns:
                lo, hi = c.range
                if c.type == "FLOW":
                    hi = len(flows) - 1
                elif c.type == "NAME":
                    hi = 4
                elif c.kind in ("TICK", "TIME_US"):
                    lo, hi = 0, 62
                row[c.name] = draw(
                    st.one_of(st.integers(lo, hi), st.sampled_from([lo, hi]), st.just(min(max(0, lo), hi)))
                )
            rows.append(row)
        if rows:
            tables[t.name] = rows
    return Batch(topic, golden_batches.batch_header(draw(st.integers(0, 1 << 62)), golden_batches.T0), tables, flows)


@settings(max_examples=150, deadline=None)
@given(batches())
def test_decode_gives_back_what_was_encoded(batch):
    back = decode(batch.topic, encode(batch))
    assert back.tables == batch.tables
    assert back.flows == batch.flows
    assert {k: v for k, v in back.header.items() if v} == {k: v for k, v in batch.header.items() if v}


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2), st.binary(max_size=200))
def test_garbage_is_refused_and_nothing_else(topic, data):
    with pytest.raises(Refused):
        decode(topic, data)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_flipped_bits_are_refused_or_decode(data):
    topic, good = data.draw(st.sampled_from(golden_batches.extremes()))
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(1, 8))):
        bad[data.draw(st.integers(0, len(bad) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        decode(topic, bytes(bad))
    except Refused:
        pass


def test_a_stock_protobuf_runtime_reads_the_columns():
    fds = descriptors()
    pool = descriptor_pool.DescriptorPool()
    for f in fds.file:
        pool.Add(f)
    message = message_factory.GetMessageClassesForFiles([f.name for f in fds.file], pool)["oal.SampleBatch"]
    topic, data = golden_batches.extremes()[0]
    parsed, ours = message.FromString(data), decode(topic, data)
    assert parsed.header.ap_id == "ap-1" and list(parsed.header.names) == ours.header["names"]
    assert sum(parsed.station.run_rows) == len(ours.tables["station"])
    assert [m for m, n in zip(parsed.station.mac, parsed.station.run_rows) for _ in range(n)] == [
        r["mac"] for r in ours.tables["station"]
    ]
    assert parsed.station.rx_bytes[0] == ours.tables["station"][0]["rx_bytes"]


def test_the_readmes_example():
    """`7 7 7 7 9` travels as `7, 0, 2, 2`."""
    from oal_schema import wire

    table = contract().table("station")
    row = golden_batches.empty_row(table)
    data = encode(
        Batch(
            0,
            golden_batches.batch_header(0, golden_batches.T0),
            {"station": [row | {"tick": i, "signal_dbm": v} for i, v in enumerate([7, 7, 7, 7, 9])]},
        )
    )
    spans = {n: (a, b) for n, _, a, b in wire.fields(data, 0, len(data))}
    inner = {n: (a, b) for n, _, a, b in wire.fields(data, *spans[table.field])}
    assert [unzigzag(v) for v in wire.varints(data, *inner[table.column("signal_dbm").field])] == [7, 0, 2, 2]
