"""The sniffer against iproute2's ss, against a path of known delay in the guest, and on what is broken."""
import contextlib
import gzip
import io
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import time

import pytest
from guest.namespace import inside
from sniffer import diag, rows, sinks
from sniffer.service import Filter, Sniffer

LAB = pathlib.Path(__file__).resolve().parent.parent


def until(what: str, condition, seconds: float = 30):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.02)
    return value


@pytest.fixture
def pair():
    """Two network namespaces with a veth between them: names of server (10.99.0.1) and client (10.99.0.2)."""
    names = [f"oalsniff{os.getpid()}{side}" for side in "sc"]
    with contextlib.ExitStack() as undo:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
            undo.callback(subprocess.run, ["ip", "netns", "del", name], check=True)
        subprocess.run(
            ["ip", "-n", names[0], "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", names[1]],
            check=True)
        for number, name in enumerate(names, 1):
            subprocess.run(["ip", "-n", name, "addr", "add", f"10.99.0.{number}/24", "dev", "v0"], check=True)
            subprocess.run(["ip", "-n", name, "link", "set", "v0", "up"], check=True)
            subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        yield names


@pytest.fixture
def transfers(pair):
    """Three connections over which the server sent something: it sends no more, all is acknowledged."""
    server, client = pair
    with contextlib.ExitStack() as undo:
        with inside(server):
            listener = undo.enter_context(socket.create_server(("10.99.0.1", 0)))
        ends = []
        for size in (30_000, 400_000, 3_000_000):
            with inside(client):
                far = undo.enter_context(socket.create_connection(listener.getsockname()))
            near = undo.enter_context(listener.accept()[0])
            ends.append((near, far))
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            left = memoryview(bytes(size))
            while left:
                part, left = left[:60_000], left[60_000:]
                near.sendall(part)
                got = 0
                while got < len(part):
                    got += len(far.recv(1 << 20))
        yield listener.getsockname()[1], ends


def ss(ns: str) -> dict[int, dict]:
    """What `ss -tin` says of each connection, by the peer's port."""
    text = subprocess.run(["ip", "netns", "exec", ns, "ss", "-Htin", "state", "established"], check=True,
                          capture_output=True, text=True).stdout
    found = {}
    for peer, details in re.findall(r"^\S+\s+\S+\s+\S+\s+\S+:(\d+)\s*\n\s+(.*)$", text, re.MULTILINE):
        value = lambda name, kind=int: kind(m.group(1)) if (m := re.search(rf"\b{name}:([\d.]+)", details)) else 0
        found[int(peer)] = {
            "cc": details.split()[0], "cwnd": value("cwnd"), "mss": value("mss"), "ssthresh": value("ssthresh"),
            "rtt_ms": value("rtt", float), "min_rtt_ms": value("minrtt", float), "bytes_acked": value("bytes_acked"),
            "unacked": value("unacked")
        }
    return found


def test_what_the_sniffer_says_is_what_ss_says(pair, transfers):
    port, ends = transfers
    with inside(pair[0]):
        asking = diag.InetDiag()
    until("all acknowledged",
          lambda: all(not s["unacked"] and s["bytes_acked"] >= 30_000 for s in ss(pair[0]).values()))
    theirs = ss(pair[0])
    mine = {
        c.remote_port: rows.row(c, 0, "server", rows.Offset(0, 0)) for c in asking.connections((diag.ESTABLISHED, ))
        if c.local_port == port
    }
    assert len(mine) == len(ends) and mine.keys() == theirs.keys()
    assert len({row["cwnd_bytes"] for row in mine.values()}) > 1, "the transfers left different windows"
    for peer, row in mine.items():
        said = theirs[peer]
        assert row["congestion_control"] == said["cc"]
        assert row["cwnd_bytes"] == said["cwnd"] * said["mss"] and row["mss_bytes"] == said["mss"]
        assert row["ssthresh_bytes"] == (said["ssthresh"] * said["mss"] if said["ssthresh"] else rows.U32)
        assert row["bytes_acked"] == said["bytes_acked"]
        assert row["rtt_us"] == pytest.approx(said["rtt_ms"] * 1000, abs=1) and row["min_rtt_us"] == pytest.approx(
            said["min_rtt_ms"] * 1000, abs=1)
        assert row["flow_id"] == rows.flow_id(socket.inet_aton("10.99.0.2"), socket.inet_aton("10.99.0.1"), peer, port)


