"""The token that who reads /metrics must send: `Authorization: Bearer TOKEN`."""

from __future__ import annotations

import hmac
from pathlib import Path

from oal_training.errors import TrainingError


class Bearer:
    """A token out of a file, read at each look, so that a new one needs no restart; no file: everybody may read."""

    def __init__(self, path: str | None):
        self._path = path
        if path and not self._token():
            raise TrainingError(f"metrics_token_file {path} is missing or empty; `oal-ca init` makes one")

    def _token(self) -> bytes:
        try:
            return Path(self._path).read_bytes().strip()
        except OSError:
            return b""

    def admits(self, authorization: str | None) -> bool:
        """Does the header `Authorization` hold the token? Without a token file everybody is let in."""
        if not self._path:
            return True
        token = self._token()
        return bool(token) and hmac.compare_digest((authorization or "").encode("utf-8", "replace"), b"Bearer " + token)
