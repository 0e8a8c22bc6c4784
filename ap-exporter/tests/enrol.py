#!/usr/bin/env python3
"""ap-exporter enrol, and the agent's renewal of its certificate, against real HTTPS services with real certificates.

Each function named t_… is a test, its docstring the sentence it proves. usage: tests/enrol.py [BINARY COUNT_MALLOC_SO
[NAME…]]
Without arguments the built daemon is tested, and the one with sanitizers. Prints "ok …" / "not ok …" lines and "# N
passed, N failed".
"""

import base64
import datetime
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import agent  # noqa: F401  # finds the Python of schema/requirements.txt
import outside
from agent import Site, applied, in_force, run_both
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from oal_schema import mac
from outside import Daemon, Folder, until
from push_service import DAY, HOUR, Authority, Maker, Service, etag

SECOND = datetime.timedelta(seconds=1)
MASTERS = {1: bytes(range(32)), 3: b"\x07" * 32}
SITE = "hall-1"


def pem(certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


class Issuer:
    """Signs requests with an authority of its own for APs, under the platform's root: as the push service does."""

    def __init__(self, root: Authority):
        self.root, self.authority = root, Authority(root.folder, "ap-ca", above=root)
        self.serials = []

    def certify(self, public_key, cn: str, begins=-HOUR, ends=30 * DAY):
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, "oal"),
                x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "ap"),
                x509.NameAttribute(NameOID.COMMON_NAME, cn),
            ]
        )
        c = self.authority.certify(subject, public_key, begins=begins, ends=ends)
        self.serials.append(c.serial_number)
        return c

    def answer(self, ap: str, site: str, csr: str, **validity) -> dict:
        request = x509.load_pem_x509_csr(csr.encode())
        assert (
            request.is_signature_valid
            and isinstance(request.public_key(), ec.EllipticCurvePublicKey)
            and request.public_key().curve.name == "secp256r1"
        )
        assert request.subject.rfc4514_string() == f"CN={ap},OU=ap,O=oal", request.subject
        c = self.certify(request.public_key(), ap, **validity)
        return {
            "ap_id": ap,
            "site": site,
            "certificate": pem(c) + pem(self.authority.certificate),
            "ca": self.root.path.read_text(),
            "mac_keys": mac.ap_lines(MASTERS, [(ap, site)]),
            "trusted_keys": Maker().trusted_lines(),
            "not_after_us": int(c.not_valid_after_utc.timestamp() * 1e6),
        }


class Enrolment:
    """The push service's listener for APs that have no certificate yet: tokens are good once. `change` may spoil an
    answer; `status` is answered instead of one."""

    def __init__(self, authority: Authority, issuer: Issuer, begins=-HOUR, ends=DAY):
        self.issuer, self.tokens, self.asked, self.change, self.status, self.validity, self.lost = (
            issuer,
            {},
            [],
            lambda answer: answer,
            0,
            {},
            0,
        )
        authority.issue("enrolment", "push", "127.0.0.1", begins=begins, ends=ends)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(authority.folder / "enrolment.pem", authority.folder / "enrolment.key")
        enrolment = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert self.path == "/v1/enrol" and set(body) == {"token", "csr"}
                enrolment.asked.append(body)
                if enrolment.lost:
                    enrolment.lost -= 1
                    self.close_connection = True
                    return  # as if the answer were lost on its way
                known = enrolment.tokens.pop(body["token"], None)
                status = enrolment.status or (200 if known else 401)
                answer = b"no such token\n"
                if status == 200:
                    answer = enrolment.change(enrolment.issuer.answer(*known, body["csr"], **enrolment.validity))
                    answer = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def get_request(self):
                connection, peer = self.socket.accept()
                connection.settimeout(30)
                return tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), peer

            def handle_error(self, *_):
                pass  # clients that do not trust this service

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def ticket(self, authority: Authority, ap: str = "ap-test", site: str = SITE, **change) -> str:
        token = base64.b64encode(os.urandom(32)).decode()
        self.tokens[token] = (ap, site)
        fields = {
            "v": 1,
            "url": self.url,
            "ap_id": ap,
            "site": site,
            "token": token,
            "ca": authority.path.read_text(),
            **change,
        }
        return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Place:
    """A folder with a configuration that names files for Kafka and the agent, and an enrolment service."""

    def __init__(self, folder: Path, **validity):
        self.folder, self.authority = folder, Authority(folder, "root")
        self.issuer = Issuer(self.authority)
        self.service = Enrolment(self.authority, self.issuer, **validity)
        self.files = {
            "ca": folder / "etc" / "ca.pem",
            "cert": folder / "etc" / "ap.pem",
            "key": folder / "etc" / "ap.key",
            "mac": folder / "etc" / "mac-keys",
            "trusted": folder / "etc" / "trusted-keys",
        }
        (folder / "etc").mkdir()
        self.config(f"\toption ap_id 'ap-test'\n\toption site '{SITE}'\n")

    def config(self, names: str) -> None:
        f = self.files
        (self.folder / "config").write_text(f"""config exporter
{names}config qdisc
	option interface lo
config kafka
	option brokers '127.0.0.1:9'
	option ca '{f["ca"]}'
	option certificate '{f["cert"]}'
	option key '{f["key"]}'
	option mac_keys '{f["mac"]}'
config agent
	option url 'https://127.0.0.1:9'
	option ca '{f["ca"]}'
	option cert '{f["cert"]}'
	option key '{f["key"]}'
	option trusted_keys '{f["trusted"]}'
""")

    def enrol(self, ticket: str, by_input: bool = False):
        command = [str(outside.BINARY), "enrol", "-c", str(self.folder / "config"), "-" if by_input else ticket]
        return subprocess.run(
            command, input=ticket + "\n" if by_input else "", capture_output=True, text=True, timeout=90
        )

    def contents(self) -> dict:
        return {p.name: p.read_text() for p in sorted((self.folder / "etc").iterdir()) if p.is_file()}