def test_a_flow_number_is_the_exporters():
    """A flow of captures/steady.oalcap, as `ap-exporter dump` shows it."""
    assert rows.flow_id(socket.inet_aton("10.20.0.12"), socket.inet_aton("10.20.0.1"), 38859,
                        35892) == 12605659419735637170


def test_rates_delays_and_clocks_in_the_guest(play):
    given = {
        "duration_s": 5, "wired": {"delay_ms": 40}, "stations": [{"name": "sta", "rate_mbps": 65}],
        "flows": [{"station": "sta", "start_s": 0.5, "stop_s": 4},
                  {"station": "sta", "direction": "up", "start_s": 0.5, "stop_s": 4, "rate_mbps": 0.5}]
    }
    truth = play("sniffed", given, sniff_hz=50)
    said = list(sinks.read(truth["folder"] / "sniffed.sender.jsonl.gz"))
    flows = {r["flow_id"] for r in said}
    assert len(flows) == 1, "the upload's receiver is no sender"
    assert {r["congestion_control"] for r in said} == {"cubic"}
    assert 40_000 <= min(r["min_rtt_us"] for r in said if r["min_rtt_us"]) < 46_000
    assert max(r["cwnd_bytes"] for r in said) > 10 * 10 * 1448, "slow start passed its first round"
    assert max(r["bytes_acked"] for r in said) == pytest.approx(truth["flows"][0]["acked_bytes"], rel=0.05)
    steps = [b["ts"] - a["ts"] for a, b in zip(said, said[1:])]
    assert sorted(steps)[len(steps) // 2] == pytest.approx(20_000, rel=0.1)
    late = [r for r in said if r["ts"] > said[0]["ts"] + 1_000_000]
    assert all(abs(r["clock_offset_us"]) <= r["clock_offset_error_us"] for r in late)
    assert all(20_000 <= r["clock_offset_error_us"] < 22_000 for r in late), "half of the round trip"


def test_the_command_ends_with_its_file_whole(pair, transfers, tmp_path):
    out = tmp_path / "rows.gz"
    process = subprocess.Popen(
        [LAB / "oal-sniffer", "run", "--netns", pair[0], "--output", out, "--host", "here", "--rate-hz", "100"],
        stderr=subprocess.PIPE, text=True)
    near, far = transfers[1][0]
    until("the file is opened", lambda: out.exists())
    near.sendall(b"x" * 5000)
    far.recv(1 << 16)
    time.sleep(0.3)  # samples are taken by the clock
    process.send_signal(signal.SIGTERM)
    status = json.loads(process.communicate(timeout=20)[1])
    assert process.returncode == 0
    said = list(sinks.read(out))
    assert status["rows"] == len(
        said) >= 3 and status["malformed"] == 0 and status["clock_offset_error_us"] == 0xFFFFFFFF
    assert {r["host"] for r in said} == {"here"} and set(said[0]) == set(rows.COLUMNS)


def test_peers_ports_and_receivers_are_told_apart():
    info = {"bytes_acked": 1000, "unacked_pkts": 0}
    of = lambda remote, port=80, info=info: diag.Connection(bytes([10, 0, 0, 1]), port, socket.inet_aton(remote), 5,
                                                            b"", "reno", info)
    import ipaddress
    assert Filter().takes(of("10.0.0.2")) and not Filter().takes(of("127.0.0.1"))
    assert not Filter().takes(of("10.0.0.2", info={"bytes_acked": 1, "unacked_pkts": 0})) and Filter().takes(
        of("10.0.0.2", info={"bytes_acked": 1, "unacked_pkts": 2}))
    assert not Filter(ports=frozenset({443})).takes(of("10.0.0.2"))
    assert not Filter(peers=(ipaddress.ip_network("10.1.0.0/16"),)).takes(of("10.0.0.2"))


def test_a_row_is_repeated_only_when_it_is_news_or_old():
    changes = rows.Changes(keep_us=1000)
    row = {"ts": 0, "cwnd_bytes": 1, "clock_offset_us": 5}
    assert changes.of([(b"a", row)]) and not changes.of([(b"a", {**row, "ts": 500, "clock_offset_us": 9})])
    assert changes.of([(b"a", {**row, "ts": 600, "cwnd_bytes": 2})]) and changes.of(
        [(b"a", {**row, "ts": 1600, "cwnd_bytes": 2})])
    assert changes.of([(b"b", row)]) and set(changes.last) == {b"b"}


@pytest.mark.parametrize("length", [0, 8, 103])
def test_a_short_tcp_info_is_refused(length):
    with pytest.raises(ValueError, match=f"tcp_info of {length} bytes"):
        diag.tcp_info(bytes(length))


def test_an_older_kernels_tcp_info_has_what_it_has():
    raw = bytearray(diag.MINIMUM)
    struct.pack_into("=I", raw, 80, 17)
    found = diag.tcp_info(bytes(raw))
    assert (found["cwnd_pkts"], found["min_rtt_us"], found["pacing_bytes_per_s"]) == (17, 0, diag.UNLIMITED)


def test_broken_messages_are_counted_not_fatal(monkeypatch):
    asking = diag.InetDiag()
    whole = struct.pack("=IHHII", 16 + 72, 20, 2, 1, 0) + bytes(72)
    monkeypatch.setattr(asking.netlink, "request", lambda *_: whole + whole[:40])
    assert asking.connections() == [] and asking.malformed >= 2


def test_a_kernel_without_inet_diag_is_said(monkeypatch):
    asking = diag.InetDiag()

    def refuse(*_):
        raise FileNotFoundError(2, "netlink request 20")
    monkeypatch.setattr(asking.netlink, "request", refuse)
    with pytest.raises(diag.DiagError, match="CONFIG_INET_TCP_DIAG"):
        asking.connections()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [(["run", "--output", "/nowhere/x"], "cannot write /nowhere/x"), (["run", "--netns", "nowhere"], "nowhere"),
     (["run", "--rate-hz", "5000"], "from 0.1 to 1000"), (["run", "--reflector", "host"], "is not ADDRESS"),
     (["reflect", "--listen", "192.0.2.1:5"], "assign requested address"),
     (["run", "--brokers", "127.0.0.1:1", "--ca", "/nowhere/ca"], "--ca /nowhere/ca: cannot be read")])
