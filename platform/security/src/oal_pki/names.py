"""Who there is: subjects, roles, and what may stand in them.

The subject is `CN=<name>,OU=<role>,O=oal`. Kafka makes the principal of it (platform/kafka/server.properties): OU=ap
gives User:ap:<CN>, OU=service gives User:<CN> to those that Kafka knows; OU=operator is a person, and nobody there.
"""
import ipaddress
import re
from dataclasses import dataclass

from cryptography import x509
from cryptography.x509.oid import NameOID

from oal_pki.errors import PkiError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # 64 is the limit of a CN
HOST = re.compile(r"(\*\.)?[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?)*")
LOOPBACK = ("localhost", "127.0.0.1")
#: Files of pki/ that are no one's certificate.
RESERVED = ("ca", "ca-next", "ap-ca", "ops-ca", "svc-ca", "flink-internal", "flink-rest-trust", "bundle-keys")


@dataclass(frozen=True)
class Service:
    client: bool = True  # it connects to others
    server: bool = False  # others connect to it
    rsa: bool = False


#: What `init` makes.
SERVICES = {
    "broker": Service(server=True),
    "admin": Service(),
    "stream-jobs": Service(),
    "trainer": Service(server=True),
    "model-registry": Service(server=True),
    "deploy": Service(server=True),
    "lab": Service(),
    "viewer": Service(),
    "transactions": Service(),
    "clickhouse": Service(client=False, server=True),
    "postgres": Service(client=False, server=True),
    "mlflow": Service(client=False, server=True),
    "jolokia": Service(client=False, server=True, rsa=True),  # its reader of PEM knows no other keys
    "flink-rest": Service(client=False, server=True, rsa=True),  # Flink's default cipher suites are for RSA keys
}


def check(name: str, what: str) -> str:
    if not NAME.fullmatch(name) or name in RESERVED:
        raise PkiError(
            f"`{name}` cannot be {what}: 1 to 64 letters, digits, dots, dashes and underscores, the first a letter or"
            f" digit, and none of {', '.join(RESERVED)}"
        )
    return name


def check_site(site: str) -> str:
    if site and not NAME.fullmatch(site):
        raise PkiError(
            f"`{site}` cannot be a site: 1 to 64 letters, digits, dots, dashes and underscores, the first a letter or"
            " digit"
        )
    return site


def subject(name: str, role: str) -> x509.Name:
    # Encoded from the general to the special, which Java prints the other way round: CN=...,OU=...,O=oal. So O and OU
    # alone are a subtree, which the issuing CAs' name constraints permit.
    return x509.Name([*role_subtree(role), x509.NameAttribute(NameOID.COMMON_NAME, name)])


def role_subtree(role: str) -> x509.Name:
    return x509.Name([
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "oal"),
        x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, role)
    ])


def host(text: str) -> x509.GeneralName:
    """A host of a server's certificate: an address, or a name, of which the first label may be *."""
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        pass
    if not HOST.fullmatch(text) or len(text) > 253:
        raise PkiError(f"`{text}` is no host: an address, or a DNS name, of which the first label may be *")
    return x509.DNSName(text)


def site_uri(site: str) -> x509.GeneralName:
    return x509.UniformResourceIdentifier(f"urn:oal:site:{site}")


def common_name(name: x509.Name) -> str:
    return str(name.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def role(name: x509.Name) -> str:
    return str(name.get_attributes_for_oid(NameOID.ORGANIZATIONAL_UNIT_NAME)[0].value)