@contextmanager
def place(**validity):
    with Folder() as folder:
        here = Place(folder, **validity)
        try:
            yield here
        finally:
            here.service.stop()


def refused(here: Place, ticket: str, *words: str, asked: int | None = None) -> None:
    before, questions = here.contents(), len(here.service.asked)
    done = here.enrol(ticket)
    assert done.returncode == 1 and all(w in done.stderr for w in ("not enrolled", *words)), (words, done)
    assert here.contents() == before, "a refused enrolment changed files"
    assert asked is None or len(here.service.asked) - questions == asked, (
        "the ticket was used up" if not asked else "the ticket was not used"
    )


def t_enrol():
    """a ticket becomes key, certificate, authority, MAC key and trusted keys in the files that the configuration
    names, and the exporter takes them"""
    for by_input in (False, True):
        with place() as here:
            done = here.enrol(here.service.ticket(here.authority), by_input)
            assert done.returncode == 0 and done.stderr == "", done
            assert (
                "AP ap-test at site hall-1 is enrolled" in done.stdout
                and str(here.files["key"]) in done.stdout
                and "uci set" not in done.stdout
            ), done.stdout
            assert sorted(here.contents()) == [
                "ap.key",
                "ap.pem",
                "ca.pem",
                "mac-keys",
                "trusted-keys",
            ], here.contents()
            assert {n: oct(p.stat().st_mode & 0o777) for n, p in here.files.items()} == {
                "ca": "0o644",
                "cert": "0o644",
                "key": "0o600",
                "mac": "0o600",
                "trusted": "0o644",
            }
            chain = x509.load_pem_x509_certificates(here.files["cert"].read_bytes())
            key = serialization.load_pem_private_key(here.files["key"].read_bytes(), None)
            assert (
                chain[0].public_key() == key.public_key()
                and chain[1] == here.issuer.authority.certificate
                and here.files["ca"].read_text() == here.authority.path.read_text()
            )
            assert (
                here.files["mac"].read_text() == mac.ap_lines(MASTERS, [("ap-test", SITE)])
                and " 3 " in here.files["mac"].read_text()
            )
            check = subprocess.run(
                [str(outside.BINARY), "check-config", "-c", str(here.folder / "config")], capture_output=True, text=True
            )
            assert check.returncode == 0, check.stderr
            old = here.contents()
            assert here.enrol(here.service.ticket(here.authority)).returncode == 0
            assert {n for n, text in here.contents().items() if text != old[n]} == {
                "ap.key",
                "ap.pem",
            }, "a second ticket renews key and certificate"


def t_ticket_used():
    """a used or lapsed ticket is refused with where a new one comes from, and the files stay"""
    with place() as here:
        ticket = here.service.ticket(here.authority)
        assert here.enrol(ticket).returncode == 0
        refused(here, ticket, "401", "has been used or has lapsed", "oal-deploy ctl ticket ap-test", asked=1)
        for status, words in (
            (400, "certificate request"),
            (403, "oal-deploy ctl restore"),
            (404, "enrol_listen"),
            (429, "too many attempts"),
            (500, "try again later"),
        ):
            here.service.status = status
            refused(here, here.service.ticket(here.authority), str(status), words, asked=1)


