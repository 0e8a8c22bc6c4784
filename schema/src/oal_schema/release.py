"""Records of `ap.bundles.v1`: one release of a bundle (README, "Records that are JSON")."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass, field

from . import rollout_metrics
from .bundle import Bundle, bundle_hash, decode, open_signed, split_signed
from .bundle_law import POLICY_NAME, RWND_FAIR
from .bundle_wire import BUNDLE
from .bundle_wire import parse as parse_message
from .keys import TrustedKey
from .nodes import BundleError
from .serials import ahead

SLOTS = ("champion", "canary", "challenger", "online")
SOURCES = ("registry", "online")
ROLLOUT = {"share", "soak_s", "activate_in_s", "metric", "limit"}
ROLLOUT_MORE = {"steps", "deadline_s"}  # those that a writer may leave out


class ReleaseError(ValueError):
    """A record that is no release; the message says what is wrong with it, `reason` in a word: bad_record, or future.
    """

    def __init__(self, message: str, reason: str = "bad_record"):
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Release:
    """One release. `signed` is None when the record withdraws what its slot and scope held; the other fields are then
    empty.

    hash           SHA-256 of the payload, hex; serial: microseconds since 1970; feature_hash: unsigned 64-bit, as in a
                   tree
    created_us     when it was released; pinned: online trees are forbidden in its scope
    rank           serial by which releases for one AP are compared: that of the bundle when its models were released. A
                   bundle that only takes newer numbers keeps it, and so its place
    promoted_by    person who set the alias, where the registry knows; empty: unknown
    site           of the AP that an online tree is for, as its items said; empty: unknown
    variant_of     hash, hex, of the fleet's bundle that this one has the models of, with its scope's own numbers; it
                   stands in for it there
    policy         policy (folder) whose bundle it is; releases of different policies do not touch each other
    """

    slot: str
    scope: str
    signed: bytes | None = None
    hash: str = ""
    serial: int = 0
    source: str = ""
    model: str = ""
    version: int = 0
    run_id: str = ""
    feature_hash: int = 0
    created_us: int = 0
    pinned: bool = False
    reason: str = ""
    rollout: dict | None = field(default=None)
    rank: int = 0
    variant_of: str = ""
    policy: str = RWND_FAIR
    promoted_by: str = ""
    site: str = ""

    def bundle(self) -> Bundle:
        """What `signed` holds; the signature is not checked. BundleError unless an AP that it is meant for would take
        it.
        """
        return decode(split_signed(self.signed)[0])


def key(slot: str, scope: str, policy: str = RWND_FAIR) -> str:
    """Record key: SLOT/SCOPE, of any policy but rwnd-fair SLOT/SCOPE/POLICY. ReleaseError when a part is none of the
    contract's.
    """
    if slot not in SLOTS:
        raise ReleaseError(f"slot {slot!r}; known are {', '.join(SLOTS)}")
    if scope != "fleet" and not re.fullmatch(r"(site|ap)/[!-.0-~]+", scope):
        raise ReleaseError(f"scope {scope!r}; it is fleet, site/SITE or ap/AP_ID, without a further slash")
    if not POLICY_NAME.fullmatch(policy):
        raise ReleaseError(f"policy {policy!r}; it is {POLICY_NAME.pattern}")
    if slot == "online" and policy != RWND_FAIR:
        raise ReleaseError(f"slot online of policy {policy}; it is {RWND_FAIR}'s only")
    return f"{slot}/{scope}" + (f"/{policy}" if policy != RWND_FAIR else "")


def split_key(name: str) -> tuple[str, str, str]:
    """(slot, scope, policy) of a record key. ReleaseError when it is none."""
    slot, _, rest = name.partition("/")
    parts = rest.split("/")
    most = 1 if parts[0] == "fleet" else 2
    scope, more = "/".join(parts[:most]), parts[most:]
    policy = more[0] if more else RWND_FAIR
    if key(slot, scope, policy) != name:
        raise ReleaseError(f"key {name!r}; it is SLOT/SCOPE of {RWND_FAIR}, and SLOT/SCOPE/POLICY of any other policy")
    return slot, scope, policy


def record(
    slot: str,
    scope: str,
    signed: bytes,
    *,
    source: str,
    model: str,
    version: int,
    run_id: str,
    feature_hash: int,
    created_us: int,
    pinned: bool = False,
    reason: str = "",
    rollout: dict | None = None,
    rank: int = 0,
    variant_of: str = "",
    promoted_by: str = "",
    site: str = "",
) -> tuple[str, bytes]:
    """(key, value) of the record that releases `signed`, of the policy that it says. `rank` 0: the bundle's serial."""
    payload, serial, policy = _of_bundle(signed)
    name = key(slot, scope, policy)
    if source not in SOURCES:
        raise ReleaseError(f"source {source!r}; known are {', '.join(SOURCES)}")
    if rollout is not None:
        _check_rollout(rollout)
    _check_place(rank or serial, serial, variant_of, scope)
    value = {
        "slot": slot,
        "scope": scope,
        "bundle": base64.b64encode(signed).decode(),
        "hash": bundle_hash(payload).hex(),
        "serial": serial,
        "rank": rank or serial,
        "variant_of": variant_of,
        "source": source,
        "model": model,
        "version": version,
        "run_id": run_id,
        "feature_hash": feature_hash,
        "created_us": created_us,
        "pinned": bool(pinned),
        "reason": reason,
        "rollout": rollout,
    }
    value |= {"policy": policy} if policy != RWND_FAIR else {}
    value |= {"promoted_by": promoted_by} if promoted_by else {}
    value |= {"site": site} if site else {}
    return name, json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _check_rollout(rollout: dict) -> None:
    if set(rollout) - ROLLOUT_MORE != ROLLOUT:
        raise ReleaseError(
            f"rollout has {sorted(rollout)}; it needs {sorted(ROLLOUT)} and may have {sorted(ROLLOUT_MORE)}"
        )
    if rollout["metric"] and rollout["metric"] not in rollout_metrics.known():
        raise ReleaseError(f"metric {rollout['metric']!r}; known are {', '.join(rollout_metrics.known())}")


