"""Configuration files in YAML: every key is checked, a mistake names its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from oal_registry.errors import RegistryError


def load(path: str) -> dict:
    """The mapping in a YAML file; RegistryError when it cannot be read or is no mapping."""
    try:
        with open(path, encoding="utf-8") as file:
            value = yaml.safe_load(file)
    except OSError as error:
        raise RegistryError(f"cannot read the configuration {path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise RegistryError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(value, dict):
        raise RegistryError(f"{path} must be a mapping of settings")
    return value


class Section:
    """A mapping that is read key by key; `done` refuses keys that nobody asked for."""

    def __init__(self, value: Any, where: str):
        if not isinstance(value, dict):
            raise RegistryError(f"{where} must be a mapping")
        self._value, self._where, self._asked = value, where, set()

    def get(self, key: str, kind: type | tuple, default: Any = ...) -> Any:
        """The value of `key`; RegistryError when it is missing without default or of another kind."""
        self._asked.add(key)
        value = self._value.get(key)
        if value is None:
            if default is ...:
                raise RegistryError(f"{self._where}: `{key}` is missing")
            return default
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise RegistryError(
                f"{self._where}: `{key}` must be {' or '.join(k.__name__ for k in kinds)}, is {value!r}"
            )
        return value

    def section(self, key: str, default: Any = ...) -> Section | None:
        """The mapping under `key` as a Section; None when it is missing and there is a default."""
        value = self.get(key, dict, default)
        return None if value is None else Section(value, f"{self._where}: {key}")

    def done(self) -> None:
        """RegistryError when the mapping has keys that nobody asked for."""
        if unknown := sorted(set(map(str, self._value)) - self._asked):
            raise RegistryError(
                f"{self._where}: unknown setting {', '.join(unknown)}; there are {', '.join(sorted(self._asked))}"
            )


def address(text: str, where: str) -> tuple[str, int]:
    """`HOST:PORT` taken apart."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 <= int(port) < 65536:
        raise RegistryError(f"{where}: `{text}` is not HOST:PORT")
    return host.strip("[]"), int(port)


def tls(top: Section) -> tuple[str, str] | None:
    """Files of certificate and key in a configuration's section `tls`; None when it has none."""
    section = top.section("tls", None)
    if section is None:
        return None
    files = section.get("cert", str), section.get("key", str)
    section.done()
    return files


def folder(path: str) -> Path:
    """A state folder that only its owner may enter."""
    made = Path(path).resolve()
    made.mkdir(parents=True, exist_ok=True)
    made.chmod(0o700)
    return made