def t_lost_answer():
    """an answer that is lost on its way is asked for again with the same request, and an enrolment without any ends
    with what that means"""
    with place() as here:
        here.service.lost = 2
        done = here.enrol(here.service.ticket(here.authority))
        assert (
            done.returncode == 0 and len(here.service.asked) == 3 and here.service.asked[0] == here.service.asked[2]
        ), done
        here.service.lost = 9
        refused(here, here.service.ticket(here.authority), "no answer from", "a new one is needed", asked=3)


def t_not_a_ticket():
    """what is no ticket is refused before anything is asked"""
    with place() as here:
        good = here.service.ticket(here.authority)
        for ticket, words in (
            (good[:-9], "cut short"),
            ("", "empty"),
            ("*" * 40, "characters"),
            (base64.urlsafe_b64encode(b"[]").decode().rstrip("="), "not a ticket"),
            (here.service.ticket(here.authority, v=2), "another version"),
            (here.service.ticket(here.authority, url="http://x"), "https://"),
            (here.service.ticket(here.authority, token=""), "no token"),
            (here.service.ticket(here.authority, ca="x"), "authority"),
            (here.service.ticket(here.authority, ap_id="a/b"), "names no AP"),
            ("A" * 20000, "16 KiB"),
        ):
            if ticket:
                refused(here, ticket, words, asked=0)
        done = here.enrol("", by_input=True)
        assert done.returncode == 1 and "it is empty" in done.stderr, done


def t_foreign_service():
    """a service that the ticket's authority did not sign gets no token, and one that is not there is named"""
    with place() as here:
        other = Authority(here.folder, "other")
        refused(
            here, here.service.ticket(other), "not the service that the ticket was made for", here.service.url, asked=0
        )
        gone = here.service.ticket(here.authority, url="https://127.0.0.1:9")
        refused(here, gone, "no answer from https://127.0.0.1:9", asked=0)


def t_clock_off():
    """an AP whose clock is an hour off is told its time and the certificate's; one that only learns it from its own
    certificate is enrolled, and warned"""
    for validity in ({"begins": HOUR, "ends": DAY}, {"begins": -DAY, "ends": -HOUR}):
        with place(**validity) as here:
            certificate = x509.load_pem_x509_certificate((here.folder / "enrolment.pem").read_bytes())
            today = datetime.datetime.now(datetime.UTC).strftime("this AP's clock says %Y-%m-%d ")
            refused(
                here,
                here.service.ticket(here.authority),
                today,
                certificate.not_valid_before_utc.strftime("%H:%M:%S"),
                certificate.not_valid_after_utc.strftime("%H:%M:%S"),
                "set the clock",
                "the ticket was not used",
                asked=0,
            )
    with place() as here:
        here.service.validity = {"begins": HOUR, "ends": 2 * DAY}
        done = here.enrol(here.service.ticket(here.authority))
        assert (
            done.returncode == 0 and "this AP's clock is wrong" in done.stdout and "set the clock" in done.stdout
        ), done


def t_names():
    """a ticket of another AP or site is refused; an AP without a name is enrolled and told the uci commands"""
    with place() as here:
        refused(
            here,
            here.service.ticket(here.authority, ap="ap-2", ap_id="ap-2"),
            "for AP 'ap-2'",
            "option ap_id 'ap-test'",
            asked=0,
        )
        refused(
            here,
            here.service.ticket(here.authority, site="hall-2"),
            "site 'hall-2'",
            "option site 'hall-1'",
            "--site hall-1",
            asked=0,
        )
        here.config("")
        done = here.enrol(here.service.ticket(here.authority, ap="ap-9"))
        assert done.returncode == 0 and done.stdout.endswith(
            "now set:\nuci set ap-exporter.@exporter[0].ap_id='ap-9'\nuci set "
            "ap-exporter.@exporter[0].site='hall-1'\nuci commit ap-exporter\n"
        ), done


