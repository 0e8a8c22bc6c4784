"""`oal-registry keys`: the key that signs bundles, and its rotation.

Rotation has three steps, each safe to stay in for as long as it takes: `begin` makes the next key and writes it into
the trusted file beside the present one, which then goes to all APs; `switch` signs with the next key from then on;
`end` takes the old one out of the trusted file, when no AP holds a bundle signed with it any more.
"""

from __future__ import annotations

import os
from pathlib import Path

from oal_schema import keys
from oal_schema.grant import WRITE, Grant

from oal_registry.errors import RegistryError

NEXT, OLD = ".next", ".old"


def make(path: Path, name: str, trusted: Path | None, may: Grant) -> str:
    """A new key; its trusted line, which is also written to `trusted` if given. `may`: what it may sign."""
    try:
        line = keys.public_line(keys.make(path), name, may)
    except FileExistsError:
        raise RegistryError(
            f"{path} exists; a key that is lost cannot be made again: move it away first, or use `keys rotate`"
        ) from None
    except OSError as error:
        raise RegistryError(f"cannot write {path}: {error.strerror}") from None
    except ValueError as error:
        path.unlink(missing_ok=True)
        raise RegistryError(str(error)) from None
    if trusted is not None:
        _trust(trusted, line)
    return line


def show(path: Path, name: str, may: Grant) -> str:
    """The trusted line of a private key."""
    return keys.public_line(_load(path), name, may)


def key_id(path: Path) -> int:
    """The id of a private key: what bundles that it signs name."""
    return keys.key_id(_load(path))


def trusted_file(path: str) -> keys.TrustedFile:
    """The file of trusted keys. RegistryError when it cannot be read."""
    try:
        return keys.TrustedFile(path)
    except (OSError, ValueError) as error:
        raise RegistryError(f"trusted_keys: {error}") from None


def check_own(own: int, trusted: dict[int, keys.TrustedKey], path: str) -> None:
    """RegistryError unless the registry's key is one that may sign for it: what it signs, it has to believe itself."""
    held = trusted.get(own)
    if held is None or held.grant is None or "registry" not in held.grant.sources:
        raise RegistryError(
            f"{path}: the line of signing_key (key {own:016x}) does not say role=registry; everybody would refuse what"
            " it signs: `oal-registry keys show` prints the line"
        )


def begin(path: Path, trusted: Path, name: str) -> str:
    """Make the next key and trust it beside the present one, with what that may sign."""
    present = _load(path)
    following = _beside(path, NEXT)
    if following.exists():
        key = _load(following)  # begun before, perhaps interrupted
    else:
        key = keys.make(following)
    held = _trusted(trusted)
    if keys.key_id(present) not in held:
        raise RegistryError(
            f"{trusted} does not hold the present key {path}; it is not the file that APs have, or not of this key"
        )
    may = held[keys.key_id(present)].grant
    if may is None:
        raise RegistryError(
            f"{trusted}: the line of {path} is an older one, its key may sign nothing; write after its name: {WRITE}"
        )
    line = keys.public_line(key, name, may)
    if keys.key_id(key) not in held:
        _trust(trusted, line)
    return line


def switch(path: Path, trusted: Path) -> int:
    """Sign with the next key from now on; the id of the key that signed until now.

    The service takes it at its next start.
    """
    following = _beside(path, NEXT)
    if not following.exists():
        raise RegistryError(f"{following} is not there; `keys rotate begin` makes it")
    if keys.key_id(_load(following)) not in _trusted(trusted):
        raise RegistryError(
            f"{trusted} does not hold the next key; APs would reject what it signs. Run `keys rotate begin` again"
        )
    old = keys.key_id(_load(path))
    # The old one is kept under its name until `end`; a crash between the two steps leaves both and can be repeated.
    previous = _beside(path, OLD)
    if not previous.exists():
        os.link(path, previous)
    following.replace(path)
    return old


def end(path: Path, trusted: Path) -> int:
    """Trust the old key no longer; its id."""
    previous = _beside(path, OLD)
    if not previous.exists():
        raise RegistryError(f"{previous} is not there; there is no old key to take out")
    old = keys.key_id(_load(previous))
    if keys.key_id(_load(path)) == old:
        raise RegistryError(f"{path} is still the old key; run `keys rotate switch` first")
    if keys.key_id(_load(path)) not in _trusted(trusted):
        raise RegistryError(f"{trusted} does not hold the present key {path}; APs that got it would reject everything")
    kept = []
    for line in trusted.read_text().splitlines(keepends=True):
        held = keys.read_line(line.rstrip("\n"))
        if held is not None and keys.key_id(held.key) == old:
            continue
        kept.append(line)
    _replace(trusted, "".join(kept))
    previous.unlink()
    return old


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _load(path: Path):
    try:
        return keys.load(path)
    except OSError as error:
        raise RegistryError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise RegistryError(str(error)) from None


def _trusted(path: Path) -> dict[int, keys.TrustedKey]:
    try:
        return keys.read_trusted(path)
    except OSError as error:
        raise RegistryError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise RegistryError(str(error)) from None


def _trust(trusted: Path, line: str) -> None:
    text = (
        trusted.read_text()
        if trusted.exists()
        else "# Keys whose bundles an AP uses; several while a key is rotated.\n"
    )
    _replace(trusted, text + ("" if text.endswith("\n") else "\n") + line + "\n")


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text)
    temporary.replace(path)
