"""Which records of `ap.bundles.v1` count as in force: what a trusted key signed that may sign it, and no other.

Anybody who can write to the topic can put a record there. What is not verified is never signed anew: its slot counts as
empty, so that the next pass releases what MLflow says, which takes its place.
"""

from __future__ import annotations

from collections.abc import Callable

from oal_schema import release, serials
from oal_schema.bundle import split_signed
from oal_schema.keys import TrustedKey
from oal_schema.nodes import BundleError
from oal_schema.release import Release

from oal_registry.errors import RegistryError

SLOTS = ("champion", "canary", "challenger")
ONLINE = "online"
Key = tuple[str, str]  # slot, scope


class ClockBehind(RegistryError):
    """A release of this registry's own key is of the future: its clock is wrong, or its key is stolen. Sign nothing."""


class VerifiedReleases:
    """What is in force by the records seen so far. Knows no Kafka; for one thread.

    trusted: the keys of now; own: id of the key that this registry signs with (0: it signs nothing).
    """

    def __init__(self, trusted: Callable[[], dict[int, TrustedKey]], own: int, now_us: Callable[[], int]):
        self._trusted, self._own, self._now_us = trusted, own, now_us
        self.in_force: dict[str, dict[Key, Release]] = {}  # by policy
        self.refused: dict[str, tuple[str, str]] = {}  # by record key: reason, and what is wrong, while it stands there
        self._online: dict[str, int] = {}  # serials by record key

    def of(self, policy: str) -> dict[Key, Release]:
        """Releases in force of a policy, by (slot, scope)."""
        return self.in_force.setdefault(policy, {})

    def every(self) -> list[Release]:
        """Releases in force, of all policies."""
        return [one for releases in self.in_force.values() for one in releases.values()]

    def next_serial(self) -> int:
        """Greater than that of any bundle that an AP may hold, online trees too, as far as that is known here."""
        return serials.following(self._now_us(), [*(one.serial for one in self.every()), *self._online.values()])

    def take(self, name: str, value: bytes | None) -> str:
        """The latest record of a key; the reason why it does not count, or empty. ClockBehind: see there."""
        slot = name.partition("/")[0]
        if slot not in (*SLOTS, ONLINE):
            return ""
        self._forget(name)
        if not value:
            return ""
        try:
            one = release.parse(name, value)
            release.verify(one, self._trusted(), self._now_us())
        except (release.ReleaseError, BundleError) as error:
            if error.reason == "future" and slot != ONLINE and split_signed(one.signed)[1] == self._own:
                raise ClockBehind(f"{error}; nothing is signed until it is past, or another key signs") from None
            self.refused[name] = error.reason, str(error)
            return error.reason
        if slot == ONLINE:
            self._online[name] = one.serial
        else:
            self.of(one.policy)[one.slot, one.scope] = one
        return ""

    def check(self, name: str, value: bytes) -> Release:
        """A record that is about to be written. BundleError or ReleaseError when it would not count."""
        made = release.parse(name, value)
        release.verify(made, self._trusted(), self._now_us())
        return made

    def _forget(self, name: str) -> None:
        self.refused.pop(name, None)
        self._online.pop(name, None)
        try:
            slot, scope, policy = release.split_key(name)
        except release.ReleaseError:
            return
        self.of(policy).pop((slot, scope), None)
