"""The sniffer streams to a real Kafka over TLS, as records that the contract describes."""
import json
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest
import yaml
from sniffer import sinks

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOPIC = "platform.events.v1"


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    sys.path.insert(0, str(ROOT / "platform/local/src"))
    from oal_local.platform import Platform
    with Platform(tmp_path_factory.mktemp("platform"), ports="auto", only=["kafka"]) as running:
        yield running


@pytest.fixture
def consumer(platform):
    from confluent_kafka import Consumer
    reader = Consumer(platform.kafka.client("viewer") | {"group.id": "viewer-sniffer", "auto.offset.reset": "earliest"})
    reader.subscribe([TOPIC])
    yield reader
    reader.close()


def sniffer(platform, *words) -> subprocess.Popen:
    tls = platform.kafka.client("lab")
    files = {
        "ca": tls["ssl.ca.location"], "certificate": tls["ssl.certificate.location"], "key": tls["ssl.key.location"]
    }
    return subprocess.Popen([
        ROOT / "lab/oal-sniffer", "run", "--brokers", platform.kafka.bootstrap, *(w for name, path in files.items()
                                                                                  for w in (f"--{name}", path)), *words
    ], stderr=subprocess.PIPE, text=True)


def test_rows_arrive_as_the_contract_describes_them(platform, consumer):
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    process = sniffer(platform, "--peer", "127.0.0.0/8", "--port", str(port), "--host", "researcher", "--rate-hz",
                      "100")
    far = socket.create_connection(("127.0.0.1", port))
    near, _ = listener.accept()
    found, sent = [], 0
    try:
        end = time.monotonic() + 60
        while sum(len(json.loads(m.value())["rows"]) for m in found) < 20:
            assert time.monotonic() < end and process.poll() is None
            near.sendall(b"x" * 1000)
            sent += len(far.recv(1 << 16))
            message = consumer.poll(0.02)
            if message and not message.error():
                found.append(message)
    finally:
        process.send_signal(signal.SIGTERM)
        status = json.loads(process.communicate(timeout=30)[1].splitlines()[-1])
        for sock in (near, far, listener):
            sock.close()
    assert process.returncode == 0 and status["rows_let_go"] == 0
    assert {m.key() for m in found} == {b"researcher"}
    stamps = [m.timestamp()[1] for m in found]
    assert len(found) <= 2 + 4 * (stamps[-1] - stamps[0]) / 1000 + 1, "at most four records a second"
    records = [json.loads(m.value()) for m in found]
    assert {r["table"] for r in records} == {"sender_tcp"}
    contract = yaml.safe_load((ROOT / "schema/stream_tables.yaml").read_text())["sender_tcp"]["columns"]
    for row in (row for r in records for row in r["rows"]):
        assert list(row) == [c["name"] for c in contract]
        assert all(isinstance(row[c["name"]], str if "String" in c["type"] else int) for c in contract)
        assert row["server_port"] == port and row["cwnd_bytes"] > 0 and row["bytes_acked"] <= sent + 1


def has_rows(file: pathlib.Path) -> bool:
    try:
        return any(True for _ in sinks.read(file))
    except (FileNotFoundError, ValueError):  # before the first quarter of a second
        return False


def test_a_broker_that_is_away_costs_rows_not_the_sniffer(platform, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{free.getsockname()[1]}"
    process = subprocess.Popen([
        ROOT / "lab/oal-sniffer", "run", "--brokers", nobody, "--peer", "127.0.0.0/8", "--output", tmp_path / "rows.gz",
        "--rate-hz", "20"
    ], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    file = tmp_path / "rows.gz"
    # Kafka's own connections on the loopback are rows enough; the file can be read while it is written.
    while not has_rows(file):
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    status = json.loads(process.communicate(timeout=40)[1].splitlines()[-1])
    assert process.returncode == 0 and status["rows"] == status["rows_let_go"] > 0
