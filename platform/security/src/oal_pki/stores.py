"""Key stores in PKCS #12, for what reads no PEM: Flink, and browsers."""
import secrets

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12

from oal_pki import folder as files
from oal_pki import names
from oal_pki.authority import DAYS, Authority, builder, lapses_soon, load_certificates, load_key, now
from oal_pki.folder import Folder


def password(folder: Folder, name: str) -> bytes:
    """Of the stores NAME*.p12, made on first use."""
    file = folder.pki / f"{name}.password"
    if not file.exists():
        files.write(file, secrets.token_urlsafe(24))
    return file.read_bytes().strip()


def _encryption(secret: bytes) -> serialization.KeySerializationEncryption:
    return serialization.BestAvailableEncryption(secret)


def flink_internal(folder: Folder) -> bool:
    """The key store that is also the trust store of Flink's internal connections: its processes trust each other by one
    self-signed certificate of their own, for what reaches Flink's RPC port can run code. True when it was written."""
    store, secret = folder.pki / "flink-internal.p12", password(folder, "flink-internal")
    if store.exists() and not lapses_soon(pkcs12.load_key_and_certificates(store.read_bytes(), secret)[1], now()):
        return False
    key = rsa.generate_private_key(65537, 3072)  # Flink's default cipher suites are for RSA keys
    name = names.subject("flink", "internal")
    certificate = builder(name, name, key.public_key(), DAYS, now()).sign(key, hashes.SHA256())
    files.write(store, pkcs12.serialize_key_and_certificates(b"flink", key, certificate, None, _encryption(secret)))
    return True


def flink_rest(authority: Authority) -> None:
    """flink-rest.p12, the server's key and certificate; flink-rest-trust.p12, whose clients may come in: people's
    certificates, and no service's or access point's, because the operators' CA is the only anchor in it."""
    folder = authority.folder
    secret = password(folder, "flink-rest")
    key, chain = load_key(folder.pki / "flink-rest.key"), load_certificates(folder.pki / "flink-rest.crt")
    _refresh(
        folder.pki / "flink-rest.p12", chain[0].public_bytes(serialization.Encoding.DER), secret,
        lambda: pkcs12.serialize_key_and_certificates(b"flink-rest", key, chain[0], chain[1:], _encryption(secret)))
    anchor = authority.issuer("operator").certificate
    # Java takes a certificate in PKCS #12 for trusted only with an attribute of its own.
    _refresh(
        folder.pki / "flink-rest-trust.p12", anchor.public_bytes(serialization.Encoding.DER), secret,
        lambda: pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(anchor, b"operators")], _encryption(secret)))


def _refresh(store, certificate_der: bytes, secret: bytes, make) -> None:
    """Write a store unless it holds this certificate already: encryption makes each writing different, and a service
    restarts when a file of it has changed."""
    if store.exists():
        _, leaf, others = pkcs12.load_key_and_certificates(store.read_bytes(), secret)
        held = [c.public_bytes(serialization.Encoding.DER) for c in (leaf, *others) if c is not None]
        if certificate_der in held:
            return
    files.write(store, make())


def browser(authority: Authority, name: str) -> tuple:
    """NAME.p12 for a browser, and the file of its password."""
    folder = authority.folder
    secret = password(folder, name)
    chain = load_certificates(folder.pki / f"{name}.crt")
    store = folder.pki / f"{name}.p12"
    files.write(
        store,
        pkcs12.serialize_key_and_certificates(name.encode(), load_key(folder.pki / f"{name}.key"), chain[0],
                                              [*chain[1:], *authority.roots], _encryption(secret)))
    return store, folder.pki / f"{name}.password"
