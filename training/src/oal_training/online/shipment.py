"""A decision to ship, as records: the signed bundle's release, and its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from oal_schema import bundle as oal_bundle
from oal_schema import release as oal_release
from oal_schema import serials
from oal_schema.policy import Policy

from oal_training.online.decision import Decision
from oal_training.online.programs import Program
from oal_training.online.releases import Followed

MODEL = "online"


@dataclass(frozen=True)
class Shipment:
    """key and value of the record on `ap.bundles.v1`, and what its rows say."""

    decision: Decision
    key: str
    value: bytes
    hash: bytes
    bundle_id: int
    serial: int
    version: int
    bytes: int
    run_id: str
    policy: Policy


def make(
    decision: Decision,
    program: Program,
    followed: Followed,
    recent: np.ndarray | None,
    signing_key,
    run_id: str,
    policy: Policy,
    rank: int = 0,
) -> Shipment:
    """Bundle, sign and address the decision's tree.

    `recent`: rows int64[n, features] from which golden vectors are chosen; None: made up.

    `rank`: of the AP's latest tree, to release that one once more; its number stays.
    """
    serial = serials.following(decision.ts_us, followed.serials)
    version = followed.version if rank else followed.version + 1
    payload = oal_bundle.encode(
        oal_bundle.Bundle(
            serial=serial,
            target=f"ap/{decision.ap_id}",
            source="online",
            model=MODEL,
            version=version,
            rollback_to=followed.hashes,
            program=program.words,
            decision_interval_us=program.decision_interval_us,
            models=oal_bundle.models_of(decision.tree, golden=recent),
            policy=policy,
        )
    )
    signed = oal_bundle.sign(payload, signing_key)
    digest = oal_bundle.bundle_hash(payload)
    key, value = oal_release.record(
        "online",
        f"ap/{decision.ap_id}",
        signed,
        source="online",
        model=MODEL,
        version=version,
        run_id=run_id,
        feature_hash=decision.feature_hash,
        created_us=decision.ts_us,
        reason=decision.reason,
        rank=rank,
        site=decision.site,
    )
    return Shipment(
        decision, key, value, digest, oal_bundle.bundle_id(digest), serial, version, len(signed), run_id, policy
    )
