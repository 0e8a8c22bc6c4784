"""From aliases to releases.

`reconcile` compares what MLflow says with what is in force and does what is missing; doing it twice does nothing more,
and being killed anywhere costs nothing but the time until it runs again.

An alias governs one release: that of its slot, for the scope that the tags of its version name. Deleting the alias
takes that release back to the version that was in force before it. Which versions were is written on them, in tags:
`oal.released_at.SLOT/SCOPE`, a time, and `oal.bundle.SLOT/SCOPE`. They are a stack, the latest time on top: a rollback
takes off the top.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from oal_schema.policy_folder import PolicyFolder
from oal_schema.release import Release

from oal_registry import package, wish
from oal_registry.errors import NotPackagable
from oal_registry.mlflow_client import Gone, MlflowRegistry
from oal_registry.models import CompiledTree, CompiledWindow, Models
from oal_registry.release_topic import SLOTS, Key, ReleaseTopic
from oal_registry.slot_memory import SlotMemory
from oal_registry.status import Status

ROLLED_BACK = "rollback: "  # how the reason of a release begins that no alias asked for
ERROR_TAG = "oal.error"
MAX_TAG = 500


def released_tag(key: Key) -> str:
    """Name of the tag that says when a version was put in force for a slot and scope."""
    return f"oal.released_at.{key[0]}/{key[1]}"


def bundle_tag(key: Key) -> str:
    """Name of the tag that says by which bundle."""
    return f"oal.bundle.{key[0]}/{key[1]}"


def time_text(us: int) -> str:
    """Sorts as the time does."""
    return (
        datetime.datetime.fromtimestamp(us / 1e6, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.")
        + f"{us % 1_000_000:06d}Z"
    )


@dataclass(frozen=True)
class _Content:
    tree: CompiledTree
    window: CompiledWindow | None


class Promotion:
    """Compares the aliases in MLflow with the releases in force; `reconcile` acts. One thread."""

    def __init__(
        self,
        registry: MlflowRegistry,
        models: Models,
        releases: ReleaseTopic,
        key: Ed25519PrivateKey,
        memory: SlotMemory,
        status: Status,
        canary_defaults: dict,
        policies: PolicyFolder,
    ):
        self.registry, self.models, self.releases, self.key, self.memory, self.status = (
            registry,
            models,
            releases,
            key,
            memory,
            status,
        )
        self.canary_defaults, self.policies = canary_defaults, policies
        self._versions_of: dict[str, tuple[int, int]] = (
            {}
        )  # bundle hash -> tree and window version that are known to be in it
        self._refused: dict[tuple, str] = (
            {}
        )  # (slot, version, window version, tags) -> why; a version does not get better by itself
        self._histories: set[tuple[Key, int]] = set()  # releases whose tags are known to be right

    def reconcile(self) -> int:
        """One pass over the slots, champion first; the number of releases made and withdrawn."""
        trees = self.registry.aliases(self.models.tree_model)
        windows = self.registry.aliases(self.models.window_model) or {}
        if trees is None:
            if self.releases.in_force:
                self.status.problem(
                    "registered model",
                    f"MLflow has no registered model {self.models.tree_model}; what is in force stays",
                )
            return 0
        self.status.well("registered model")
        return sum(self._slot(slot, trees, windows) for slot in SLOTS)

    def _slot(self, slot: str, trees: dict[str, int], windows: dict[str, int]) -> int:
        window_version = windows.get(slot, windows.get("champion", 0))
        tree_version = trees.get(slot, trees.get("champion", 0) if slot in windows else 0)
        if not tree_version:
            return self._unset(slot, window_version)
        try:
            version = self.registry.version(self.models.tree_model, tree_version)
        except Gone:
            return 0  # deleted in this moment; the alias goes with it, as the next pass sees
        asked = (
            slot,
            tree_version,
            window_version,
            tuple(sorted((k, v) for k, v in version.tags.items() if k in wish.TAGS)),
        )
        if asked in self._refused:
            return 0
        try:
            done = self._put_in_force(slot, version, window_version)
        except NotPackagable as error:
            self._refused[asked] = str(error)
            self._lets_go(slot, tree_version)
            self._refuse(tree_version, version.tags, str(error))
            if f"{self.models.window_model}/{window_version}" in str(error):
                self.registry.set_tag(self.models.window_model, window_version, ERROR_TAG, str(error)[:MAX_TAG])
            return 0
        if ERROR_TAG in version.tags:
            self.registry.delete_tag(self.models.tree_model, tree_version, ERROR_TAG)
        return done

    def _lets_go(self, slot: str, refused: int) -> None:
        """The alias stands on a version that was refused: what is in force stays when it is deleted, for it took
        nothing's place.
        """
        scope = self.memory.scope(slot, self.releases.in_force, ROLLED_BACK)
        now = self.releases.in_force.get((slot, scope)) if scope else None
        if now is not None and now.version != refused:
            self.memory.governs(slot, None)

    def _put_in_force(self, slot: str, version, window_version: int) -> int:
        number = int(version.version)
        wanted = wish.of_tags(version.tags, slot, self.canary_defaults)
        key = (slot, wanted.scope)
        now = self.releases.in_force.get(key)
        same = now is not None and not now.variant_of and self._holds(now, number, version.run_id or "", window_version)
        if same and now.pinned == wanted.pinned and not now.reason.startswith(ROLLED_BACK):
            self.memory.governs(slot, wanted.scope)
            self._write_history(key, version, now)
            return 0
        if same:
            made = package.of_release(
                now
            )  # the same bundle under other conditions: nothing changes on the APs that have it
        else:
            made = self._package(key, self._content(number, window_version))
        with_window = f" with {self.models.window_model}/{window_version}" if window_version else ""
        released = self.releases.release(
            *key,
            made,
            model=self.models.tree_model,
            version=number,
            run_id=version.run_id or "",
            pinned=wanted.pinned,
            reason=f"alias {slot} on {self.models.tree_model}/{number}{with_window}",
            rollout=wanted.rollout,
            rank=now.rank if same else 0,
        )
        self._versions_of[released.hash] = (number, window_version)
        self.memory.governs(slot, wanted.scope)
        self.status.released(slot, "release", f"{key[0]}/{key[1]}: {released.reason}, bundle {released.hash[:12]}")
        if window_version:
            self.registry.delete_tag(self.models.window_model, window_version, ERROR_TAG)
        self._write_history(key, version, released)
        return 1

    def _unset(self, slot: str, window_version: int) -> int:
        scope = self.memory.scope(slot, self.releases.in_force, ROLLED_BACK)
        now = self.releases.in_force.get((slot, scope)) if scope else None
        if now is None or now.variant_of or now.reason.startswith(ROLLED_BACK):
            if now is not None and not now.variant_of:
                self._take_off((slot, scope), now)
            self.memory.governs(slot, None)
            return 0
        key = (slot, scope)
        history = sorted(
            (
                (v.tags[released_tag(key)], v)
                for v in self.registry.versions(self.models.tree_model)
                if released_tag(key) in v.tags
            ),
            key=lambda entry: entry[0],
            reverse=True,
        )
        mine = next((v for _, v in history if int(v.version) == now.version), None)
        if mine is None:
            try:
                mine = self.registry.version(self.models.tree_model, now.version)
            except Gone:
                mine = None
        if mine is not None and (mine.run_id or "") != now.run_id:
            self.status.problem(
                "registered model",
                f"{slot}/{scope} in force is of another MLflow ({now.model}/{now.version}, run {now.run_id}); it stays",
            )
            return 0
        when = time_text(now.created_us)
        for at, earlier in history:
            if int(earlier.version) == now.version or at >= when:
                continue
            number = int(earlier.version)
            try:
                wanted = wish.of_tags(earlier.tags, slot, self.canary_defaults)
                made = self._package(key, self._content(number, window_version))
            except NotPackagable as error:
                self._refuse(number, earlier.tags, str(error))
                continue
            released = self.releases.release(
                *key,
                made,
                model=self.models.tree_model,
                version=number,
                run_id=earlier.run_id or "",
                pinned=wanted.pinned,
                rollout=None,
                reason=(
                    f"{ROLLED_BACK}alias {slot} deleted, back from {now.model}/{now.version} to"
                    f" {self.models.tree_model}/{number}"
                ),
            )
            self._versions_of[released.hash] = (number, window_version)
            self.status.released(slot, "rollback", f"{key[0]}/{key[1]}: {released.reason}, bundle {released.hash[:12]}")
            self._take_off(key, released)
            break
        else:
            self.releases.withdraw(
                *key, reason=f"alias {slot} deleted, no earlier version of {now.model}/{now.version}"
            )
            self.status.released(
                slot, "withdraw", f"{key[0]}/{key[1]}: withdrawn, the alias was deleted and there is no earlier version"
            )
            self._take_off(key, None)
        self.memory.governs(slot, None)
        return 1

    # --- bundles

    def _content(self, tree_version: int, window_version: int) -> _Content:
        try:
            tree = self.models.tree(tree_version)
            window = self.models.window(window_version) if window_version else None
        except Gone as error:
            raise NotPackagable(str(error)) from None
        return _Content(tree, window)

    def _package(self, key: Key, content: _Content) -> package.Package:
        return package.build(
            self.models.tree_model,
            content.tree,
            content.window,
            target=key[1],
            serial=self.releases.next_serial(),
            rollback_to=package.rollback_to(self.releases.in_force, key),
            key=self.key,
            policy=self.policies.of(key[1]),
        )

    def _holds(self, release: Release, version: int, run_id: str, window_version: int) -> bool:
        """Is a release just this version with this window model?"""
        if release.version != version or release.run_id != run_id:
            return False
        if release.hash not in self._versions_of:
            content = self._content(version, window_version)
            if not package.same_models(release.bundle(), content.tree, content.window):
                return False
            self._versions_of[release.hash] = (version, window_version)
        return self._versions_of[release.hash] == (version, window_version)

    # --- what is written on versions

    def _refuse(self, version: int, tags: dict[str, str], why: str) -> None:
        self.status.refused(f"{self.models.tree_model}/{version}", why)
        if tags.get(ERROR_TAG) != why[:MAX_TAG]:
            self.registry.set_tag(self.models.tree_model, version, ERROR_TAG, why[:MAX_TAG])

    def _write_history(self, key: Key, version, release: Release) -> None:
        if (key, release.created_us) in self._histories:
            return
        for tag, value in ((released_tag(key), time_text(release.created_us)), (bundle_tag(key), release.hash)):
            if version.tags.get(tag) != value:
                self.registry.set_tag(self.models.tree_model, int(version.version), tag, value)
        self._histories.add((key, release.created_us))

    def _take_off(self, key: Key, release: Release | None) -> None:
        """After a rollback to `release` (None: to nothing): the versions above it are no longer in the stack."""
        if release is not None and (key, release.created_us) in self._histories:
            return
        versions = {
            int(v.version): v for v in self.registry.versions(self.models.tree_model) if released_tag(key) in v.tags
        }
        floor = (
            versions[release.version].tags[released_tag(key)]
            if release is not None and release.version in versions
            else ""
        )
        for number, version in versions.items():
            if version.tags[released_tag(key)] > floor:
                self.registry.delete_tag(self.models.tree_model, number, released_tag(key))
                self.registry.delete_tag(self.models.tree_model, number, bundle_tag(key))
        if release is not None:
            if release.version in versions:
                self.registry.set_tag(self.models.tree_model, release.version, bundle_tag(key), release.hash)
            self._histories.add((key, release.created_us))
