"""A bundle of compiled models: encoded, with golden vectors, signed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from oal_schema import bundle
from oal_schema.manifest import Manifest
from oal_schema.nodes import BundleError
from oal_schema.policy import Policy
from oal_schema.policy_file import APPLIES_TO
from oal_schema.release import Release
from oal_schema.tree import Tree
from oal_schema.window import WindowModel

from oal_registry.errors import NotPackagable
from oal_registry.models import CompiledModel
from oal_registry.programs import Program

MAX_ROLLBACK = bundle.MAX_ROLLBACK
UNLEARNED_VERSION = 1  # of a bundle without models: MLflow has none of them
TREE_COLUMNS = ("feature", "threshold", "right", "missing_right", "leaf_class", "leaf_permille")


@dataclass(frozen=True)
class Package:
    """A signed bundle and what is said of it.

    hash: 32 bytes; serial: microseconds since 1970; policy: mode and numbers in force; of_policy: folder of policies/.
    """

    signed: bytes
    hash: bytes
    serial: int
    target: str
    nodes: int
    feature_hash: int
    policy: Policy
    of_policy: str

    @property
    def id(self) -> int:
        """63-bit number in rows."""
        return bundle.bundle_id(self.hash)


def build(
    manifest: Manifest,
    models: list[CompiledModel],
    *,
    target: str,
    serial: int,
    rollback_to: list[bytes],
    key: Ed25519PrivateKey,
    policy: Policy,
) -> Package:
    """Make and sign the bundle of a policy. `models`: one a role, that of role class first.

    NotPackagable with the reason that an AP would give.
    """
    if not APPLIES_TO.fullmatch(target):
        raise NotPackagable(f"target `{target}` is none of fleet, site/SITE, ap/AP_ID")
    head = models[0]
    for other in models[1:]:
        if other.program.hash != head.program.hash:
            raise NotPackagable(
                f"feature_mismatch: {other.name} was trained with the feature program {other.program.hash.hex()[:12]},"
                f" {head.name} with {head.program.hash.hex()[:12]}; train one of them again"
            )
    content = bundle.Bundle(
        serial=serial,
        target=target,
        source="registry",
        model=head.plan.registered,
        version=head.version,
        rollback_to=rollback_to[:MAX_ROLLBACK],
        program=list(head.program.words),
        decision_interval_us=head.program.decision_interval_us,
        models=[bundle.Model(m.plan.role, m.table) for m in models],
        policy=policy,
        law=manifest.law,
        of_policy=manifest.name,
    )
    return _signed(content, key)


def without_models(
    manifest: Manifest,
    program: Program,
    *,
    target: str,
    serial: int,
    rollback_to: list[bytes],
    key: Ed25519PrivateKey,
    policy: Policy,
) -> Package:
    """Make and sign the bundle of a policy whose law goes by what it measures."""
    content = bundle.Bundle(
        serial=serial,
        target=target,
        source="registry",
        model=manifest.release_name,
        version=UNLEARNED_VERSION,
        rollback_to=rollback_to[:MAX_ROLLBACK],
        program=list(program.words),
        decision_interval_us=program.decision_interval_us,
        models=[],
        policy=policy,
        law=manifest.law,
        of_policy=manifest.name,
    )
    return _signed(content, key)


def renew(
    held: bundle.Bundle, *, target: str, serial: int, rollback_to: list[bytes], key: Ed25519PrivateKey, policy: Policy
) -> Package:
    """The same models for another target or with another policy."""
    return _signed(replace(held, target=target, serial=serial, rollback_to=rollback_to, policy=policy), key)


def of_release(release: Release) -> Package:
    """The package that a release is."""
    held = release.bundle()
    return Package(
        release.signed,
        bytes.fromhex(release.hash),
        release.serial,
        held.target,
        _nodes(held),
        release.feature_hash,
        held.policy or Policy(),
        held.of_policy,
    )


def _signed(content: bundle.Bundle, key: Ed25519PrivateKey) -> Package:
    try:
        payload = bundle.encode(content)
        signed = bundle.sign(payload, key)
    except BundleError as error:
        raise NotPackagable(str(error)) from None
    return Package(
        signed,
        bundle.bundle_hash(payload),
        content.serial,
        content.target,
        _nodes(content),
        content.feature_hash,
        content.policy or Policy(),
        content.of_policy,
    )


def _nodes(content: bundle.Bundle) -> int:
    return content.tree.n_nodes if content.tree else 0


def rollback_to(
    in_force: Mapping[tuple[str, str], Release], key: tuple[str, str], first: Iterable[bytes] = ()
) -> list[bytes]:
    """Where an AP may go back to from the next bundle of a slot, the likeliest first: `first`; the champions, which it
    gets when a canary or challenger ends; then the slot's present bundle and those before it.
    """
    slot, scope = key
    hashes = list(first)
    if slot != "champion":
        champions = [in_force.get(("champion", s)) for s in dict.fromkeys((scope, "fleet"))]
        hashes += [bytes.fromhex(r.hash) for r in champions if r]
    if now := in_force.get(key):
        hashes += [bytes.fromhex(now.hash), *now.bundle().rollback_to]
    return list(dict.fromkeys(hashes))[:MAX_ROLLBACK]


def same_models(content: bundle.Bundle, manifest: Manifest, models: list[CompiledModel]) -> bool:
    """Does a bundle hold just these models, under the policy's present law?"""
    if (content.of_policy, content.law) != (manifest.name, manifest.law):
        return False
    held, wanted = {m.role: m.table for m in content.models}, {m.plan.role: m.table for m in models}
    return held.keys() == wanted.keys() and all(_same(held[role], wanted[role]) for role in held)


def _same(a: Tree | WindowModel, b: Tree | WindowModel) -> bool:
    if type(a) is not type(b) or a.feature_hash != b.feature_hash:
        return False
    if isinstance(a, Tree):
        return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in TREE_COLUMNS)
    return (
        (a.base, a.shift, a.lo, a.hi, len(a.trees)) == (b.base, b.shift, b.lo, b.hi, len(b.trees))
        and np.array_equal(a.inputs, b.inputs)
        and all(np.array_equal(x, y) for s, t in zip(a.trees, b.trees, strict=True) for x, y in zip(s, t, strict=True))
    )
