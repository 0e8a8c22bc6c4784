"""Streaming from the guest: a TAP with private addresses for this run, and the loopback ports of broker and push
service offered on it.
"""
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator


class LiveError(Exception):
    """What is missing for a live run, and how to get it."""


def ports(brokers: str) -> list[int]:
    """Ports of HOST:PORT,...; the hosts must be this machine's loopback."""
    found = []
    for broker in filter(None, brokers.split(",")):
        host, _, port = broker.strip().rpartition(":")
        if host not in ("127.0.0.1", "localhost") or not port.isdigit():
            raise LiveError(
                f"{broker!r}: a live run reaches brokers and the push service on 127.0.0.1 or localhost only, as"
                " HOST:PORT"
            )
        found.append(int(port))
    return found


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise LiveError(f"ip {' '.join(words)}: {done.stderr.strip()} (a live run needs root)")


@contextlib.contextmanager
def link(kafka: dict) -> Iterator[dict]:
    """The plan's `live` part, for as long as the TAP and the forwarders exist."""
    number = os.getpid() % 16384
    tap = f"oallab{number}"
    base = f"10.213.{number // 64}"
    host, guest = f"{base}.{number % 64 * 4 + 1}", f"{base}.{number % 64 * 4 + 2}"
    forwarders: list[subprocess.Popen] = []
    listen = ports(kafka["ap"]["brokers"]) + ports(kafka["ap"].get("push_url", "").removeprefix("https://"))
    ip("tuntap", "add", tap, "mode", "tap")
    try:
        ip("addr", "add", f"{host}/30", "dev", tap)
        ip("link", "set", tap, "up")
        for port in listen:
            forwarders.append(
                subprocess.Popen(["socat", f"TCP-LISTEN:{port},bind={host},fork,reuseaddr", f"TCP:127.0.0.1:{port}"],
                                 stdin=subprocess.DEVNULL, start_new_session=True))
        time.sleep(0.2)
        for forwarder, port in zip(forwarders, listen):
            if forwarder.poll() is not None:
                raise LiveError(f"socat could not listen on {host}:{port}; its message stands above")
        yield {
            "tap": tap, "host": host, "guest": guest, "ports": listen, "kafka": kafka["ap"], "sender": kafka["sender"]
        }
    finally:
        for forwarder in forwarders:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(forwarder.pid, signal.SIGTERM)
            forwarder.wait()
        ip("link", "del", tap)
