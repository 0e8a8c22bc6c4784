"""Certificates: one CA per instance, and one certificate for each role and each AP.

The subject is `CN=<name>,OU=<role>,O=oal`. Kafka makes the principal of it (config/kafka/server.properties): OU=ap gives
User:ap whatever the CN, OU=service gives User:<CN>. The CN of an AP is its ap_id.

For NAME this writes NAME.crt, NAME.key (PKCS#8, PEM) for librdkafka and OpenSSL, and NAME.pem (key, certificate, CA) for
Java's PEM key stores. Files with a key have mode 0600. Flink's processes trust each other by one self-signed certificate of
their own, flink-internal.p12 with its password beside it: what reaches Flink's RPC port can run code.

usage: python -m oal_local.pki PKI_FOLDER [AP_ID...]
"""
import datetime
import ipaddress
import os
import re
import secrets
import sys
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from oal_local.paths import write_private

SERVICES = ("broker", "admin", "stream-jobs", "trainer", "model-registry", "deploy", "lab", "viewer")
SERVERS = ("broker", "deploy")
VALID_DAYS = 825
AP_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # 64 is the limit of a CN


def subject(name: str, role: str) -> x509.Name:
    # Encoded from the general to the special, which Java prints the other way round: CN=...,OU=...,O=oal
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "oal"),
                      x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, role),
                      x509.NameAttribute(NameOID.COMMON_NAME, name)])


def pem(key) -> str:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()


def text(certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def builder(name: x509.Name, issuer: x509.Name, public_key) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))  # clocks of APs may be behind
            .not_valid_after(now + datetime.timedelta(days=VALID_DAYS)))


class Authority:
    """The CA of one folder, made on first use."""

    def __init__(self, folder: Path):
        self.folder = folder
        key_file, certificate_file = folder / "ca.key", folder / "ca.crt"
        if not certificate_file.exists():
            self._make(key_file, certificate_file)
        self.key = serialization.load_pem_private_key(key_file.read_bytes(), None)
        self.certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())

    @staticmethod
    def _make(key_file: Path, certificate_file: Path) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = subject("oal local CA", "ca")
        usage = x509.KeyUsage(digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
                              key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False)
        certificate = (builder(name, name, key.public_key())
                       .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
                       .add_extension(usage, critical=True)
                       .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
                       .sign(key, hashes.SHA256()))
        write_private(key_file, pem(key))
        certificate_file.write_text(text(certificate))

    def issue(self, name: str, role: str, server: bool = False) -> None:
        """Write the key and certificate of NAME unless they are there. A server's is for loopback addresses only."""
        if (self.folder / f"{name}.pem").exists():
            return
        key = ec.generate_private_key(ec.SECP256R1())
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH] + ([ExtendedKeyUsageOID.SERVER_AUTH] if server else [])
        certificate = (builder(subject(name, role), self.certificate.subject, key.public_key())
                       .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
                       .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
                       .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False))
        if server:
            names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            certificate = certificate.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = certificate.sign(self.key, hashes.SHA256())
        write_private(self.folder / f"{name}.key", pem(key))
        (self.folder / f"{name}.crt").write_text(text(certificate))
        write_private(self.folder / f"{name}.pem", pem(key) + text(certificate) + text(self.certificate))

    def issue_services(self) -> None:
        for name in SERVICES:
            self.issue(name, "service", server=name in SERVERS)

    def issue_ap(self, ap_id: str) -> None:
        if not AP_ID.fullmatch(ap_id) or ap_id in SERVICES or ap_id == "ca":
            raise SystemExit(f"cert ap: `{ap_id}` cannot be an AP's id: 1 to 64 letters, digits, dots, dashes and underscores, "
                             f"and none of {', '.join(SERVICES)}, ca")
        self.issue(ap_id, "ap")


def make_flink_store(folder: Path) -> None:
    """The key store that is also the trust store of Flink's internal connections."""
    store, password_file = folder / "flink-internal.p12", folder / "flink-internal.password"
    if store.exists():
        return
    key = rsa.generate_private_key(65537, 3072)  # Flink's default cipher suites are for RSA keys
    name = subject("flink", "internal")
    certificate = builder(name, name, key.public_key()).sign(key, hashes.SHA256())
    password = secrets.token_urlsafe(24)
    write_private(password_file, password)
    data = pkcs12.serialize_key_and_certificates(b"flink", key, certificate, None, serialization.BestAvailableEncryption(password.encode()))
    temporary = store.with_suffix(".new")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    temporary.replace(store)


if __name__ == "__main__":
    authority = Authority(Path(sys.argv[1]))
    authority.issue_services()
    make_flink_store(Path(sys.argv[1]))
    for ap in sys.argv[2:]:
        authority.issue_ap(ap)
