"""A push service for tests: real HTTPS with client certificates, scripted per AP; and bundles, good ones and others.

Runs under the Python of schema/requirements.txt (numpy, cryptography).
"""
import datetime
import ipaddress
import json
import socket
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "schema" / "src"))
from oal_schema import bundle as bundles  # noqa: E402
from oal_schema import keys  # noqa: E402
from oal_schema import policy as policies  # noqa: E402
from oal_schema.bundle_law import FAIR_WINDOW, RWND_FAIR, Law  # noqa: E402
from oal_schema.bundle_wire import BUNDLE, SIGNED, parse, write  # noqa: E402
from oal_schema.grant import grant  # noqa: E402
from oal_schema.program_file import from_bytes, program_hash  # noqa: E402
from oal_schema.tree import Tree  # noqa: E402

DIRECT = Law("direct", "flow", "rwnd", (0, 0, 60_000, 30_000))  # of every policy here but rwnd-fair
OF_HOSTS = Law("direct", "destination", "cc", (1, 2, 1, 2))
HOUR, DAY = datetime.timedelta(hours=1), datetime.timedelta(days=1)


class Authority:
    """A certificate authority, by itself or below another, and certificates of servers and APs in PEM files."""

    def __init__(self, folder: Path, name: str = "test-ca", above: "Authority | None" = None):
        self.folder, self.key = folder, ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.path = folder / f"{name}.pem"
        self.certificate = (above or self).certify(self.name, self.key.public_key(), ca=True)
        self.path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def certify(
        self, subject: x509.Name, public_key, ca=False, address=None, begins=-HOUR, ends=DAY
    ) -> x509.Certificate:
        """Valid from now + begins to now + ends."""
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + begins)
            .not_valid_after(now + ends)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if address:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False
            )
        return builder.sign(self.key, hashes.SHA256())

    def issue(self, cn: str, ou: str = "ap", address: str | None = None, **validity) -> x509.Certificate:
        """CN.pem, with the authority's own certificate if that is below another, and CN.key in the folder."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, ou), x509.NameAttribute(NameOID.COMMON_NAME, cn)]
        )
        certificate = self.certify(subject, key.public_key(), address=address, **validity)
        chain = [certificate] + [self.certificate] * (self.certificate.issuer != self.name)
        (self.folder / f"{cn}.pem").write_bytes(b"".join(c.public_bytes(serialization.Encoding.PEM) for c in chain))
        (self.folder / f"{cn}.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        (self.folder / f"{cn}.key").chmod(0o600)
        return certificate


class Maker:
    """Signed bundles of small trees. Serials grow."""

    def __init__(self):
        self.key, self.trainer = (Ed25519PrivateKey.from_private_bytes(bytes([n] * 32)) for n in (1, 2))
        self.serial = 1_800_000_000_000_000
        self.congestion = from_bytes((ROOT / "schema" / "generated" / "features" / "congestion.oalf").read_bytes())

    def trusted(self, path: Path) -> None:
        path.write_text(self.trusted_lines())

    def trusted_lines(self) -> str:
        """A file of trusted keys: one for what the registry signs, one for online trees."""
        lines = [keys.public_line(self.key, "test", grant("registry"))]
        lines += [keys.public_line(self.trainer, "test-online", grant("trainer"))]
        return "\n".join(["# test keys", *lines, ""])

    def program(self, features: int = 0):
        """The congestion program, or its first `features`."""
        words, interval = self.congestion
        return (list(words)[:features] if features else list(words)), interval

    def payload(
        self,
        *,
        target="fleet",
        threshold=1000,
        rollback=(),
        policy=policies.PREDICT_ONLY,
        serial=None,
        version=1,
        source="registry",
        features=0,
        large=False,
        of_policy=RWND_FAIR,
        classes=(0, 2),
        law=None,
    ) -> bytes:
        """`classes`: of the tree's two leaves."""
        words, interval = self.program(features)
        self.serial += 1
        feature_hash = int.from_bytes(program_hash(words, interval)[:8], "big")
        tree = (
            large_tree(feature_hash)
            if large
            else Tree(
                feature=np.array([0, -1, -1], np.int32),
                threshold=np.array([threshold, 0, 0], np.int64),
                right=np.array([2, 0, 0], np.int32),
                missing_right=np.array([False] * 3),
                leaf_class=np.array([0, *classes], np.uint8),
                leaf_permille=np.array([[0, 0, 0], [100, 0, 0], [0, 700, 200]], np.uint16),
                feature_hash=feature_hash,
            )
        )
        return bundles.encode(
            bundles.Bundle(
                serial or self.serial,
                target,
                source,
                "congestion",
                version,
                list(rollback),
                words,
                interval,
                bundles.models_of(tree),
                policy=policy,
                law=law or (FAIR_WINDOW if of_policy == RWND_FAIR else DIRECT),
                of_policy=of_policy,
            )
        )

    def sign(self, payload: bytes, key=None) -> bytes:
        """`key`: else the one that may sign what the payload says it is."""
        is_online = key is None and parse(BUNDLE, payload)["source"] == bundles.SOURCES["online"]
        return bundles.sign(payload, key or (self.trainer if is_online else self.key))

    def good(self, **k) -> bytes:
        return self.sign(self.payload(**k))

    def changed(self, change, **k) -> bytes:
        """A signed bundle whose payload `change` has been at, past the encoder's checks."""
        values = parse(BUNDLE, self.payload(**k))
        change(values)
        return self.sign(write(BUNDLE, values))


