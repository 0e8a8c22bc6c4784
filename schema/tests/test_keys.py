"""Files of trusted keys, and what a key may sign."""

import pytest
from oal_schema import golden_bundles, golden_keys, keys, serials
from oal_schema.bundle import encode, open_signed, sign
from oal_schema.grant import grant
from oal_schema.model import ROOT
from oal_schema.nodes import BundleError

FILE = ROOT / "golden" / "keys.trusted"
VERDICTS = [line.split() for line in (ROOT / "golden" / "keys.txt").read_text().splitlines()]


def test_keys_are_written_read_and_private(tmp_path):
    key = keys.make(tmp_path / "k.pem")
    assert (tmp_path / "k.pem").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        keys.make(tmp_path / "k.pem")
    assert keys.raw_public(keys.load(tmp_path / "k.pem")) == keys.raw_public(key)
    new = keys.public_line(key, "new", grant("registry"))
    (tmp_path / "trusted").write_text(f"# two keys\n{new}\n\n{keys.public_line(golden_bundles.KEY, 'old')} # May\n")
    trusted = keys.read_trusted(tmp_path / "trusted")
    assert set(trusted) == {keys.key_id(key), keys.key_id(golden_bundles.KEY)}
    assert open_signed(sign(encode(golden_bundles.bundle()), key), trusted, "ap-1", "lab")[0].version == 3
    with pytest.raises(ValueError):
        keys.public_line(key, "two words")
    for text in ("x", "ed25519 AAAA a", "rsa iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w= a", f"{new} x=y"):
        (tmp_path / "bad").write_text(f"\n{text}\n")
        with pytest.raises(ValueError, match="bad:2"):
            keys.read_trusted(tmp_path / "bad")
    (tmp_path / "not.pem").write_text("no")
    with pytest.raises(ValueError, match="not.pem"):
        keys.load(tmp_path / "not.pem")


def test_a_key_that_is_there_twice_is_refused_with_its_line(tmp_path):
    text = FILE.read_text()
    (tmp_path / "twice").write_text(text + text.splitlines()[1].replace("registry role=registry", "x role=trainer"))
    with pytest.raises(ValueError, match=f"twice:{len(text.splitlines()) + 1}: this key is there twice"):
        keys.read_trusted(tmp_path / "twice")


def test_the_golden_file_says_what_its_keys_may_sign():
    assert keys.read_trusted(FILE) == golden_keys.trusted()


@pytest.mark.parametrize("at_ap, at_platform, data", [(*v[1:], c[1]) for v, c in zip(VERDICTS, golden_keys.cases())])
def test_who_may_sign_what(at_ap, at_platform, data):
    trusted = keys.read_trusted(FILE)
    for place, want in (((golden_keys.AP, golden_keys.SITE), at_ap), ((None, None), at_platform)):
        if want == "ok":
            open_signed(data, trusted, *place)
        else:
            with pytest.raises(BundleError, match=want):
                open_signed(data, trusted, *place)


def test_an_ap_without_a_site_takes_nothing_of_a_sites_key():
    by_name = dict(golden_keys.cases())
    for site in ("", None):
        assert golden_keys.verdict(by_name["scope_site_ap"], golden_keys.AP, site) == "not_permitted"
    assert golden_keys.verdict(by_name["scope_fleet_ap"], golden_keys.AP, "") == "ok"


def test_a_refusal_says_what_to_write():
    old = dict(golden_keys.cases())["old_line"]
    with pytest.raises(BundleError, match="key old may sign nothing: its line lacks role=registry"):
        open_signed(old, keys.read_trusted(FILE), None, None)
    with pytest.raises(ValueError, match="attribute until=2030; a line has role=registry"):
        keys.read_line(f"{golden_keys.NAME} {golden_keys.GOOD} until=2030")


def test_a_serial_follows_all_that_an_ap_may_hold_but_not_what_is_far_ahead():
    now, bound = 1_800_000_000_000_000, 300_000_000
    assert serials.following(now, []) == now
    assert serials.following(now, [now - 5, now + 7]) == now + 8, "the clock went back"
    assert serials.following(now, [now + bound]) == now + bound + 1
    assert serials.following(now, [now + bound + 1, now + 3, 1 << 62]) == now + 4, "nobody blocks a slot for ever"
    assert serials.ahead(now + bound + 1, now) and not serials.ahead(now + bound, now)


def test_a_file_is_read_again_when_it_changes_and_a_wrong_one_changes_nothing(tmp_path):
    path = tmp_path / "trusted"
    path.write_text(FILE.read_text())
    file = keys.TrustedFile(path)
    assert len(file.keys) == 10 and not file.look()
    path.write_text("ed25519 nonsense\n")
    assert not file.look() and "trusted:1" in file.wrong and len(file.keys) == 10
    path.write_text("\n".join(FILE.read_text().splitlines()[:-1]) + "\n")
    assert file.look() and len(file.keys) == 9 and not file.wrong and not file.look()
