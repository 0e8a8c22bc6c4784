"""Keys that sign bundles: Ed25519, and the file of those that are trusted (README, "Bundles")."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from .grant import WRITE, Grant, parse


def make(path: str | os.PathLike) -> Ed25519PrivateKey:
    """Write a new private key as PEM (PKCS #8), mode 0600. FileExistsError rather than losing a key."""
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
        f.write(pem)
    return key


def load(path: str | os.PathLike) -> Ed25519PrivateKey:
    """Read what `make` wrote. ValueError when it is something else."""
    try:
        key = serialization.load_pem_private_key(Path(path).read_bytes(), None)
    except (ValueError, TypeError) as e:
        raise ValueError(f"{path} is not an unencrypted private key in PEM: {e}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{path} is not an Ed25519 key; make one with oal_schema.keys.make()")
    return key


def raw_public(key: Ed25519PrivateKey | Ed25519PublicKey) -> bytes:
    """The 32 bytes of a public key."""
    return (key.public_key() if isinstance(key, Ed25519PrivateKey) else key).public_bytes_raw()


def key_id(key: Ed25519PrivateKey | Ed25519PublicKey) -> int:
    """First 8 bytes, big-endian, of the SHA-256 of the raw public key."""
    return int.from_bytes(hashlib.sha256(raw_public(key)).digest()[:8], "big")


@dataclass(frozen=True)
class TrustedKey:
    """A line of a trusted-keys file. `grant` None: a line of three words, as older files have; it may sign nothing."""

    key: Ed25519PublicKey
    name: str
    grant: Grant | None = None

    def refuses(self, source: str, target: str, mode: int, ap_id: str | None = None, site: str | None = None) -> str:
        """Why this key may not sign such a bundle, or empty; see `Grant.refuses`."""
        if self.grant is None:
            return f"key {self.name} may sign nothing: its line lacks {WRITE}"
        why = self.grant.refuses(source, target, mode, ap_id, site)
        return f"key {self.name}: {why}" if why else ""


def public_line(key: Ed25519PrivateKey | Ed25519PublicKey, name: str, grant: Grant | None = None) -> str:
    """Line of a trusted-keys file, without its end: `ed25519 BASE64 NAME role=… scope=… max_mode=…`. Without `grant`
    it is a line of older files, whose key may sign nothing.
    """
    if not re.fullmatch(r"[!-~]{1,63}", name) or "#" in name:
        raise ValueError(f"{name!r} is not a name for a key: 1 to 63 printable characters without blank and #")
    line = f"ed25519 {base64.b64encode(raw_public(key)).decode()} {name}"
    return f"{line} {grant}" if grant else line


def read_line(line: str) -> TrustedKey | None:
    """The key of a line; None for one that is empty or a comment. ValueError says what is wrong."""
    text = line.partition("#")[0]
    words = text.split()
    if not words:
        return None
    try:
        if not re.fullmatch(r"[\t\r -~]*", text) or len(words) < 3:
            raise ValueError
        if words[0] != "ed25519" or len(words[1]) != 44 or len(words[2]) > 63:
            raise ValueError
        raw = base64.b64decode(words[1], validate=True)
        if base64.b64encode(raw).decode() != words[1]:
            raise ValueError
        key = Ed25519PublicKey.from_public_bytes(raw)
    except (ValueError, binascii.Error):
        raise ValueError(f"not a key; a line is: ed25519 BASE64-OF-32-BYTES NAME {WRITE}") from None
    return TrustedKey(key, words[2], parse(words[3:]) if words[3:] else None)


def read_trusted(path: str | os.PathLike) -> dict[int, TrustedKey]:
    """Keys of a trusted-keys file by their id. ValueError with file and line for anything that is not a key."""
    out: dict[int, TrustedKey] = {}
    for number, line in enumerate(Path(path).read_text().split("\n"), 1):
        try:
            found = read_line(line)
            if found is not None and key_id(found.key) in out:
                raise ValueError("this key is there twice")
        except ValueError as e:
            raise ValueError(f"{path}:{number}: {e}") from None
        if found is not None:
            out[key_id(found.key)] = found
    return out


class TrustedFile:
    """A trusted-keys file that is read again when it changes: keys are rotated and taken out without a restart."""

    def __init__(self, path: str | os.PathLike):
        """OSError or ValueError when it cannot be read now."""
        self.path, self.wrong = Path(path), ""
        self._stamp = self._stat()
        self.keys = read_trusted(path)

    def _stat(self) -> tuple[int, int, int]:
        now = os.stat(self.path)
        return now.st_ino, now.st_mtime_ns, now.st_size

    def look(self) -> bool:
        """Read it if it changed; True when its keys are others. One that cannot be read leaves the keys that were
        there, and `wrong` says why.
        """
        try:
            stamp = self._stat()
            if stamp == self._stamp and not self.wrong:
                return False
            before, self.keys, self._stamp, self.wrong = self.keys, read_trusted(self.path), stamp, ""
        except (OSError, ValueError) as error:
            self.wrong = str(error)
            return False
        return self.keys != before
