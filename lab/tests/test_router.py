"""A router with NAT, over a port of a DSA switch and over PPPoE, runs the exporter with control: what the server gets
has lowered windows, by its capture, and plain ones while control is killed; the rule of NAT may change meanwhile.
"""
import socket
import struct

import pytest
from conformance.segment import OPTION_SCALE, SYN
from router import inside, run

CLAMP, PLAIN = 30_000, 90_000  # bytes: what the policy sets; less than what the client announces by itself
LEAST = 10  # ACKs of a flow in a span


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    return run.play(tmp_path_factory.mktemp("router"))


def windows(seen: dict, span: str) -> dict[tuple[str, int], list[int]]:
    """Bytes that ACKs announced to the server within the span, by the address and port that it saw."""
    begin, end = seen["spans"][span]
    scales, found = {}, {}
    for t_us, frame in seen["server"]:
        segment = run.segment(t_us, frame)
        if not segment or segment.dport != 443:
            continue
        flow = socket.inet_ntoa(segment.src), segment.sport
        if segment.flags & SYN:
            scales[flow] = segment.options()[OPTION_SCALE][0]
        elif begin <= t_us < end:
            assert segment.checksum_right(), (span, flow)
            found.setdefault(flow, []).append(segment.window << scales[flow])
    return found


def test_plays_to_its_end(seen):
    assert "error" not in seen, seen["error"]
    assert seen["steps"] == [step.__name__ for step in inside.STEPS]
    assert seen["ended"] == 0 and "bpf" not in seen["filters"]


@pytest.mark.parametrize("span, addresses", [
    ("nat", {inside.ROUTER}), ("other rule", {inside.ROUTER, inside.OTHER}),
    ("not killed", {inside.ROUTER, inside.OTHER}), ("pppoe", {inside.DIALLED})
])
def test_every_window_is_lowered_at_the_server(seen, span, addresses):
    flows = windows(seen, span)
    assert {address for address, _ in flows} == addresses, "the router's addresses, never the station's"
    for flow, announced in flows.items():
        assert len(announced) >= LEAST and max(announced) <= CLAMP and min(announced) > 0.8 * CLAMP, (flow, announced)


@pytest.mark.parametrize("span", ["killed", "pppoe killed"])
def test_windows_are_the_clients_own_while_control_is_killed(seen, span):
    flows = windows(seen, span)
    assert flows
    for flow, announced in flows.items():
        assert len(announced) >= LEAST and min(announced) > PLAIN, (flow, announced)


def test_the_wire_is_what_it_is_called(seen):
    """Frames of the conduit carry the switch's tag; then sessions of PPPoE behind it."""
    assert seen["tagging"] == "mtk"
    kinds = {}
    for t_us, frame in seen["conduit"]:
        for span, (begin, end) in seen["spans"].items():
            if begin <= t_us < end:
                kinds.setdefault(span, set()).add(struct.unpack_from(">H", frame, 12 + run.TAG)[0])
                assert struct.unpack_from(">H", frame, 12)[0] in (0, 1), "a tag: from port 0, or for it alone"
    assert 0x0800 in kinds["nat"] and run.PPPOE_SESSION not in kinds["nat"]
    assert run.PPPOE_SESSION in kinds["pppoe"] and 0x0800 not in kinds["pppoe"]


def test_rows_have_the_stations_own_address(seen):
    flows = {(row["flow"]["client"], row["flow"]["server"], row["flow"]["station"]) for row in seen["rows"]
             if row["table"] == "packet"}
    assert flows == {(inside.CLIENT, inside.SERVER, "02:00:00:00:01:00")}


def test_a_clock_that_is_set_holds_up_nothing(seen):
    """Back and forth by an hour, at a reload: ticks and clamps go by the monotonic clock."""
    for before, after in seen["steps of the clock"]:
        assert after["ticks_missed"] == before["ticks_missed"] == 0
        assert after["uptime_us"] - before["uptime_us"] < 12_000_000
        assert after["reloads_refused"] == 0
    assert seen["steps of the clock"][-1][1]["clock"]["steps"] == 2


def test_a_driver_that_takes_50_ms_an_answer_costs_no_tick(seen):
    before, after = seen["slow driver"]
    assert all(one["longest_us"] > 50_000 for one in after["samplers"]), after["samplers"]
    assert after["ticks"] - before["ticks"] >= 1250 and after["ticks_missed"] == before["ticks_missed"]
    assert after["table_rows"]["station"] > before["table_rows"]["station"]


def test_status_says_how_and_has_no_alarm(seen):
    for span, status in seen["status"].items():
        tap, = status["taps"]
        assert tap["tap"] == "bpf" and tap["attached"] and not status["alarms"], (span, status["alarms"])
        assert status["ticks_missed"] == 0
