"""OpenSSL and Java, which verify for exporter, Kafka and Flink, hold the CAs to what they may sign."""
import datetime

import pytest
from oal_pki import folder as files
from oal_pki import names, platform
from oal_pki.authority import Authority, make_root, text
from verifiers import forge, java, openssl


@pytest.fixture(scope="module")
def authority(shared):
    made = Authority(shared)
    platform.access_points(made, ["ap-1"], "berlin")
    return made


def test_what_is_issued_is_trusted_by_both(shared, authority):
    roots = shared.pki / "ca.crt"
    clients = [shared.pki / f"{name}.crt" for name in ("ap-1", "trainer", "broker", "operator")]
    assert [openssl(roots, client) for client in clients] == ["OK"] * 4
    assert java(roots, *clients) == ["trusted"] * 4
    assert openssl(roots, shared.pki / "broker.crt", "sslserver") == "OK"


@pytest.mark.parametrize("issuer, name, role", [("ap", "admin", "service"), ("ap", "alice", "operator"),
                                                ("operator", "admin", "service"), ("operator", "ap-1", "ap"),
                                                ("service", "ap-1", "ap"), ("service", "alice", "operator")])
def test_an_issuing_ca_names_nobody_outside_its_ou(shared, authority, tmp_path, issuer, name, role):
    forged, honest = forge(authority, issuer, name, role, tmp_path), forge(authority, issuer, "mallory", issuer,
                                                                           tmp_path)
    roots = shared.pki / "ca.crt"
    assert "permitted subtree violation" in openssl(roots, forged)
    assert openssl(roots, honest) == "OK"  # so the name is what is wrong with the other
    refused, trusted = java(roots, forged, honest)
    assert "name constraints" in refused.lower() and trusted == "trusted"


def test_an_issuing_ca_makes_no_server_and_no_other_ca(shared, authority, tmp_path):
    roots = shared.pki / "ca.crt"
    server = forge(authority, "ap", "server", "ap", tmp_path, server=True, alternatives=[names.host("localhost")])
    assert openssl(roots, server, "sslserver") != "OK"
    from cryptography.hazmat.primitives.asymmetric import ec
    from oal_pki.authority import Issuer, certify, make_issuing
    issuer = authority.issuer("ap")
    key, below = make_issuing(Issuer(issuer.key, issuer.certificate, ()), "service")
    leaf = certify(Issuer(key, below, ()), ec.generate_private_key(ec.SECP256R1()).public_key(), "admin", "service")
    files.write(tmp_path / "deep.crt", text(leaf, below, *issuer.chain))
    assert openssl(roots, tmp_path / "deep.crt") != "OK"
    assert java(roots, tmp_path / "deep.crt")[0].startswith("refused")


def test_a_certificate_of_another_root_or_past_its_time_is_refused(shared, authority, tmp_path):
    roots = shared.pki / "ca.crt"
    _, other = make_root()
    files.write(tmp_path / "other.crt", text(other))
    assert openssl(tmp_path / "other.crt", shared.pki / "ap-1.crt") != "OK"
    lapsed = forge(authority, "ap", "ap-old", "ap", tmp_path, days=1,
                   at=datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=3))
    assert "expired" in openssl(roots, lapsed)
    first, second = java(roots, lapsed, shared.pki / "ap-1.crt")
    assert "NotAfter" in first and second == "trusted"


def test_flinks_page_trusts_people_only(shared, authority):
    """Its trust store's one anchor is the operators' CA: a service's or an access point's certificate is nothing to it.
    """
    password = (shared.pki / "flink-rest.password").read_text()
    chains = [shared.pki / f"{name}.crt" for name in ("operator", "admin", "stream-jobs", "ap-1")]
    said = java(shared.pki / "flink-rest-trust.p12", *chains, password=password)
    assert said[0] == "trusted" and all(line.startswith("refused") for line in said[1:])


def test_a_browsers_store_opens_with_its_password(shared, authority):
    from cryptography.hazmat.primitives.serialization import pkcs12
    from oal_pki import stores

    platform.person(authority, "alice")
    store, password = stores.browser(authority, "alice")
    key, certificate, chain = pkcs12.load_key_and_certificates(store.read_bytes(), password.read_bytes())
    assert key.public_key() == certificate.public_key() and names.common_name(certificate.subject) == "alice"
    assert authority.issuer("operator").certificate in chain
