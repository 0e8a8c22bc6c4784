#!/usr/bin/env python3
"""What oal-host costs at 10,000 TCP connections: real ones, between two network namespaces, the host's end in one. CPU
of the whole daemon, kernel included, from 15 s after the start to 45 s; rows go to a file. usage: host.py BINARY
RESULT.json    (as root)"""

import json
import resource
import subprocess
import sys
from pathlib import Path

binary, result = sys.argv[1:3]
sys.argv[1:] = [binary, binary]  # outside.py takes the binary from here, and has no use for its second argument
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import outside  # noqa: E402
from result import write  # noqa: E402

CONNECTIONS, PORT = 10_000, 5300
FROM_S, TO_S = 15, 45
NEEDED_FILES = CONNECTIONS + 100

#: the host's end: every connection is kept, and each second a share of them is sent two kilobytes
SERVER = f"""
import socket, sys, threading, time
share = float(sys.argv[1])
listener = socket.create_server(("10.99.0.1", {PORT}), backlog=4096)
print("ready", flush=True)
held = []
def accept():
    while True:
        connection, _ = listener.accept()
        connection.setblocking(False)
        held.append(connection)
threading.Thread(target=accept, daemon=True).start()
short, data = socket.create_server(("10.99.0.1", {PORT + 1}), backlog=4096), b"x" * 2000
def answer():
    while True:
        connection, _ = short.accept()
        connection.send(data)
        connection.close()
threading.Thread(target=answer, daemon=True).start()
due = time.monotonic()
while True:
    due += .1
    time.sleep(max(0, due - time.monotonic()))
    now = list(held)
    part = int(due * 10) % 10
    for connection in now[: int(len(now) * share)][part::10]:
        try:
            connection.send(data)
        except BlockingIOError:
            pass
"""
#: the far end: reads what comes; with a rate, makes and ends so many further connections a second
CLIENT = f"""
import selectors, socket, sys, threading, time
rate = float(sys.argv[1])
wait = selectors.EpollSelector()
for _ in range({CONNECTIONS}):
    c = socket.create_connection(("10.99.0.1", {PORT}))
    c.setblocking(False)
    wait.register(c, selectors.EVENT_READ)
print("open", flush=True)
def churn():
    due = time.monotonic()
    while rate:
        due += 1 / rate
        time.sleep(max(0, due - time.monotonic()))
        c = socket.create_connection(("10.99.0.1", {PORT + 1}))
        while c.recv(65536):
            pass
        c.close()
threading.Thread(target=churn, daemon=True).start()
while True:
    for key, _ in wait.select():
        key.fileobj.recv(65536)
"""


def started(ns: str, code: str, argument: float, word: str) -> subprocess.Popen:
    """A program in a namespace that has said its word."""
    process = subprocess.Popen(["ip", "netns", "exec", ns, sys.executable, "-c", code, str(argument)],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == word
    return process


def measure(share: float, churn: float) -> dict:
    """CPU per mille of a core, memory, rows a second and the interval between looks."""
    with outside.Folder() as folder, outside.Wire() as wire:
        server = started(wire.ap, SERVER, share, "ready")
        client = started(wire.far, CLIENT, churn, "open")
        try:
            with outside.Daemon(folder, f"@exporter\nconfig tcp\n list port {PORT}\n list port {PORT + 1}\n",
                                wire.ap) as daemon:
                def at(seconds: int) -> dict:
                    return outside.until(lambda: (s := daemon.status())["uptime_us"] >= seconds * 1_000_000 and s,
                                         f"{seconds} s of uptime", seconds + 30)
                first, last = at(FROM_S), at(TO_S)
                assert daemon.stop() == 0
                rows = [*daemon.rows("sender_tcp")]
                ends = len(daemon.rows("sender_session"))
        finally:
            for process in (client, server):
                process.kill()
                process.wait()
    assert len({r["flow"]["id"] for r in rows}) >= CONNECTIONS, "every connection was looked at"
    assert not last["senders_refused"] and not last["rows_dropped"], last
    seconds = (last["uptime_us"] - first["uptime_us"]) / 1e6
    return {
        "permille": (last["cpu_us"] - first["cpu_us"]) / seconds / 1000,
        "rss": last["rss_bytes"],
        "rows": len(rows) / TO_S,
        "ends": ends,
        "interval_ms": rows[-1]["interval_ms"],
        "lost": last["sender_ends_lost"],
    }


soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, NEEDED_FILES), max(hard, NEEDED_FILES)))
figures = []
for name, share, churn, what in (
    ("host_cpu_idle", 0, 0, "none sends"),
    ("host_cpu_tenth", 0.1, 0, "a tenth sends each second"),
    ("host_cpu_all", 1, 0, "each sends each second"),
    ("host_cpu_churn", 0.1, 300, "a tenth sends each second, and 300 further ones a second come and go"),
):
    of = measure(share, churn)
    figures.append({
        "name": name,
        "value": round(of["permille"], 1),
        "unit": "permille of a core",
        "command": "make -C ap-exporter bench-host",
        "note": f"{CONNECTIONS:,} connections, {what}; "
                + (f"a look each {of['interval_ms']} ms in the end, " if share else "")
                + f"{of['rows']:.0f} rows/s, {of['ends']} ends (notices lost: {of['lost']} times), "
                f"{of['rss'] / 2**20:.1f} MiB resident",
    })
    print(json.dumps(figures[-1]), flush=True)
write(result, figures)
