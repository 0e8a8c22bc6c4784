"""The CAs of a folder: a root, and below it one for each kind of certificate: access points', people's, services'.

An issuing CA can name nobody outside its own OU: its certificate carries a name constraint, which Java and OpenSSL
enforce. It is not critical, because Go's verifier would refuse what it does not know; who verifies with Go looks at the
OU itself. So the push service, which holds the APs' CA for enrolment, cannot make a service's certificate even when it
is taken over.

ca.crt holds the root, and while it is being replaced (root.py) the old and the new one; ca.key belongs to the first in
it. The root's key signs the issuing CAs and nothing else: it need not be there, until they lapse.
"""
import datetime
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from oal_pki import folder as files
from oal_pki import names
from oal_pki.errors import PkiError
from oal_pki.folder import Folder

ROOT_DAYS = 3650
ISSUING_DAYS = 1825
DAYS = 825  # of what is issued by hand; an AP that enrols gets 30
ISSUING = {"ap": "ap-ca", "operator": "ops-ca", "service": "svc-ca"}  # file by role
CLOCK_SKEW = datetime.timedelta(days=1)  # clocks of APs may be behind


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def pem(key) -> str:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                             serialization.NoEncryption()).decode()


def text(*certificates: x509.Certificate) -> str:
    return "".join(c.public_bytes(serialization.Encoding.PEM).decode() for c in certificates)


def builder(name: x509.Name, issuer: x509.Name, public_key, days: float,
            at: datetime.datetime) -> x509.CertificateBuilder:
    return (x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(public_key).serial_number(
        x509.random_serial_number()).not_valid_before(min(at, at + datetime.timedelta(days=days))
                                                      - CLOCK_SKEW).not_valid_after(at + datetime.timedelta(days=days)))


def key_usage(*wanted: str) -> x509.KeyUsage:
    known = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")
    return x509.KeyUsage(**{name: name in wanted for name in known})


def load_key(path: Path):
    try:
        return serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise PkiError(f"{path} is not a private key in PEM without a password: {error}") from None


def load_certificates(path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError) as error:
        raise PkiError(f"{path} holds no certificate in PEM: {error}") from None


def lapses_soon(certificate: x509.Certificate, at: datetime.datetime) -> bool:
    """Less than a third of its life is left: time to issue it anew."""
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_after_utc - at < life / 3


def issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except Exception:  # a signature of another key, another issuer's name, another kind of key
        return False
    return True


@dataclass
class Issuer:
    """A CA that can sign: its key, its certificate, and what a client must send with a certificate of it."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...]  # up to the root, without it

    def sign(self, request: x509.CertificateBuilder) -> x509.Certificate:
        identifier = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        return (request.add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
                                      critical=False).sign(self.key, hashes.SHA256()))


def make_root(at: datetime.datetime | None = None) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    # A name of its own, so that no verifier takes one root for another while there are two.
    name = names.subject(f"oal root {secrets.token_hex(4)}", "ca")
    certificate = (builder(name, name, key.public_key(), ROOT_DAYS, at or now())
                   .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
                   .add_extension(key_usage("key_cert_sign", "crl_sign"), critical=True)
                   .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
                   .sign(key, hashes.SHA256()))
    return key, certificate


def make_issuing(root: Issuer, role: str,
                 at: datetime.datetime | None = None) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    """A CA below `root` that can sign certificates of one OU: clients', of services servers' too."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = names.subject(f"oal {role} CA {secrets.token_hex(4)}", "ca")
    permitted = [x509.DirectoryName(names.role_subtree(role))]
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if role == "service" else [])]
    request = (builder(name, root.certificate.subject, key.public_key(), ISSUING_DAYS, at or now()).add_extension(
        x509.BasicConstraints(ca=True, path_length=0),
        critical=True).add_extension(key_usage("key_cert_sign", "crl_sign"), critical=True).add_extension(
            x509.ExtendedKeyUsage(purposes), critical=False).add_extension(
                x509.NameConstraints(permitted_subtrees=permitted, excluded_subtrees=None),
                critical=False).add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()),
                                              critical=False))
    return key, root.sign(request)