def _of_bundle(signed: bytes) -> tuple[bytes, int, str]:
    """(payload, serial, policy) of a signed bundle; nothing is verified."""
    payload = split_signed(signed)[0]
    v = parse_message(BUNDLE, payload)
    return payload, v["serial"], v["of_policy"] if v["format"] == 2 else RWND_FAIR


def _check_place(rank: int, serial: int, variant_of: str, scope: str) -> None:
    if not 1 <= rank <= serial:
        raise ReleaseError(f"rank {rank}; it is 1 to the bundle's serial, {serial}")
    if variant_of and (scope == "fleet" or not re.fullmatch("[0-9a-f]{64}", variant_of)):
        raise ReleaseError(
            f"variant_of {variant_of!r} for {scope}; it is the hash of the fleet's bundle, for a site or an access "
            f"point"
        )


def withdrawal(slot: str, scope: str, policy: str = RWND_FAIR) -> tuple[str, None]:
    """(key, no value): takes back what slot and scope held of a policy."""
    return key(slot, scope, policy), None


def parse(name: str | bytes, value: bytes | None) -> Release:
    """Read a record. ReleaseError when key, value and bundle do not belong together, or the hash is not that of the
    payload.
    """
    try:
        name = name.decode() if isinstance(name, bytes) else name
    except UnicodeDecodeError:
        raise ReleaseError(f"key {name!r} is no text") from None
    slot, scope, policy = split_key(name)
    if not value:
        return Release(slot, scope, policy=policy)
    try:
        v = json.loads(value)
        out = Release(
            v["slot"],
            v["scope"],
            base64.b64decode(v["bundle"], validate=True),
            v["hash"],
            int(v["serial"]),
            v["source"],
            v["model"],
            int(v["version"]),
            v["run_id"],
            int(v["feature_hash"]),
            int(v["created_us"]),
            v.get("pinned") is True,
            v.get("reason", ""),
            v.get("rollout"),
            int(v.get("rank") or v["serial"]),
            v.get("variant_of") or "",
            v.get("policy") or RWND_FAIR,
            v.get("promoted_by") or "",
            str(v.get("site") or ""),
        )
        payload, serial, of_policy = _of_bundle(out.signed)
    except (ValueError, KeyError, TypeError, binascii.Error, BundleError) as e:
        raise ReleaseError(f"record {name}: {type(e).__name__}: {e}") from None
    if (out.slot, out.scope, out.policy) != (slot, scope, policy):
        raise ReleaseError(f"record {name}: its value says {out.slot}/{out.scope}, policy {out.policy}")
    if of_policy != policy:
        raise ReleaseError(f"record {name}: its bundle is of policy {of_policy}")
    if bundle_hash(payload).hex() != out.hash or serial != out.serial:
        raise ReleaseError(f"record {name}: hash or serial is not that of its bundle")
    _check_place(out.rank, serial, out.variant_of, scope)
    return out


def verify(r: Release, trusted: dict[int, TrustedKey], now_us: int) -> Bundle:
    """The bundle of a release that may count as in force: a trusted key signed it that may sign it, and what the record
    says of it is what it says itself. BundleError or ReleaseError, each with its `reason`, for any other.

    Of a record only its bundle is signed: run_id, reason, pinned, rollout, rank, variant_of, promoted_by and site are
    what its writer says.
    """
    bundle, _ = open_signed(r.signed, trusted, None, None)
    name = key(r.slot, r.scope, r.policy)
    source = "online" if r.slot == "online" else "registry"
    if bundle.target not in (r.scope, "fleet"):
        raise BundleError("wrong_target", f"record {name}: its bundle is for {bundle.target}")
    if (r.source, bundle.source) != (source, source):
        raise ReleaseError(f"record {name}: it says source {r.source}, its bundle {bundle.source}; here is {source}")
    said, held = (r.model, r.version, r.feature_hash), (bundle.model, bundle.version, bundle.feature_hash)
    if said != held:
        raise ReleaseError(f"record {name}: it says model, version and features {said}, its bundle {held}")
    if ahead(r.serial, now_us):
        raise ReleaseError(
            f"record {name}: serial {r.serial} is {(r.serial - now_us) // 1_000_000} s ahead of this clock: is its "
            "signer's clock wrong, or its key stolen?",
            "future",
        )
    return bundle
