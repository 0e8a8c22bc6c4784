"""Replacing the root by overlap, so that nobody is cut off: whoever is trusted at a moment is trusted by both sides.

    begin   a new root; ca.crt holds both, the old one signs on. Hand ca.crt out, restart the services.
    switch  the new root signs: issuing CAs, services and people get new certificates. Restart the services; access
            points get theirs when they renew (they renew when less than a third of their certificate's life is left).
    end     the old root goes from ca.crt. Who has not renewed by now is cut off.
"""
from oal_pki import folder as files
from oal_pki.authority import issued_by, load_certificates, load_key, make_root, pem, text
from oal_pki.errors import PkiError
from oal_pki.folder import Folder


def begin(folder: Folder) -> None:
    pki = folder.pki
    roots = load_certificates(pki / "ca.crt")
    if len(roots) > 1:
        raise PkiError(
            "the root is being replaced already; go on with `oal-ca root rotate switch`, or `end` when that was done")
    key, certificate = make_root()
    files.write(pki / "ca-next.key", pem(key))
    files.write(pki / "ca.crt", text(roots[0], certificate), 0o644)


def switch(folder: Folder) -> None:
    """The new root first, with its key; the caller issues everything anew."""
    pki = folder.pki
    roots = load_certificates(pki / "ca.crt")
    if len(roots) != 2 or not (pki / "ca-next.key").exists():
        raise PkiError("there is no new root to switch to; begin with `oal-ca root rotate begin`")
    key = load_key(pki / "ca-next.key")
    # The order of these is that of a crash that leaves something to go on from: a second `switch` does the same again.
    files.write(pki / "ca.key", pem(key))
    files.write(pki / "ca.crt", text(*sorted(roots, key=lambda c: c.public_key() != key.public_key())), 0o644)
    (pki / "ca-next.key").unlink()


def end(folder: Folder) -> None:
    pki = folder.pki
    roots = load_certificates(pki / "ca.crt")
    if len(roots) != 2 or (pki / "ca-next.key").exists():
        raise PkiError("there is no old root to take away; the order is `begin`, `switch`, `end`")
    left = [
        file.name for file in sorted(pki.glob("*.crt"))
        if file.name != "ca.crt" and issued_by(load_certificates(file)[-1], roots[1])
    ]
    if left:
        raise PkiError(
            f"these were issued by the old root: {', '.join(left)}; issue them anew with `oal-ca ap` or remove them")
    files.write(pki / "ca.crt", text(roots[0]), 0o644)