class Authority:
    """The CAs of one folder, made on first use. `keep_root_key` False: the key of a root that is made now is not
    written down; one that is there stays.
    """

    def __init__(self, folder: Folder, keep_root_key: bool = True):
        self.folder = folder
        key = self._make_root(keep_root_key)
        self.roots = load_certificates(folder.pki / "ca.crt")
        if key is None and (folder.pki / "ca.key").exists():
            key = load_key(folder.pki / "ca.key")
            if key.public_key() != self.roots[0].public_key():
                raise PkiError(f"{folder.pki}: ca.key does not belong to the first certificate of ca.crt; restore both"
                               " from one backup")
        #: None: its key is elsewhere.
        self.root = Issuer(key, self.roots[0], ()) if key else None
        self.issuing = {role: self._issuing(role, name) for role, name in ISSUING.items()}

    def _make_root(self, keep_key: bool) -> ec.EllipticCurvePrivateKey | None:
        """The key of a root that was made; None when there is one."""
        pki = self.folder.pki
        if (pki / "ca.crt").exists():
            limits = load_certificates(pki / "ca.crt")[0].extensions.get_extension_for_class(
                x509.BasicConstraints).value
            if limits.path_length != 0:
                return None
            # Of a version before there were issuing CAs, and it cannot sign one: everything begins anew.
            for certificate in pki.glob("*.crt"):
                certificate.unlink()
        key, certificate = make_root()
        if keep_key:
            files.write(pki / "ca.key", pem(key))
        else:
            # What it signs is written first: cut short, the next try makes another root and loses nothing.
            self.roots, self.root = [certificate], Issuer(key, certificate, ())
            for role, name in ISSUING.items():
                self._issuing(role, name)
            (pki / "ca.key").unlink(missing_ok=True)
        files.write(pki / "ca.crt", text(certificate), 0o644)
        return key

    def _issuing(self, role: str, name: str) -> Issuer:
        """The issuing CA of a role: what is there, unless it lapses or the root is another one by now. Without the
        root's key it is what is there until its end.
        """
        key_file, certificate_file = self.folder.pki / f"{name}.key", self.folder.pki / f"{name}.crt"
        if certificate_file.exists() and key_file.exists():
            key, certificate = load_key(key_file), load_certificates(certificate_file)[0]
            good = key.public_key() == certificate.public_key() and issued_by(certificate, self.roots[0])
            over = lapses_soon(certificate, now()) if self.root else certificate.not_valid_after_utc < now()
            if good and not over:
                return Issuer(key, certificate, (certificate,))
        if self.root is None:
            raise PkiError(
                f"{certificate_file} is missing or has lapsed, and {self.folder.pki}/ca.key, which signs another, is"
                " not here: put it there for this command, or replace the root (oal-ca root rotate)")
        key, certificate = make_issuing(self.root, role)
        files.write(key_file, pem(key))
        files.write(certificate_file, text(certificate), 0o644)
        return Issuer(key, certificate, (certificate,))

    def issuer(self, role: str) -> Issuer:
        return self.issuing[role]

    def issue(self, name: str, role: str, alternatives=(), client: bool = True, server: bool = False,
              use_rsa: bool = False, days: float = DAYS, at: datetime.datetime | None = None) -> bool:
        """Write NAME.key, NAME.crt (with the chain below the root) and NAME.pem (key, chain, roots: Java's PEM stores)
        unless a certificate that says the same and does not lapse soon is there. True when it was written."""
        pki, issuer = self.folder.pki, self.issuer(role)
        key_file, certificate_file = pki / f"{name}.key", pki / f"{name}.crt"
        wanted = list(dict.fromkeys(alternatives))
        if certificate_file.exists():
            chain = load_certificates(certificate_file)
            present, had = chain[0], alternative_names(chain[0])
            if names.role(present.subject) != role:
                raise PkiError(
                    f"`{name}` is the name of a certificate with OU={names.role(present.subject)} already; choose"
                    " another"
                )
            if role == "service":  # a server keeps the hosts it was given before; an AP has the one site it is given
                wanted = list(dict.fromkeys([*had, *wanted]))
            if had == wanted and key_file.exists() and issued_by(
                    present, issuer.certificate) and not lapses_soon(present, at or now()):
                key = load_key(key_file)
                if key.public_key() == present.public_key():
                    if not (pki / f"{name}.pem").exists():
                        self._write_pem(name, key, chain)
                    return False
        key = rsa.generate_private_key(65537, 3072) if use_rsa else ec.generate_private_key(ec.SECP256R1())
        chain = [certify(issuer, key.public_key(), name, role, wanted, client, server, days, at), *issuer.chain]
        files.write(key_file, pem(key))
        files.write(certificate_file, text(*chain), 0o644)
        self._write_pem(name, key, chain)
        return True

    def _write_pem(self, name: str, key, chain) -> None:
        files.write(self.folder.pki / f"{name}.pem", pem(key) + text(*chain, *self.roots))


def certify(issuer: Issuer, public_key, name: str, role: str, alternatives=(), client: bool = True,
            server: bool = False, days: float = DAYS, at: datetime.datetime | None = None) -> x509.Certificate:
    """The certificate of a public key, which ends with its issuer's at the latest."""
    at = at or now()
    days = min(days, (issuer.certificate.not_valid_after_utc - at) / datetime.timedelta(days=1))
    purposes = [
        *([ExtendedKeyUsageOID.CLIENT_AUTH] if client else []), *([ExtendedKeyUsageOID.SERVER_AUTH] if server else [])
    ]
    usage = ["digital_signature", *(["key_encipherment"] if isinstance(public_key, rsa.RSAPublicKey) else [])]
    request = (builder(names.subject(name, role), issuer.certificate.subject, public_key, days, at)
               .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
               .add_extension(key_usage(*usage), critical=True)
               .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
               .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False))
    if alternatives:
        request = request.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return issuer.sign(request)


def alternative_names(certificate: x509.Certificate) -> list[x509.GeneralName]:
    try:
        return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []
