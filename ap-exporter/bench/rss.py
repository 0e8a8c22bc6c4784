#!/usr/bin/env python3
"""Resident memory with TLS: the daemon captures and samples a busy veth pair and holds a TLS session with client
certificate.
The other end is OpenSSL's own server, which finishes the handshake and never acknowledges: so the buffer fills, which
is the worst case.
The agent holds a long poll at tests/push_service.py and decides with a bundle of 255 nodes.
usage: rss.py BINARY RESULT.json feed|debian (needs root). Four figures for `feed`, the first two for `debian`."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

result, build = sys.argv[2:4]
sys.argv[1:] = [
    sys.argv[1],
    sys.argv[1],
]  # outside.py takes the binary from here, and has no use for its second argument
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import outside  # noqa: E402
from result import write  # noqa: E402
from service import push_service  # noqa: E402


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def certificates(folder: Path) -> None:
    openssl(
        folder,
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=bench-ca",
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
    )
    (folder / "ext").write_text("subjectAltName=IP:127.0.0.1\n")
    for name in ("broker", "ap"):
        openssl(
            folder,
            "req",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            f"/CN={name}",
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.csr",
        )
        openssl(
            folder,
            "x509",
            "-req",
            "-in",
            f"{name}.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "ext",
            "-out",
            f"{name}.pem",
        )


def memory(pid: int) -> dict:
    return {
        k: int(v.split()[0]) * 1024
        for k, v in (line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        if k.startswith(("VmRSS", "Rss"))
    }


def busy_until(wire: outside.Wire, condition) -> None:
    while not condition():
        wire.transfer("10.99.0.2", 1_000_000)


def main() -> None:
    libraries = {"feed": "static, librdkafka as in the OpenWrt feed, libcurl with HTTPS alone, OpenSSL",
                 "debian": "Debian's shared librdkafka (SASL, zstd), libcurl (LDAP, SSH, HTTP/2 …) and OpenSSL"}[build]
    with tempfile.TemporaryDirectory() as name, outside.Wire() as wire:
        folder = Path(name)
        certificates(folder)
        server = subprocess.Popen(
            [
                "ip",
                "netns",
                "exec",
                wire.ap,
                "openssl",
                "s_server",
                "-accept",
                "127.0.0.1:9094",
                "-cert",
                "broker.pem",
                "-key",
                "broker.key",
                "-CAfile",
                "ca.pem",
                "-Verify",
                "1",
                "-quiet",
            ],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.PIPE,
        )
        kafka = (
            f"config kafka\n option brokers 127.0.0.1:9094\n option ca {folder}/ca.pem\n option certificate "
            f"{folder}/ap.pem\n option key {folder}/ap.key\n option flush_ms 0\n"
        )
        service, section = push_service(folder, ns=wire.ap)
        figures = []

        def figure(name: str, note: str, pid: int) -> None:
            m = memory(pid)
            figures.append(
                {
                    "name": name,
                    "value": m["VmRSS"],
                    "unit": "B",
                    "command": "make -C ap-exporter bench-rss",
                    "note": (
                        f"{note}; anonymous {m['RssAnon']}, file-backed {m['RssFile']}, shared {m['RssShmem']}; "
                        f"budget {8 << 20}"
                    ),
                }
            )
        try:
            with outside.Daemon(folder, outside.PACKET + kafka, wire.ap, file_sink=False) as daemon:
                busy_until(wire, lambda: daemon.status()["uptime_us"] > 15_000_000)
                figure(
                    f"exporter_rss_tls_{build}",
                    f"one wired port busy, TLS session with client certificate; {libraries}",
                    daemon.process.pid,
                )
            with outside.Daemon(folder, outside.PACKET + kafka + section, wire.ap, file_sink=False) as daemon:
                busy_until(wire, lambda: daemon.status()["uptime_us"] > 15_000_000)
                assert daemon.status()["agent"]["decisions"] > 50, daemon.status()["agent"]
                figure(
                    f"exporter_rss_agent_{build}",
                    f"the same with the agent: a long poll with client certificate, a bundle of 255 nodes "
                    f"that decides; {libraries}",
                    daemon.process.pid,
                )
            if build == "debian":
                return write(result, figures)
            small = kafka.replace("flush_ms 0", "flush_ms 0\n option buffer_kb 512")
            with outside.Daemon(folder, outside.PACKET + small, wire.ap, file_sink=False) as daemon:
                busy_until(
                    wire,
                    lambda: daemon.status()["uptime_us"] > 15_000_000 and daemon.status()["sinks"]["kafka"]["let_go"],
                )
                figure(
                    "exporter_rss_tls_buffer_full",
                    "the same with a 512 KiB buffer for an absent Kafka, full",
                    daemon.process.pid,
                )
            with outside.Daemon(folder, outside.PACKET, wire.ap) as daemon:
                busy_until(wire, lambda: daemon.status()["uptime_us"] > 15_000_000)
                figure("exporter_rss_file", f"file sink only, librdkafka unused; {libraries}", daemon.process.pid)
        finally:
            service.stdin.close()
            service.wait()
            server.kill()
            server.wait()
        write(result, figures)


if __name__ == "__main__":
    if os.geteuid():
        sys.exit("bench: rss.py needs root: it makes network namespaces")
    main()
