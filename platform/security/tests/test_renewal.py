"""Certificates are renewed in time, and the root is replaced without cutting anybody off."""
import datetime

import pytest
from oal_pki import platform, root
from oal_pki.authority import Authority, load_certificates
from oal_pki.errors import PkiError
from verifiers import openssl


def not_after(folder, name: str) -> datetime.datetime:
    return load_certificates(folder.pki / f"{name}.crt")[0].not_valid_after_utc


def test_init_renews_in_the_last_third(folder):
    authority = Authority(folder)
    (folder.pki / "viewer.crt").unlink()
    # Half of its life left, and then a quarter.
    at = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=400)
    authority.issue("viewer", "service", at=at)
    half = not_after(folder, "viewer")
    assert platform.init(folder) == [] and not_after(folder, "viewer") == half
    (folder.pki / "viewer.crt").unlink()
    authority.issue("viewer", "service", at=at - datetime.timedelta(days=200))
    assert platform.init(folder) == ["viewer"] and not_after(folder, "viewer") > half


def test_a_key_that_does_not_belong_to_its_certificate_is_replaced(folder):
    (folder.pki / "trainer.key").write_bytes((folder.pki / "viewer.key").read_bytes())
    assert platform.init(folder) == ["trainer"]


def test_a_root_of_before_there_were_issuing_cas_is_replaced_with_all_it_signed(folder):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from oal_pki.authority import load_key, names, text

    key = load_key(folder.pki / "ca.key")
    old = load_certificates(folder.pki / "ca.crt")[0]
    name = names.subject("oal local CA", "ca")
    flat = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
            .not_valid_before(old.not_valid_before_utc).not_valid_after(old.not_valid_after_utc)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(key, hashes.SHA256()))
    (folder.pki / "ca.crt").write_text(text(flat))
    assert "broker" in platform.init(folder)
    assert openssl(folder.pki / "ca.crt", folder.pki / "broker.crt", "sslserver") == "OK"


def test_the_root_is_replaced_by_overlap(folder, tmp_path):
    """At every step whoever has the files of the step before or after is trusted, and at the end the old ones are not.
    """
    platform.access_points(Authority(folder), ["ap-1"])

    def keep(step: str):
        (tmp_path / step).mkdir()
        for file in folder.pki.glob("*.crt"):
            (tmp_path / step / file.name).write_bytes(file.read_bytes())
        return tmp_path / step

    steps = [keep("before")]
    for step, change in (("begin", root.begin), ("switch", root.switch), ("end", root.end)):
        if step == "end":
            with pytest.raises(PkiError, match="ap-1.crt"):  # still of the old root
                root.end(folder)
            platform.access_points(Authority(folder), ["ap-1"])
        change(folder)
        platform.init(folder)
        steps.append(keep(step))
    for earlier, later in zip(steps, steps[1:]):
        for a, b in ((earlier, later), (later, earlier)):
            if (a.name, b.name) == ("end", "switch"):
                continue  # ap-1 had not renewed in `switch`: the case that `end` refuses
            for name in ("broker", "trainer", "operator", "ap-1"):
                assert openssl(a / "ca.crt", b / f"{name}.crt") == "OK", (a.name, b.name, name)
    assert openssl(steps[-1] / "ca.crt", steps[0] / "broker.crt") != "OK"
    assert len(load_certificates(folder.pki / "ca.crt")) == 1 and not (folder.pki / "ca-next.key").exists()


def test_steps_out_of_order_are_refused(folder):
    for step in (root.switch, root.end):
        with pytest.raises(PkiError, match="begin"):
            step(folder)
    root.begin(folder)
    with pytest.raises(PkiError, match="already"):
        root.begin(folder)
    with pytest.raises(PkiError, match="order"):
        root.end(folder)


def test_an_interrupted_switch_is_done_again(folder, monkeypatch):
    root.begin(folder)
    from oal_pki import folder as files

    write, written = files.write, []

    def crash_at_second(path, *more):
        written.append(path)
        if len(written) == 2:
            raise OSError("power cut")
        write(path, *more)
    monkeypatch.setattr(files, "write", crash_at_second)
    with pytest.raises(OSError):
        root.switch(folder)
    monkeypatch.undo()
    with pytest.raises(PkiError, match="does not belong"):
        Authority(folder)
    root.switch(folder)
    assert "broker" in platform.init(folder)
