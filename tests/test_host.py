"""A host's connections on the running platform: oal-host looks at real ones and sends rows by mutual TLS, signed; the
job stores them as any table's, beside the rows that the lab's sniffer sends as JSON; each is there once.
"""

from __future__ import annotations

import json
import secrets
import socket
import time

from confluent_kafka import Producer
from flow import until
from oal_local import demo
from oal_local.exporter import Exporter
from oal_local.paths import REPO

BINARY = REPO / "ap-exporter" / "build" / "host" / "oal-host"
TABLES = ("sender_tcp", "sender_session")
CONNECTIONS, BYTES = 5, 200_000


def serve(listener: socket.socket, looked) -> None:
    """Connections of both families that stay until `looked` says that they were looked at, then send and end."""
    pairs = []
    for i in range(CONNECTIONS):
        far = socket.create_connection(("127.0.0.1" if i else "::1", listener.getsockname()[1]))
        pairs.append((far, listener.accept()[0]))
    looked()
    for far, near in pairs:
        near.sendall(bytes(BYTES))
        near.shutdown(socket.SHUT_WR)
        while far.recv(1 << 16):
            pass
        far.close()
        near.close()


def sniffed(now_us: int, host: str) -> bytes:
    """A record as the lab's oal-sniffer makes it."""
    contract = json.loads((REPO / "schema/generated/schema.json").read_text())["stream_tables"]["sender_tcp"]["columns"]
    row = {c["name"]: "cubic" if "String" in c["type"] else 7 for c in contract} | {"ts": now_us, "host": host}
    return json.dumps({"table": "sender_tcp", "rows": [row]}).encode()


def test_a_hosts_connections_are_stored_once_beside_those_of_the_labs_sniffer(platform, tmp_path):
    host, lab = (f"{name}-{secrets.token_hex(3)}" for name in ("host", "lab"))
    listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=CONNECTIONS)
    port = listener.getsockname()[1]
    kind, name, options = demo.kafka_section(platform, host, "test")
    exporter = Exporter(tmp_path, host, host, "test", [
        ("tcp", "", {"port": port, "loopback": 1, "interval_ms": 20}), (kind, name, options | {"flush_ms": 60_000})
    ], BINARY)
    producer = Producer(platform.kafka.client("lab"))
    exporter.start()
    try:
        serve(listener, lambda: until("each was looked at", lambda: exporter.status()["table_rows"]["sender_tcp"]
                                      >= CONNECTIONS))
        producer.produce("platform.events.v1", key=lab, value=sniffed(int(time.time() * 1e6), lab))
        assert producer.flush(60) == 0
        until("all have ended", lambda: exporter.status()["table_rows"]["sender_session"] >= CONNECTIONS)
    finally:
        listener.close()
        assert exporter.stop(120) == 0, exporter.log.read_text()[-2000:]
    counted = exporter.count()["rows"]
    assert exporter.let_go() == 0 and counted["sender_session"] == CONNECTIONS

    def stored() -> dict:
        return {t: platform.clickhouse.rows(f"SELECT count() AS n FROM oal.{t} WHERE ap_id = '{host}'")[0]["n"]
                for t in TABLES}

    until(f"rows as many as {counted}", lambda: stored() == {t: counted[t] for t in TABLES})
    ends = platform.clickhouse.rows(
        "SELECT flow_id, s.bytes_acked AS acked, s.server_port AS port, s.congestion_control AS control,"
        " s.seen_us AS seen, count(t.flow_id) AS looks, any(t.host) AS host FROM oal.sender_session AS s"
        " INNER JOIN oal.sender_tcp AS t"
        f" USING (ap_id, flow_id) WHERE ap_id = '{host}' GROUP BY ALL")
    assert len(ends) == CONNECTIONS, ends
    for e in ends:
        assert BYTES <= e["acked"] <= BYTES + 1 and e["port"] == port and e["control"] and e["seen"] > 0, e
        assert e["looks"] >= 1 and e["host"] == host, e
    networks = platform.clickhouse.rows(
        "SELECT client_network, sum(sessions) AS n FROM oal.v_sender_sessions(from = now() - INTERVAL 1 HOUR, to ="
        f" now() + INTERVAL 1 HOUR) WHERE host = '{host}' GROUP BY client_network ORDER BY n")
    assert networks == [{"client_network": "::/64", "n": 1}, {"client_network": "127.0.0.0/24", "n": CONNECTIONS - 1}]
    sniffers = until("the sniffer's row", lambda: platform.clickhouse.rows(
        "SELECT ap_id, clock_offset_us, interval_ms, delivered_pkts FROM oal.sender_tcp"
        f" WHERE host = '{lab}'"))
    assert sniffers == [{"ap_id": "", "clock_offset_us": 7, "interval_ms": 0, "delivered_pkts": None}]