def test_wrong_usage_is_said(words, complaint):
    done = subprocess.run([LAB / "oal-sniffer", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2) and complaint in done.stderr and "Traceback" not in done.stderr


def test_a_file_that_was_cut_short_gives_what_is_whole(tmp_path):
    sink = sinks.File(str(tmp_path / "f"))
    row = dict.fromkeys(rows.COLUMNS, 1) | {"host": "h", "congestion_control": "bbr"}
    given = [row | {"ts": 1_700_000_000_000_000 + i * 20_000, "cwnd_bytes": i * 7919 % 100_003} for i in range(5000)]
    sink.write(given)
    sink.close()
    assert list(sinks.read(tmp_path / "f")) == given
    (tmp_path / "cut").write_bytes((tmp_path / "f").read_bytes()[:-2000])
    found = list(sinks.read(tmp_path / "cut"))
    assert 0 < len(found) < 5000 and found == given[:len(found)]
    (tmp_path / "other").write_bytes(gzip.compress(b"hello\n"))
    with pytest.raises(ValueError, match="not written by oal-sniffer"):
        list(sinks.read(tmp_path / "other"))


def test_a_sampler_that_is_late_counts_its_ticks():
    class Slow(diag.InetDiag):
        def connections(self, states=diag.SENDING):
            time.sleep(0.05)
            return []
    import threading
    stop = threading.Event()
    sniffer = Sniffer("h", Slow(), [sinks.Lines(io.StringIO())], rate_hz=100)
    thread = threading.Thread(target=sniffer.run, args=(stop,))
    thread.start()
    until("ticks are missed", lambda: sniffer.ticks_missed >= 8)
    stop.set()
    thread.join()
    assert sniffer.samples < sniffer.ticks_missed
