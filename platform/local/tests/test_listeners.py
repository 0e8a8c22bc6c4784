"""What listens: loopback only, and nothing that runs code without a certificate."""
import socket
import ssl
from pathlib import Path

import pytest


def listening_sockets() -> dict[str, str]:
    """Address by inode, of every listening TCP socket."""
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                found[fields[9]] = fields[1].split(":")[0]
    return found


def test_flinks_page_asks_for_an_operators_certificate(platform):
    """Not for any certificate: a service's and an access point's are refused like none."""
    import urllib.error
    import urllib.request

    from oal_local import kafka
    platform.issue_certificates("ap-page")
    assert platform.flink.get("/overview")["taskmanagers"] == 1
    none = ssl.create_default_context(cafile=str(platform.state.pki / "ca.crt"))
    for context in (none, *(kafka.tls(platform.state, name) for name in ("admin", "stream-jobs", "viewer", "ap-page"))):
        with pytest.raises((urllib.error.URLError, ConnectionError, ssl.SSLError)):
            urllib.request.urlopen(platform.flink.rest_url + "/overview", timeout=10, context=context)


def test_every_service_listens_on_loopback_only(platform):
    # 127.0.0.1 as IPv4, and mapped into IPv6, as /proc/net writes them
    loopback = {"0100007F", "0000000000000000FFFF00000100007F"}
    sockets = listening_sockets()
    for row in platform.status():
        if row["pid"] == 0:
            continue  # not started here
        links = [link.readlink().name for link in Path(f"/proc/{row['pid']}/fd").iterdir() if link.is_symlink()]
        addresses = {
            sockets[inode] for name in links if name.startswith("socket:[") and (inode := name[8:-1]) in sockets
        }
        assert addresses and addresses <= loopback, f"{row['name']} listens on {addresses}"


@pytest.mark.parametrize("port", ["flink_rpc", "flink_blob", "taskmanager_rpc"])
def test_flinks_internal_ports_ask_for_a_certificate(platform, port):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.raises((ssl.SSLError, ConnectionError)), \
            socket.create_connection(("127.0.0.1", platform.settings.ports[port]), timeout=10) as plain, \
            context.wrap_socket(plain) as channel:
        channel.sendall(b"\0")
        assert channel.recv(1) == b"", "answered"
        raise ConnectionError("closed without an answer")