def t_paths():
    """a path that cannot be written, or that is named for two things, is refused before the ticket is used"""
    with place() as here:
        for change, words in (
            ({"mac": here.folder / "none" / "mac-keys"}, ("none/mac-keys", "No such file")),
            ({"key": here.folder / "config" / "ap.key"}, ("Not a directory",)),
            ({"key": here.files["cert"]}, ("for two things",)),
        ):
            good, here.files = here.files, {**here.files, **change}
            here.config("\toption ap_id 'ap-test'\n")
            refused(here, here.service.ticket(here.authority), *words, asked=0)
            here.files = good
        (here.folder / "config").write_text("config qdisc\n\toption interface lo\nconfig file\n\toption path /tmp/x\n")
        refused(here, here.service.ticket(here.authority), "names no file", asked=0)


def t_bad_answers():
    """an answer that is not for this AP, this key, this authority, or that cannot be kept whole changes no file"""
    with place() as here:
        assert here.enrol(here.service.ticket(here.authority)).returncode == 0
        stranger, foreign = ec.generate_private_key(ec.SECP256R1()).public_key(), Authority(here.folder, "foreign")

        def blocked(answer):
            here.files["trusted"].unlink()
            here.files["trusted"].mkdir()  # the last to take its place: the others must come back
            return answer
        for change, words in (
            (
                lambda a: {
                    **a,
                    "certificate": pem(here.issuer.certify(stranger, "ap-test"))
                    + pem(here.issuer.authority.certificate),
                },
                "not for this AP's new key",
            ),
            (lambda a: {**a, "ca": foreign.path.read_text()}, "not signed by the authority"),
            (
                lambda a: {
                    **a,
                    "certificate": a["certificate"].split("-----END CERTIFICATE-----")[0]
                    + "-----END CERTIFICATE-----\n",
                },
                "not signed by the authority",
            ),
            (lambda a: {**a, "ap_id": "ap-2"}, "AP 'ap-2'"),
            (lambda a: {**a, "site": ""}, "at site ''"),
            (lambda a: {**a, "mac_keys": mac.ap_lines(MASTERS, [("ap-test", "other")])}, "site 'other'"),
            (lambda a: {**a, "mac_keys": "x"}, "not a MAC key"),
            (lambda a: {**a, "mac_keys": ""}, "gave no MAC key"),
            (lambda a: {**a, "trusted_keys": "x\n"}, "not a key"),
            (lambda a: {**a, "ca": ""}, "no certificate"),
            (lambda a: json.dumps(a).encode()[:-5], "not what was asked for"),
            (lambda a: b"<html>", "not what was asked for"),
            (lambda a: {**a, "x": "y" * 70000}, "answer is too long"),
        ):
            here.service.change = change
            refused(here, here.service.ticket(here.authority), words, asked=1)
        here.service.change = blocked
        before = {n: t for n, t in here.contents().items() if n != "trusted-keys"}
        done = here.enrol(here.service.ticket(here.authority))
        assert done.returncode == 1 and "cannot write" in done.stderr and "trusted-keys" in done.stderr, done
        assert here.contents() == before, "the files are not those from before"


# --- renewal

def certificate(daemon: Daemon, ap: str = "ap-test") -> dict:
    return next(a["certificate"] for a in daemon.status()["agent"]["aps"] if a["ap_id"] == ap)


@contextmanager
def renewing(renew, begins=-60 * SECOND, ends=15 * SECOND, prepare=lambda site, service: ""):
    """(site, service, daemon, issuer, serial): an AP whose certificate has less than a third of its life left;
    `renew(issuer, ap, body)` answers, or gives a status.
    What `prepare` returns is added to the configuration."""
    with Folder() as folder:
        site = Site(folder)
        issuer, service = Issuer(site.authority), Service(site.authority)
        serial = issuer.authority.issue("ap-test", begins=begins, ends=ends).serial_number

        def answer(handler, ap, body):
            got = renew(issuer, ap, body)
            (
                handler.reply(got)
                if isinstance(got, int)
                else handler.reply(200, {"Content-Type": "application/json"}, json.dumps(got).encode())
            )
        service.renew = answer
        try:
            with Daemon(folder, site.config(service.port) + prepare(site, service)) as daemon:
                yield site, service, daemon, issuer, serial
        finally:
            service.stop()


