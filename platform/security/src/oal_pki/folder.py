"""A state folder: `pki/` and `secrets/` in it, and files that are written whole or not at all."""
import fcntl
import os
from contextlib import contextmanager
from pathlib import Path

from oal_pki.errors import PkiError


class Folder:
    def __init__(self, path):
        self.dir = Path(path)
        self.pki = self.dir / "pki"
        self.secrets = self.dir / "secrets"
        self.bundle_keys = self.pki / "bundle-keys.txt"
        self.mac_masters = self.secrets / "mac-masters"

    def make(self) -> None:
        """Create the folders; only their owner may enter pki/ and secrets/."""
        for folder in (self.pki, self.secrets):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)

    def check(self) -> None:
        """PkiError unless `init` was here."""
        if not (self.pki / "ca.crt").exists():
            raise PkiError(f"{self.pki} holds no CA; make one with `oal-ca init {self.dir}`")

    @contextmanager
    def locked(self):
        """One writer at a time, for several services' set-up may call at once."""
        self.dir.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.dir, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def write(path: Path, data: bytes | str, mode: int = 0o600) -> None:
    """Write a file with this mode, whole or not at all; on disk when this returns."""
    temporary = path.with_name(path.name + ".new")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)  # a left-over's mode, or a umask, would stay
        file.write(data.encode() if isinstance(data, str) else data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
