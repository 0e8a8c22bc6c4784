"""The token that who reads /metrics must send: `Authorization: Bearer TOKEN`."""

from __future__ import annotations

import hmac

from oal_registry import secret_files
from oal_registry.errors import RegistryError

WHAT = "token of /metrics"


class Bearer:
    """A token out of a file, read at each look, so that a new one needs no restart; no file: everybody may read."""

    def __init__(self, path: str):
        self._path = path
        if path:
            secret_files.read(path, WHAT)

    def admits(self, authorization: str | None) -> bool:
        """Does the header `Authorization` hold the token? Without a token file everybody is let in."""
        if not self._path:
            return True
        try:
            token = secret_files.read(self._path, WHAT)
        except RegistryError:
            return False
        return hmac.compare_digest((authorization or "").encode("utf-8", "replace"), b"Bearer " + token.encode())