def large_tree(feature_hash: int, nodes: int = 255) -> Tree:
    """A balanced tree over the first features: as large as an AP's may get."""
    feature, threshold, right = [], [], []

    def grow(n: int, depth: int) -> None:
        at = len(feature)
        feature.append(depth if n > 1 else -1)
        threshold.append(1000 * depth if n > 1 else 0)
        right.append(0)
        if n > 1:
            grow((n - 1) // 2, depth + 1)
            right[at] = len(feature)
            grow(n - 1 - (n - 1) // 2, depth + 1)
    grow(nodes, 0)
    leaf = np.array(feature) < 0
    return Tree(
        np.array(feature, np.int32),
        np.array(threshold, np.int64),
        np.array(right, np.int32),
        np.zeros(nodes, bool),
        np.where(leaf, np.arange(nodes) % 4, 0).astype(np.uint8),
        np.where(leaf[:, None], [[100, 200, 300]], 0).astype(np.uint16),
        feature_hash,
    )


def neighbour(ap: str, **figures) -> dict:
    """An AP as ap.neighbours.v1 and the service have it."""
    return {
        "ap_id": ap,
        "stations": 3,
        "tx_kbps": 9000,
        "tx_airtime_permille": 410,
        "busy_permille": 700,
        "loss_permille": 12,
        "backlog_bytes": 30000,
        "age_ms": 1200,
        **figures,
    }


def etag(signed: bytes) -> str:
    """Hash of a signed bundle's payload, in hex."""
    return bundles.bundle_hash(parse(SIGNED, signed)["payload"]).hex()


def number(signed: bytes) -> int:
    """Its 63-bit number."""
    return bundles.bundle_id(bytes.fromhex(etag(signed)))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    def reply(self, status: int, headers: dict | None = None, body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def identity(self) -> tuple[str, str]:
        subject = dict(pair for rdn in self.connection.getpeercert()["subject"] for pair in rdn)
        return subject["commonName"], subject["organizationalUnitName"]

    def do_GET(self):
        service, ap = self.server.service, self.path.split("/")[3]
        if self.identity() != (ap, "ap"):
            return self.reply(403, body=b"certificate is not of this AP")
        address = urlsplit(self.path)
        if address.path.endswith("/neighbours"):
            return self.neighbours(ap, {k: v[0] for k, v in parse_qs(address.query, strict_parsing=True).items()})
        with service.changed:
            service.polls.append((ap, dict(self.headers.items())))
            service.serials.append(int(self.connection.getpeercert()["serialNumber"], 16))
            service.changed.notify_all()
        script = service.scripts.get(ap)
        if script:
            return script(self)
        told, several = self.headers.get("OAL-Control"), ap in service.others
        tags = [t.strip() for t in self.headers.get("If-None-Match", "").split(",") if t.strip()]
        if len(tags) > 1 and not several:
            return self.reply(400, body=b"If-None-Match must be one hash")  # as a service of before
        names = self.headers["OAL-Policies"].split() if several else [RWND_FAIR] * len(tags)
        assert len(names) == len(tags), (names, tags)
        held = dict(zip(names, tags))
        until = time.monotonic() + min(int(self.headers["Prefer"].partition("=")[2]), service.longest_wait_s)
        with service.changed:
            service.changed.wait_for(
                lambda: service.stopping
                or ap in service.scripts
                or (ap in service.others) != several
                or service.news(ap, held)
                or service.is_control_news(ap, told)
                or service.killed.get(ap) not in (None, self.headers["OAL-Killed"])
                or (several and set(held) - {RWND_FAIR, *service.others[ap]}),
                until - time.monotonic(),
            )
            news, wanted = service.news(ap, held), service.wanted(ap)
            if service.stopping:
                self.close_connection = True
                return None
            headers = {"OAL-Control": service.control[ap]} if ap in service.control else {}
            if ap in service.killed:
                headers["OAL-Killed"] = service.killed[ap]
        if several:
            headers["OAL-Policies"] = " ".join(wanted)
        if not wanted:
            return self.reply(204, headers)
        if not news:
            return self.reply(304, headers)
        if several:
            headers["OAL-Policy"] = news
        signed, extra = wanted[news]
        self.reply(
            200,
            {
                **headers,
                "ETag": f'"{etag_of(wanted[news])}"',
                "Content-Type": "application/vnd.oal.bundle",
                **extra,
            },
            signed,
        )

    def neighbours(self, ap: str, query: dict):
        service, channel = self.server.service, (query["site"], int(query["frequency_mhz"]))
        with service.changed:
            service.asked.append((ap, *channel))
        answer = service.neighbours.get(channel)
        if callable(answer):
            return answer(self)
        if answer is None:
            return self.reply(204)
        tag = f'"{hash(str(answer)):x}"'
        if self.headers.get("If-None-Match") == tag:
            return self.reply(304, {"ETag": tag})
        body = {
            "site": channel[0],
            "frequency_mhz": channel[1],
            "t_us": time.time_ns() // 1000 - 1_200_000,
            "aps": [a for a in answer if a["ap_id"] != ap],
        }
        self.reply(200, {"ETag": tag, "Content-Type": "application/json"}, json.dumps(body).encode())

    def do_POST(self):
        service, ap = self.server.service, self.path.split("/")[3]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.identity() != (ap, "ap"):
            return self.reply(403)
        if self.path.endswith("/certificate"):
            return service.renew(self, ap, body)
        if service.refuse_reports:
            return self.reply(503, {"Retry-After": "0"})
        with service.changed:
            service.reports.append((ap, body))
        self.reply(204)


def etag_of(wanted) -> str:
    signed, extra = wanted
    try:
        return etag(signed)
    except Exception:
        return bundles.bundle_hash(signed).hex()


class Service:
    """The service on a port of its own choice. `desired`: per AP (signed bundle, extra headers); `control`: per AP on
    or off, without one the header is left out, as an older service does; `killed`: likewise policies that are off by
    themselves; `neighbours`: per (site, MHz) what it says of the APs there, or an answer of its own;
    `scripts`: per AP an answer of its own; `others`: per AP, policies besides rwnd-fair.
    """

    def __init__(self, authority: Authority, port: int = 0, certificate: str = "server"):
        self.desired, self.control, self.scripts, self.polls, self.serials, self.reports = {}, {}, {}, [], [], []
        self.neighbours, self.asked, self.others, self.killed = {}, [], {}, {}
        self.renew = lambda handler, ap, body: handler.reply(404)  # POST …/certificate
        self.changed, self.stopping, self.refuse_reports, self.longest_wait_s = threading.Condition(), False, False, 60
        if not (authority.folder / f"{certificate}.pem").exists():
            authority.issue(certificate, "push", "127.0.0.1")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(authority.folder / f"{certificate}.pem", authority.folder / f"{certificate}.key")
        tls.load_verify_locations(authority.path)
        tls.verify_mode = ssl.CERT_REQUIRED

        class Server(ThreadingHTTPServer):
            daemon_threads, allow_reuse_address, request_queue_size = True, True, 256

            def get_request(self):
                connection, peer = self.socket.accept()
                connection.settimeout(30)
                return tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), peer

            def handle_error(self, *_):
                pass  # a client that goes away, or may not come in

            def process_request(self, request, peer):
                self.connections.add(request)
                super().process_request(request, peer)

            def shutdown_request(self, request):
                self.connections.discard(request)
                super().shutdown_request(request)

        self.server = Server(("127.0.0.1", port), Handler)
        self.server.service, self.server.connections = self, set()
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def wanted(self, ap: str) -> dict:
        """What this AP should have, by policy: rwnd-fair first, then by name. Under `changed`."""
        first = {RWND_FAIR: self.desired[ap]} if ap in self.desired else {}
        return first | dict(sorted(self.others.get(ap, {}).items()))

    def news(self, ap: str, held: dict) -> str | None:
        """The first policy with a bundle for this AP that it does not have (held: tags by policy), and has not reported
        as waiting or refused. Under `changed`."""
        for policy, wanted in self.wanted(ap).items():
            tag = etag_of(wanted)
            about = (r for a, r in reversed(self.reports) if a == ap and r.get("policy", RWND_FAIR) == policy)
            last = next(about, None)
            kept = last and last["bundle"] == tag and last["state"] in ("waiting", "rejected")
            if f'"{tag}"' != held.get(policy) and not kept:
                return policy
        return None

    def is_control_news(self, ap: str, told: str | None) -> bool:
        return ap in self.control and self.control[ap] != told

    def switch(self, ap: str, control: str | None) -> None:
        """What the kill switch says to this AP from now on: on, off, or nothing."""
        with self.changed:
            self.control.pop(ap, None) if control is None else self.control.__setitem__(ap, control)
            self.changed.notify_all()

    def kill_policies(self, ap: str, names: str) -> None:
        """Which policies the kill switch has off by themselves for this AP, a space between two names."""
        with self.changed:
            self.control.setdefault(ap, "on")
            self.killed[ap] = names
            self.changed.notify_all()

    def want(self, ap: str, signed: bytes, **headers) -> None:
        with self.changed:
            self.desired[ap] = (signed, {k.replace("_", "-"): v for k, v in headers.items()})
            self.changed.notify_all()

    def want_others(self, ap: str, **others: bytes) -> None:
        """The policies besides rwnd-fair that this AP should have from now on, with their bundles. Before the first
        call the service knows of no other policy."""
        with self.changed:
            self.others[ap] = {name: (signed, {}) for name, signed in others.items()}
            self.changed.notify_all()

    def forget_others(self, ap: str) -> None:
        """It is an older service from now on."""
        with self.changed:
            self.others.pop(ap)
            self.changed.notify_all()

    def script(self, ap: str, answer) -> None:
        """`answer(handler)` serves this AP's polls from now on; None: as usual."""
        with self.changed:
            self.scripts.pop(ap, None) if answer is None else self.scripts.__setitem__(ap, answer)
            self.changed.notify_all()

    def told(self, ap: str) -> list[tuple[str, str, str]]:
        """(state, reason, bundle) as reported, oldest first."""
        with self.changed:
            return [(r["state"], r["reason"], r["bundle"]) for a, r in self.reports if a == ap]

    def stop(self) -> None:
        """As a killed server: the port closes, so do its connections."""
        with self.changed:
            self.stopping = True
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()
        for connection in list(self.server.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it is gone already
        self.thread.join()


def main() -> None:
    """usage: push_service.py FOLDER AP [control]: makes certificates and keys in FOLDER, prints the port, and serves
    AP one bundle of 255 nodes until its input ends;
    its policy predicts, or with `control` enforces with every number's default."""
    folder, ap = Path(sys.argv[1]), sys.argv[2]
    maker, authority = Maker(), Authority(folder, "push-ca")
    maker.trusted(folder / "trusted")
    authority.issue(ap)
    service = Service(authority, certificate="push")
    policy = policies.make("default", 1, policies.ENFORCE) if sys.argv[3:] == ["control"] else policies.PREDICT_ONLY
    service.want(ap, maker.good(large=True, policy=policy))
    print(service.port, flush=True)
    sys.stdin.read()
    service.stop()


if __name__ == "__main__":
    main()
