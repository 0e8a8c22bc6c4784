#!/usr/bin/env python3
"""oal-host from outside: real TCP connections of a host in a namespace, and what is sent of them, as the contract's
reference codec reads it.

usage: tests/host.py [BINARY EXPORTER [NAME…]], as tests/outside.py: BINARY is oal-host, EXPORTER the access point's
ap-exporter. Needs root.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"
if len(sys.argv) < 3:
    sys.argv[1:] = [str(BUILD / "host/oal-host"), str(BUILD / "ap-exporter")]
EXPORTER = Path(sys.argv[2]).resolve()

from outside import BINARY, Daemon, Folder, Wire, run_here, sh, until  # noqa: E402

SCHEMA = Path(__file__).resolve().parents[2] / "schema"
PORT = 5400
HOST = f"@exporter\nconfig tcp\n option port {PORT}\n option interval_ms 20\n"

#: Takes connections at both families. Each line of its input: all that is open is sent so many bytes and then ended,
#: "0": it is ended as it is.
SERVER = f"""
import socket, sys, threading
listener = socket.create_server(("::", {PORT}), family=socket.AF_INET6, dualstack_ipv6=True)
held = []
def accept():
    while True:
        held.append(listener.accept()[0])
threading.Thread(target=accept, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    while held:
        connection = held.pop()
        connection.sendall(b"x" * int(line))
        connection.close()
    print("done", flush=True)
"""
#: Takes connections, sends each a kilobyte and ends it.
SHORT = f"""
import socket
listener = socket.create_server(("10.99.0.1", {PORT}))
print("ready", flush=True)
while True:
    connection, _ = listener.accept()
    connection.sendall(bytes(1000))
    connection.close()
"""
#: Connects to each address of the command line; says its ports; reads all; ends with its input.
CLIENT = f"""
import socket, sys, threading
def read(c):
    while c.recv(65536):
        pass
    c.close()
made = []
for address in sys.argv[1:]:
    made.append(socket.create_connection((address, {PORT})))
print(*[c.getsockname()[1] for c in made], flush=True)
threads = [threading.Thread(target=read, args=(c,)) for c in made]
[t.start() for t in threads], [t.join() for t in threads]
print("read", flush=True)
"""


class Program:
    """A Python program in a namespace, spoken to line by line."""

    def __init__(self, ns: str, code: str, *arguments: str):
        self.process = subprocess.Popen(["ip", "netns", "exec", ns, sys.executable, "-c", code, *arguments],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def read(self) -> str:
        line = self.process.stdout.readline().strip()
        assert line, "the program has ended"
        return line

    def ask(self, line: str) -> str:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.read()


def batches(capture: Path) -> list:
    """What the capture holds, decoded by the reference codec of schema/, which knows nothing of C."""
    code = (
        "import json, sys, struct\nfrom oal_schema.codec import decode\n"
        "data = open(sys.argv[1], 'rb').read()[8:]\n"
        "while data:\n"
        "    topic, size = data[4], struct.unpack_from('<I', data, 8)[0]\n"
        "    b = decode(topic, data[24:24 + size])\n"
        "    flows = [{k: v.hex() if isinstance(v, bytes) else v for k, v in f.items()} for f in b.flows]\n"
        "    print(json.dumps([topic, b.header, b.tables, flows]))\n"
        "    data = data[24 + size:]\n"
    )
    venv = sh(f"bash {SCHEMA.parent}/platform/setup/venv {SCHEMA}/requirements.txt").strip()
    done = subprocess.run([f"{venv}/bin/python", "-c", code, str(capture)], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": str(SCHEMA / "src")})
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def rows(daemon: Daemon, table: str) -> list[dict]:
    """Rows of a table, each with its flow and the name of its congestion control."""
    return [row | {"flow": flows[row["flow"]], "control": header["names"][row["congestion_control"]]}
            for _, header, tables, flows in batches(daemon.capture) for row in tables.get(table, [])]


def v4(address: str) -> str:
    return socket.inet_aton(address).hex()


def t_connections_and_their_ends():
    """each connection has rows while it changes, and its sums at the end that the kernel told, of IPv4 and IPv6"""
    with Folder() as folder, Wire() as wire, Program(wire.ap, SERVER) as server:
        server.read()
        with Daemon(folder, HOST, wire.ap) as daemon, Program(wire.far, CLIENT, "10.99.0.1", "fd99::1") as client:
            ports = list(map(int, client.read().split()))
            until(lambda: daemon.status()["table_rows"]["sender_tcp"] >= 2, "both were looked at")
            assert server.ask("3000000") == "done" and client.read() == "read"
            until(lambda: daemon.status()["table_rows"]["sender_session"] >= 2, "both have ended")
            assert daemon.stop() == 0
        looks, ends = rows(daemon, "sender_tcp"), rows(daemon, "sender_session")
        assert len(ends) == 2 and {e["flow"]["client_port"] for e in ends} == set(ports), ends
        assert all(r["flow"]["server_port"] == PORT for r in looks + ends)
        for end in ends:
            own = [r for r in looks if r["flow"] == end["flow"]]
            assert own and own[0]["state"] == 1 and end["control"] == own[0]["control"] != "", (own, end)
            assert end["end_known"] == 1 and end["bytes_acked"] in (3_000_000, 3_000_001), end  # the FIN counts as one
            assert end["absent"] == 0 and end["rtt_looks"] >= 1 and end["seen_us"] > 0, end
            assert end["rtt_min_us"] <= end["rtt_mean_us"] and end["rtt_min_us"] <= end["rtt_p95_us"], end
            assert end["data_segs_out"] <= end["segs_out"] and end["delivered_pkts"] > 0, end
            assert [r["bytes_acked"] for r in own] == sorted(r["bytes_acked"] for r in own)
        by_size = {len(e["flow"]["client_addr"]): e for e in ends}
        assert by_size[8]["flow"]["client_addr"] == v4("10.99.0.2") and by_size[8]["client_prefix"] == 0x0A6300
        assert by_size[32]["client_prefix"] == int.from_bytes(bytes.fromhex("fd99000000000000"), "big", signed=True)


def t_flow_as_an_access_point_has_it():
    """a connection's number is that of the same connection in an access point's packets, also of a socket of IPv6"""
    with Folder() as folder, Folder() as other, Wire() as wire, Program(wire.ap, SERVER) as server:
        server.read()
        (other / "config").write_text(
            f"config exporter\n option ap_id ap\n option status_socket '{other}/socket'\n"
            f"config tap\n option interface lan0\n option tap packet\nconfig file\n option path '{other}/capture'\n")
        with Daemon(folder, HOST, wire.ap) as daemon:
            ap = subprocess.Popen(["ip", "netns", "exec", wire.ap, str(EXPORTER), "run", "-c", str(other / "config")],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                until(lambda: (other / "socket").exists(), "the access point runs")
                with Program(wire.far, CLIENT, "10.99.0.1", "fd99::1") as client:
                    client.read()
                    until(lambda: daemon.status()["table_rows"]["sender_tcp"] >= 2, "both were looked at")
                    assert server.ask("100000") == "done" and client.read() == "read"
                until(lambda: daemon.status()["table_rows"]["sender_session"] >= 2, "both have ended")
            finally:
                ap.terminate()
                assert ap.wait(30) == 0
            assert daemon.stop() == 0
        of_ap = {f["flow_id"]: f for _, _, tables, flows in batches(other / "capture") for f in flows
                 if tables.get("packet")}
        of_host = {e["flow"]["flow_id"]: e["flow"] for e in rows(daemon, "sender_session")}
        assert len(of_host) == 2 and set(of_host) <= set(of_ap), (of_host, of_ap)
        for i, flow in of_host.items():
            assert flow | {"station_mac": 0} == of_ap[i] | {"station_mac": 0}


def t_short_connections():
    """connections that are over between two looks have an end each, whose congestion control nobody knows"""
    with Folder() as folder, Wire() as wire, Program(wire.ap, SHORT) as server:
        server.read()
        with Daemon(folder, HOST.replace("interval_ms 20", "interval_ms 60000"), wire.ap) as daemon:
            daemon.settle()
            for _ in range(20):
                with Program(wire.far, CLIENT, *["10.99.0.1"] * 5) as client:
                    client.read()
                    assert client.read() == "read"
            until(lambda: daemon.status()["table_rows"]["sender_session"] >= 100, "all have ended")
            assert daemon.stop() == 0
        ends = rows(daemon, "sender_session")
        flows = {e["flow"]["flow_id"] for e in ends}  # the peer may take a port again that it had
        assert len(ends) == 100 and len(flows) > 90, (len(ends), len(flows))
        assert all(e["control"] == "" and e["absent"] and e["rtt_looks"] == 0 for e in ends)
        assert all(e["bytes_acked"] in (1000, 1001, 1002) for e in ends), [e["bytes_acked"] for e in ends]


def t_only_what_is_asked_for():
    """other ports and networks are not followed, without looks there are ends alone, and with a key no addresses"""
    with Folder() as folder, Wire() as wire, Program(wire.ap, SERVER) as server:
        server.read()
        (folder / "key").write_bytes(bytes(range(16)))
        text = HOST.replace("@exporter", f"@exporter\n option pseudonym_key '{folder}/key'")
        text += " list peer 10.99.0.0/24\n option looks 0\n"
        with Daemon(folder, text, wire.ap) as daemon:
            with Program(wire.far, CLIENT, "10.99.0.1", "fd99::1") as client:
                client.read()
                daemon.settle()
                assert server.ask("1000") == "done" and client.read() == "read"
            until(lambda: daemon.status()["table_rows"]["sender_session"] >= 1, "one has ended")
            daemon.settle()
            assert daemon.stop() == 0
        ends = rows(daemon, "sender_session")
        assert len(ends) == 1 and ends[0]["control"] and not rows(daemon, "sender_tcp"), ends
        assert len(ends[0]["flow"]["client_addr"]) == 8 and ends[0]["flow"]["client_addr"] != v4("10.99.0.2")
        assert ends[0]["client_prefix"] != 0x0A6300


def t_without_rights():
    """it runs without root and without capabilities, which systemd gives it none of"""
    with Folder() as folder, Wire() as wire, Program(wire.ap, SERVER) as server:
        server.read()
        folder.chmod(0o777)
        bare = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all",
                "--inh-caps=-all", "--no-new-privs")
        with Daemon(folder, HOST, wire.ap, under=bare) as daemon:
            with Program(wire.far, CLIENT, "10.99.0.1") as client:
                client.read()
                until(lambda: daemon.status()["table_rows"]["sender_tcp"] >= 1, "it was looked at")
                assert server.ask("1000") == "done" and client.read() == "read"
            until(lambda: daemon.status()["table_rows"]["sender_session"] >= 1, "it has ended")
            assert daemon.stop() == 0


def t_mistakes():
    """a section for access points, a port that is none and a network that is none are refused, with the reason"""
    def refused(text: str) -> str:
        with Folder() as folder:
            (folder / "config").write_text(f"config exporter\n option ap_id h\n{text}\nconfig file\n option path "
                                           f"'{folder}/x'\n")
            done = subprocess.run([str(BINARY), "check-config", "-c", str(folder / "config")], capture_output=True,
                                  text=True)
            assert done.returncode == 1, done
            return done.stderr

    assert "unknown section type 'nl80211'" in refused("config nl80211\n option interface wlan0")
    assert "numbers from 1 to 65535" in refused("config tcp\n option port http")
    assert "list of networks" in refused("config tcp\n option peer 10.0.0.0/40")
    assert "nothing to collect" in refused("")
    usage = subprocess.run([str(BINARY), "--help"], capture_output=True, text=True).stdout
    assert "usage: oal-host" in usage and "ap-exporter" not in usage, usage


if __name__ == "__main__":
    sys.exit(run_here(globals()))
