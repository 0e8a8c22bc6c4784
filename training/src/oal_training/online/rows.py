"""Rows of `platform.events.v1`: `tree_decision` and `release` (schema/stream_tables.yaml)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from oal_training.online.decision import Decision
from oal_training.online.score import Score
from oal_training.online.shipment import MODEL, Shipment

ROWS_A_RECORD = 500  # of some 800 bytes; a record may have 1 MiB


def tree_decision(decision: Decision, trainer: str, shipment: Shipment | None = None) -> dict:
    """Row of one decision; with its bundle when that was shipped."""
    figures = {}
    for name, score in (
        ("candidate", decision.candidate),
        ("in_force", decision.in_force),
        ("persistence", decision.persistence),
    ):
        figures |= {f"{name}_onset_ap": _number(score, "onset_ap"), f"{name}_macro_f1": _number(score, "macro_f1")}
    return {
        "ap_id": decision.ap_id,
        "site": decision.site,
        "ts": decision.ts_us,
        "trainer": trainer,
        "action": "shipped" if decision.shipped else "held",
        "reason": decision.reason,
        "items": decision.items,
        "train_items": decision.train_items,
        "test_items": decision.test_items,
        "test_onsets": decision.test_onsets,
        "train_until": decision.train_until_us,
        "test_until": decision.test_until_us,
        **figures,
        "drift": round(decision.drift, 6),
        "nodes": decision.tree.n_nodes if decision.tree is not None else 0,
        "fit_us": decision.fit_us,
        "bundle": shipment.bundle_id if shipment else 0,
        "version": shipment.version if shipment else 0,
        "in_force": decision.in_force_id,
        "feature_hash": decision.feature_hash,
    }


def release(shipment: Shipment) -> dict:
    """Row of the release that a shipment is."""
    decision = shipment.decision
    return {
        "ts": decision.ts_us,
        "source": "online",
        "slot": "online",
        "scope": f"ap/{decision.ap_id}",
        "action": "release",
        "model": MODEL,
        "version": shipment.version,
        "bundle": shipment.bundle_id,
        "serial": shipment.serial,
        "bytes": shipment.bytes,
        "nodes": decision.tree.n_nodes,
        "feature_hash": decision.feature_hash,
        "run_id": shipment.run_id,
        "reason": decision.reason,
        "policy": shipment.policy.name,
        "policy_version": shipment.policy.version,
    }


def records(table: str, rows: Iterable[dict]) -> Iterator[bytes]:
    """Values of records that carry the rows."""
    rows = list(rows)
    for first in range(0, len(rows), ROWS_A_RECORD):
        yield json.dumps(
            {"table": table, "rows": rows[first : first + ROWS_A_RECORD]}, separators=(",", ":"), allow_nan=False
        ).encode()


def _number(score: Score, name: str) -> float | None:
    value = getattr(score, name)
    return None if value != value else round(value, 6)
