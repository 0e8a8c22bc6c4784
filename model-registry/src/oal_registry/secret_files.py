"""Secrets are files of mode 0600, never arguments."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from oal_registry.errors import RegistryError


def read(path: str | os.PathLike, what: str) -> str:
    """The text of a secret file, stripped; RegistryError when it is missing, empty or open to others."""
    try:
        with open(path, encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            text = file.read().strip()
    except OSError as error:
        raise RegistryError(f"{what}: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise RegistryError(f"{what}: {path} is not text") from None
    if mode & 0o077:
        raise RegistryError(f"{what}: {path} has mode {mode:04o}, others may read it; run `chmod 600 {path}`")
    if not text:
        raise RegistryError(f"{what}: {path} is empty")
    return text


def write(path: str | os.PathLike, text: str) -> None:
    """Write a secret file, whole or not at all."""
    path = Path(path)
    temporary = path.with_name(path.name + ".new")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def read_or_make(path: str | os.PathLike, what: str, make: Callable[[], str]) -> str:
    """The secret in `path`; made there at the first call."""
    if not os.path.exists(path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write(path, make() + "\n")
    return read(path, what)