def t_renew():
    """a certificate with less than a third of its life left is renewed with a new key; agent and Kafka sink go on with
    it, and the AP keeps its bundle"""
    asked, before = [], {}

    def renew(issuer, ap, body):
        asked.append(ap)
        return issuer.answer(ap, SITE, body["csr"])

    def prepare(site, service):
        folder = site.folder
        (folder / "kafka-ca.pem").write_text(site.authority.path.read_text())
        (folder / "mac").write_text(mac.ap_lines({1: MASTERS[1]}, [("ap-test", SITE), ("ap-other", SITE)]))
        before.update(key=(folder / "ap-test.key").read_text(), bundle=site.maker.good())
        service.want("ap-test", before["bundle"])
        return (
            f"config kafka\n\toption brokers '127.0.0.1:9'\n\toption ca '{folder}/kafka-ca.pem'\n\toption "
            f"certificate '{folder}/ap-test.pem'\n\toption key '{folder}/ap-test.key'\n"
            f"\toption mac_keys '{folder}/mac'\n"
        )
    with renewing(renew, prepare=prepare) as (site, service, daemon, issuer, old):
        folder, bundle = site.folder, before["bundle"]
        applied(daemon, "ap-test", bundle)
        until(lambda: certificate(daemon)["renewed"] == 1, f"the certificate is renewed: {daemon.log.read_text()}")
        assert (
            certificate(daemon)["days_left"] == 29 and certificate(daemon)["errors"] == 0 and asked == ["ap-test"]
        ), certificate(daemon)
        until(
            lambda: service.serials[-1] == issuer.serials[-1] and issuer.serials[-1] != old,
            "polls show the new certificate",
        )
        until(lambda: "kafka: goes on with the new certificate" in daemon.log.read_text(), "the sink takes it up")
        assert (folder / "ap-test.key").read_text() != before[
            "key"
        ] and f"{(folder / 'ap-test.key').stat().st_mode & 0o777:o}" == "600"
        assert (folder / "mac").read_text() == mac.ap_lines({1: MASTERS[1]}, [("ap-other", SITE)]) + mac.ap_lines(
            MASTERS, [("ap-test", SITE)]
        ), "another AP's key went"
        assert in_force(daemon, "ap-test") == etag(bundle) and daemon.status()["reloads"] == 0
        another = site.maker.good()
        service.want("ap-test", another)
        applied(daemon, "ap-test", another)
        boot = daemon.status()["boot_id"]
        daemon.process.send_signal(signal.SIGHUP)
        until(
            lambda: daemon.status()["reloads"] == 1 and daemon.status()["boot_id"] != boot,
            "a reload takes the new files",
        )
        until(lambda: certificate(daemon)["days_left"] == 29, "they are good")
        assert daemon.stop() == 0


def t_renewal_fails():
    """a renewal that fails is counted, told with its reason and tried again, and changes no file until it succeeds"""
    answers = [503, 404, lambda a: {**a, "ap_id": "ap-2"}, lambda a: {**a, "trusted_keys": "?"}]

    def renew(issuer, ap, body):
        good = issuer.answer(ap, SITE, body["csr"])
        if not answers:
            return good
        first = answers.pop(0)
        return first if isinstance(first, int) else first(good)
    with renewing(renew, begins=-600 * SECOND, ends=120 * SECOND) as (site, service, daemon, issuer, serial):
        before = (site.folder / "ap-test.pem").read_text()
        seen = until(
            lambda: (c := certificate(daemon))["errors"] and c["errors"] >= 1 and c, "the first failure is told"
        )
        assert seen["last_error"] and seen["renewed"] == 0 and seen["days_left"] == 0, seen
        assert (site.folder / "ap-test.pem").read_text() == before
        until(
            lambda: certificate(daemon)["renewed"] == 1,
            f"it is renewed in the end: {daemon.log.read_text()[-800:]}",
            60,
        )
        assert (
            certificate(daemon)["errors"] == 4 and certificate(daemon)["last_error"] == "" and not answers
        ), certificate(daemon)
        log = daemon.log.read_text()
        assert log.count("is not renewed") == 1 and "503" in log, "the first of a row is logged"


def t_not_due():
    """a certificate with more than a third of its life left is left alone, and status says how long it lasts"""
    with renewing(lambda issuer, ap, body: issuer.answer(ap, SITE, body["csr"]), begins=-DAY, ends=20 * DAY) as (
        _,
        service,
        daemon,
        issuer,
        serial,
    ):
        until(lambda: len(service.polls) >= 1 and daemon.status()["agent"]["polls"] >= 1, "it polls")
        seen = certificate(daemon)
        assert (seen["renewed"], seen["errors"], seen["days_left"]) == (0, 0, 19) and abs(
            seen["not_after_us"] / 1e6 - time.time() - 20 * 86400
        ) < 60, seen


if __name__ == "__main__":
    sys.exit(run_both(globals()))
