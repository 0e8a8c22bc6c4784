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

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from oal_schema import release
from oal_schema.policy_folder import PolicyFolder
from oal_schema.release import Release

from oal_registry import package, promoter, wish
from oal_registry.errors import NotPackagable
from oal_registry.gate import SLOT, Gate
from oal_registry.mlflow_client import Gone
from oal_registry.models import CompiledModel, Models
from oal_registry.release_topic import SLOTS, Key, ReleaseTopic
from oal_registry.slot_memory import SlotMemory
from oal_registry.status import Status

ROLLED_BACK = "rollback: "  # how the reason of a release begins that no alias asked for
ERROR_TAG = "oal.error"
GATE_TAGS = (promoter.OPEN, promoter.OPENED_BY)
MAX_TAG = 500  # characters of what is written on a version
HEAD = "class"  # role of the model whose aliases and versions name a release
Versions = dict[str, int]  # by role; 0: none


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


class Promotion:
    """Compares the aliases of one policy's models in MLflow with its releases in force; `reconcile` acts. One thread.

    The version that a release is named by, and that carries its tags, is that of the model of role class.
    """

    def __init__(
        self,
        models: Models,
        releases: ReleaseTopic,
        key: Ed25519PrivateKey,
        memory: SlotMemory,
        status: Status,
        canary_defaults: dict,
        policies: PolicyFolder,
        gate: Gate,
    ):
        self.models, self.manifest, self.registry = models, models.manifest, models.registry
        self.releases, self.key, self.memory, self.status = releases, key, memory, status
        self.canary_defaults, self.policies, self.gate = canary_defaults, policies, gate
        self.head = self.manifest.role(HEAD)
        self.others = [plan for plan in self.manifest.models if plan.role != HEAD]
        # bundle hash → versions that are known to be in it
        self._versions_of: dict[str, Versions] = {}
        # (slot, versions, tags, champions in force) → why; a version does not get better by itself
        self._refused: dict[tuple, str] = {}
        self._histories: set[tuple[Key, int]] = set()  # releases whose tags are known to be right

    def reconcile(self) -> int:
        """One pass over the slots, champion first; the number of releases made and withdrawn."""
        aliases = {plan.role: self.registry.aliases(plan.registered) for plan in self.manifest.models}
        part = f"registered model {self.head.registered}"
        if aliases[HEAD] is None:
            if self._in_force:
                self.status.problem(
                    part, f"MLflow has no registered model {self.head.registered}; what is in force stays"
                )
            return 0
        self.status.well(part)
        return sum(self._slot(slot, {role: own or {} for role, own in aliases.items()}) for slot in SLOTS)

    @property
    def _in_force(self) -> dict[Key, Release]:
        return self.releases.of(self.manifest.name)

    def _slot(self, slot: str, aliases: dict[str, dict[str, int]]) -> int:
        versions = {role: own.get(slot, own.get("champion", 0)) for role, own in aliases.items()}
        if not any(slot in own for own in aliases.values()) or self._missing(versions):
            return self._unset(slot, versions)
        try:
            version = self.registry.version(self.head.registered, versions[HEAD])
        except Gone:
            return 0  # deleted in this moment; the alias goes with it, as the next pass sees
        tags = sorted((k, v) for k, v in version.tags.items() if k in wish.TAGS or k in GATE_TAGS)
        asked = (slot, tuple(versions.items()), tuple(tags), self._rivals(slot))
        if asked in self._refused:
            return 0
        try:
            done = self._put_in_force(slot, version, versions)
        except NotPackagable as error:
            self._refused[asked] = str(error)
            self._lets_go(slot, versions[HEAD])
            self._refuse(versions[HEAD], version.tags, str(error))
            for plan in self.others:
                if f"{plan.registered}/{versions[plan.role]}" in str(error):
                    why = str(error)[:MAX_TAG]
                    self.registry.set_tag(plan.registered, versions[plan.role], ERROR_TAG, why)
            return 0
        if ERROR_TAG in version.tags:
            self.registry.delete_tag(self.head.registered, versions[HEAD], ERROR_TAG)
        return done

    def _rivals(self, slot: str) -> tuple[str, ...]:
        """What a version was refused beside: when that changes, it is asked again."""
        return tuple(sorted(f"{r.run_id} {r.version}" for (s, _), r in self._in_force.items() if s == slot == SLOT))

    def _missing(self, versions: Versions) -> list[str]:
        """Registered models that a bundle of this policy needs, and that have no version here."""
        return [p.registered for p in self.manifest.models if not p.optional and not versions[p.role]]

    def _lets_go(self, slot: str, refused: int) -> None:
        """The alias stands on a version that was refused.

        What is in force stays when the alias is deleted, for it took nothing's place.
        """
        scope = self.memory.scope(slot, self._in_force, ROLLED_BACK)
        now = self._in_force.get((slot, scope)) if scope else None
        if now is not None and now.version != refused:
            self.memory.governs(slot, None)

    def _put_in_force(self, slot: str, version, versions: Versions) -> int:
        number = int(version.version)
        wanted = wish.of_tags(version.tags, slot, self.canary_defaults)
        key = (slot, wanted.scope)
        now = self._in_force.get(key)
        same = now is not None and not now.variant_of and self._holds(now, version.run_id or "", versions)
        if same and now.pinned == wanted.pinned and not now.reason.startswith(ROLLED_BACK):
            self.memory.governs(slot, wanted.scope)
            self._write_history(key, version, now)
            return 0
        # The same bundle under other conditions changes nothing on the APs that have it.
        made, said = package.of_release(now) if same else None, ""
        if made is None:
            compiled = self._compiled(versions)
            if slot == SLOT:
                stands = now or self._in_force.get((slot, "fleet"))  # at a site, too, until it has one of its own
                said = self.gate.admit(version, compiled[0], stands, returns=released_tag(key) in version.tags)
            made = self._package(key, compiled)
        others = [f"{plan.registered}/{versions[plan.role]}" for plan in self.others if versions[plan.role]]
        released = self.releases.release(
            *key,
            made,
            model=self.head.registered,
            version=number,
            run_id=version.run_id or "",
            pinned=wanted.pinned,
            reason=f"alias {slot} on {self.head.registered}/{number}"
            + "".join(f" with {name}" for name in others)
            + (f"; {said}" if said else ""),
            rollout=wanted.rollout,
            rank=now.rank if same else 0,
            promoted_by=version.tags.get(promoter.TAG + slot, ""),
        )
        self._versions_of[released.hash] = versions
        self.memory.governs(slot, wanted.scope)
        self._say(slot, "release", key, f"{released.reason}, bundle {released.hash[:12]}")
        for plan in self.others:
            if versions[plan.role]:
                self.registry.delete_tag(plan.registered, versions[plan.role], ERROR_TAG)
        self._write_history(key, version, released)
        return 1

    def _unset(self, slot: str, versions: Versions) -> int:
        """The slot has no alias: back to the version before, or to nothing. `versions`: of the other models."""
        scope = self.memory.scope(slot, self._in_force, ROLLED_BACK)
        now = self._in_force.get((slot, scope)) if scope else None
        if now is None or now.variant_of or now.reason.startswith(ROLLED_BACK):
            if now is not None and not now.variant_of:
                self._take_off((slot, scope), now)
            self.memory.governs(slot, None)
            return 0
        key = (slot, scope)
        stack = self._stack(key)
        if self._is_of_another_mlflow(now, stack):
            self.status.problem(
                f"registered model {self.head.registered}",
                f"{slot}/{scope} in force is of another MLflow ({now.model}/{now.version}, run {now.run_id}); it stays",
            )
            return 0
        when = time_text(now.created_us)
        for at, earlier in stack:
            if int(earlier.version) == now.version or at >= when:
                continue
            if released := self._roll_back(key, now, earlier, {**versions, HEAD: int(earlier.version)}):
                self._take_off(key, released)
                break
        else:
            reason = f"alias {slot} deleted, no earlier version of {now.model}/{now.version}"
            self.releases.withdraw(*key, reason=reason, policy=self.manifest.name)
            self._say(slot, "withdraw", key, "withdrawn, the alias was deleted and there is no earlier version")
            self._take_off(key, None)
        self.memory.governs(slot, None)
        return 1

    def _stack(self, key: Key) -> list[tuple[str, object]]:
        """Versions that were in force there, as (time of release, version), the latest first."""
        tag = released_tag(key)
        found = [(v.tags[tag], v) for v in self.registry.versions(self.head.registered) if tag in v.tags]
        return sorted(found, key=lambda entry: entry[0], reverse=True)

    def _is_of_another_mlflow(self, now: Release, stack: list[tuple[str, object]]) -> bool:
        """Does MLflow know the version in force as another run?"""
        mine = next((v for _, v in stack if int(v.version) == now.version), None)
        if mine is None:
            try:
                mine = self.registry.version(self.head.registered, now.version)
            except Gone:
                return False
        return (mine.run_id or "") != now.run_id

    def _roll_back(self, key: Key, now: Release, earlier, versions: Versions) -> Release | None:
        """Release an earlier version; None when it cannot be packaged any more."""
        number = versions[HEAD]
        try:
            wanted = wish.of_tags(earlier.tags, key[0], self.canary_defaults)
            made = self._package(key, self._compiled(versions))
        except NotPackagable as error:
            self._refuse(number, earlier.tags, str(error))
            return None
        back = f"back from {now.model}/{now.version} to {self.head.registered}/{number}"
        released = self.releases.release(
            *key,
            made,
            model=self.head.registered,
            version=number,
            run_id=earlier.run_id or "",
            pinned=wanted.pinned,
            rollout=None,
            reason=f"{ROLLED_BACK}alias {key[0]} deleted, {back}",
        )
        self._versions_of[released.hash] = versions
        self._say(key[0], "rollback", key, f"{released.reason}, bundle {released.hash[:12]}")
        return released

    def _say(self, slot: str, action: str, key: Key, what: str) -> None:
        self.status.released(slot, action, f"{release.key(*key, self.manifest.name)}: {what}")

    # --- bundles

    def _compiled(self, versions: Versions) -> list[CompiledModel]:
        """The models of a bundle, that of role class first. NotPackagable when one is missing or cannot be compiled."""
        if missing := self._missing(versions):
            raise NotPackagable(f"policy {self.manifest.name} needs a version of {', '.join(missing)}: set its alias")
        try:
            plans = [self.head, *(plan for plan in self.others if versions[plan.role])]
            return [self.models.compiled(plan, versions[plan.role]) for plan in plans]
        except Gone as error:
            raise NotPackagable(str(error)) from None

    def _package(self, key: Key, models: list[CompiledModel]) -> package.Package:
        return package.build(
            self.manifest,
            models,
            target=key[1],
            serial=self.releases.next_serial(),
            rollback_to=package.rollback_to(self._in_force, key),
            key=self.key,
            policy=self.policies.of(key[1], self.manifest.name),
        )

    def _holds(self, release: Release, run_id: str, versions: Versions) -> bool:
        """Is a release just these versions?"""
        if release.version != versions[HEAD] or release.run_id != run_id:
            return False
        if release.hash not in self._versions_of:
            if not package.same_models(release.bundle(), self.manifest, self._compiled(versions)):
                return False
            self._versions_of[release.hash] = versions
        return self._versions_of[release.hash] == versions

    # --- what is written on versions

    def _refuse(self, version: int, tags: dict[str, str], why: str) -> None:
        self.status.refused(f"{self.head.registered}/{version}", why)
        if tags.get(ERROR_TAG) != why[:MAX_TAG]:
            self.registry.set_tag(self.head.registered, version, ERROR_TAG, why[:MAX_TAG])

    def _write_history(self, key: Key, version, release: Release) -> None:
        if (key, release.created_us) in self._histories:
            return
        for tag, value in ((released_tag(key), time_text(release.created_us)), (bundle_tag(key), release.hash)):
            if version.tags.get(tag) != value:
                self.registry.set_tag(self.head.registered, int(version.version), tag, value)
        self._histories.add((key, release.created_us))

    def _take_off(self, key: Key, release: Release | None) -> None:
        """After a rollback to `release` (None: to nothing): the versions above it are no longer in the stack."""
        if release is not None and (key, release.created_us) in self._histories:
            return
        versions = {
            int(v.version): v for v in self.registry.versions(self.head.registered) if released_tag(key) in v.tags
        }
        floor = (
            versions[release.version].tags[released_tag(key)]
            if release is not None and release.version in versions
            else ""
        )
        for number, version in versions.items():
            if version.tags[released_tag(key)] > floor:
                self.registry.delete_tag(self.head.registered, number, released_tag(key))
                self.registry.delete_tag(self.head.registered, number, bundle_tag(key))
        if release is not None:
            if release.version in versions:
                self.registry.set_tag(self.head.registered, release.version, bundle_tag(key), release.hash)
            self._histories.add((key, release.created_us))
