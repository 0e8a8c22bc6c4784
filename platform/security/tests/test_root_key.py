"""The root's key signs the issuing CAs and nothing else: a platform runs, renews and grows without it."""
import datetime

import pytest
from conftest import ca
from oal_pki import folder as files
from oal_pki import platform, root
from oal_pki.authority import (
    Authority,
    Issuer,
    certify,
    load_certificates,
    load_key,
    make_issuing,
    make_root,
    pem,
    text,
)
from oal_pki.errors import PkiError
from oal_pki.folder import Folder
from verifiers import openssl


@pytest.fixture
def keyless(tmp_path):
    """A folder whose root's key was never written."""
    made = Folder(tmp_path / "state")
    platform.init(made, keep_root_key=False)
    return made


def trusted(folder, name: str, purpose: str = "sslclient") -> bool:
    return openssl(folder.pki / "ca.crt", folder.pki / f"{name}.crt", purpose) == "OK"


def at(days: float) -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)


def test_the_key_of_the_root_is_written_nowhere_and_everything_goes_on(keyless):
    assert not (keyless.pki / "ca.key").exists()
    anchor = load_certificates(keyless.pki / "ca.crt")[0].public_key()
    assert all(load_key(file).public_key() != anchor for file in keyless.pki.glob("*.key"))
    assert platform.init(keyless, {"broker": ["kafka"]}, keep_root_key=False) == ["broker"], "another name"
    authority = Authority(keyless)
    platform.access_points(authority, ["ap-1"])
    platform.person(authority, "alice")
    platform.service(authority, "prober", ["prober.example"])
    (keyless.pki / "trainer.crt").unlink()
    authority.issue("trainer", "service", at=at(-600))
    assert platform.init(keyless, keep_root_key=False) == ["trainer"], "it is renewed in its last third"
    assert all(trusted(keyless, name) for name in ("ap-1", "alice", "trainer"))
    assert trusted(keyless, "broker", "sslserver") and trusted(keyless, "prober", "sslserver")


def test_a_folder_of_before_keeps_its_key_and_is_told(folder, tmp_path):
    """Services were issued by the root itself."""
    authority = Authority(folder)
    for name in ("svc-ca.crt", "svc-ca.key"):
        (folder.pki / name).unlink()
    key = load_key(folder.pki / "trainer.key")
    files.write(folder.pki / "trainer.crt", text(certify(authority.root, key.public_key(), "trainer", "service")))
    before = load_certificates(folder.pki / "ca.crt")
    said = ca("init", folder.dir, "--no-root-key")
    assert "ca.key, the root's key, is here" in said and "trainer" in said
    assert (folder.pki / "ca.key").exists() and load_certificates(folder.pki / "ca.crt") == before
    assert trusted(folder, "trainer") and len(load_certificates(folder.pki / "trainer.crt")) == 2
    (folder.pki / "ca.key").rename(tmp_path / "elsewhere.key")
    assert "everything is there" in ca("init", folder.dir, "--no-root-key")


def test_an_issuing_ca_that_ends_asks_for_the_key_or_another_root(keyless):
    def ends(days: float) -> None:
        """All of a root whose issuing CAs end so."""
        key, certificate = make_root()
        files.write(keyless.pki / "ca.crt", text(certificate), 0o644)
        for role, file in (("service", "svc-ca"), ("ap", "ap-ca"), ("operator", "ops-ca")):
            issuing, signed = make_issuing(Issuer(key, certificate, ()), role, at(days - 1825))
            files.write(keyless.pki / f"{file}.key", pem(issuing))
            files.write(keyless.pki / f"{file}.crt", text(signed), 0o644)

    ends(100)  # in its last third: no reason to stop
    platform.init(keyless, keep_root_key=False)
    assert trusted(keyless, "trainer")
    leaf, issuer = load_certificates(keyless.pki / "trainer.crt")
    assert leaf.not_valid_after_utc <= issuer.not_valid_after_utc, "who looks at the leaf sees the end"
    ends(-1)
    with pytest.raises(PkiError, match="ap-ca.crt is missing or has lapsed.*root rotate"):
        platform.init(keyless, keep_root_key=False)


def test_the_root_is_replaced_without_its_key(keyless):
    old = (keyless.pki / "ca.crt").read_bytes()
    for step in (root.begin, root.switch):
        step(keyless)
        platform.init(keyless)
        assert trusted(keyless, "trainer") and trusted(keyless, "broker", "sslserver")
    root.end(keyless)
    assert trusted(keyless, "trainer") and old not in (keyless.pki / "ca.crt").read_bytes()
