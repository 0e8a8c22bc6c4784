"""The MAC that says which access point made a batch (README, "Who made a batch"): HMAC-SHA256 (RFC 2104), cut to 128
bits.

A master key is the platform's; an access point gets the key derived from it for its name and site, so that it can
neither write as another nor claim another site, and no key of an access point is stored anywhere but on it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Iterable
from pathlib import Path

HEADER = "oal-mac"  # name of the Kafka header
MAC_BYTES = 16
KEY_BYTES = 32
TOPICS = {"ap.samples.v1": 0, "ap.packets.v1": 1, "ap.events.v1": 2}


def ap_key(master: bytes, ap_id: str, site: str) -> bytes:
    """The 32-byte key of an access point at a site (empty: it has none)."""
    return hmac.digest(master, b"oal batch key v1\0" + ap_id.encode() + b"\0" + site.encode(), hashlib.sha256)


def header(key_id: int, key: bytes, topic: str, value: bytes) -> bytes:
    """Value of the header `oal-mac` of a record: one byte key_id, 16 bytes MAC. `topic` is one of TOPICS."""
    return (
        bytes([key_id])
        + hmac.digest(key, b"oal batch v1\0" + bytes([TOPICS[topic]]) + value, hashlib.sha256)[:MAC_BYTES]
    )


def read_masters(path: str | os.PathLike) -> dict[int, bytes]:
    """Master keys by key_id: a file of lines `KEY_ID BASE64-OF-32-BYTES`; # begins a comment. ValueError says line and
    mistake.
    """
    keys = {}
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        try:
            key_id, key = int(words[0]), base64.b64decode(words[1], validate=True)
            if len(words) != 2 or not 1 <= key_id <= 255 or len(key) != KEY_BYTES or key_id in keys:
                raise ValueError
        except (ValueError, IndexError):
            raise ValueError(
                f"{path}:{number}: not a master key; a line is: KEY_ID (1 to 255, each once) BASE64-OF-32-BYTES"
            ) from None
        keys[key_id] = key
    if not keys:
        raise ValueError(f"{path}: no key in it; a line is: KEY_ID BASE64-OF-32-BYTES")
    return keys


def ap_lines(masters: dict[int, bytes], aps: Iterable[tuple[str, str]]) -> str:
    """What an exporter reads (option `mac_keys`): a line `AP_ID SITE KEY_ID BASE64` for each (ap_id, site); SITE is -
    for none. Of several keys of an access point the one with the highest key_id is used, so the newest master's.
    """
    key_id = max(masters)
    return "".join(
        f"{ap_id} {site or '-'} {key_id} {base64.b64encode(ap_key(masters[key_id], ap_id, site)).decode()}\n"
        for ap_id, site in aps
    )
