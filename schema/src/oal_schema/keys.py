"""Keys that sign bundles: Ed25519, and the file of those that are trusted (README, "Bundles")."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


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


def public_line(key: Ed25519PrivateKey | Ed25519PublicKey, name: str) -> str:
    """Line of a trusted-keys file, without its end: `ed25519 BASE64 NAME`."""
    if not re.fullmatch(r"[!-~]{1,63}", name) or "#" in name:
        raise ValueError(f"{name!r} is not a name for a key: 1 to 63 printable characters without blank and #")
    return f"ed25519 {base64.b64encode(raw_public(key)).decode()} {name}"


def read_trusted(path: str | os.PathLike) -> dict[int, Ed25519PublicKey]:
    """Public keys of a trusted-keys file by their id. ValueError with file and line for anything that is not a key."""
    out: dict[int, Ed25519PublicKey] = {}
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            if len(words) != 3 or words[0] != "ed25519" or len(words[1]) != 44:
                raise ValueError("not three words")
            key = Ed25519PublicKey.from_public_bytes(base64.b64decode(words[1], validate=True))
        except (ValueError, binascii.Error):
            raise ValueError(f"{path}:{number}: not a key; a line is: ed25519 BASE64-OF-32-BYTES NAME") from None
        out[key_id(key)] = key
    return out
