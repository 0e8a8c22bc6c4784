"""Signed bundles: encode, decode, sign, and what an AP checks before it uses one (README, "Bundles"; the C is `ap-exporter/src/model/bundle.c`)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from .bundle_parts import check_program, golden_columns, program_columns, program_words, tree_columns, tree_of, window_columns, window_of
from .bundle_vectors import choose
from .bundle_wire import BUNDLE, SIGNED, parse, write
from .keys import key_id
from .nodes import BundleError
from .policy import OFF, PREDICT_ONLY, Policy
from .policy import of as policy_of
from .program_file import program_hash
from .settings import settings
from .tree import Tree, WindowModel

FORMAT = 1
DOMAIN = b"OALB1"
SOURCES = {"registry": 1, "online": 2}
MAX_ROLLBACK = 4


@dataclass
class Bundle:
    """What is pushed to an AP.

    serial         microseconds since 1970 at which it was signed
    target         "fleet", "site/SITE" or "ap/AP_ID"
    source         "registry" or "online"; model and version: name and number of the model there
    rollback_to    hashes (32 bytes) of at most 4 older bundles to which an AP may go back from this one
    program        twelve words a feature; decision_interval_us: its period
    policy         what the AP may do with its predictions; None: nothing, as with mode off
    golden         rows of features, int64[r, f], from which golden vectors are made; None: made up from the tree. After decoding, the bundle's own
    golden_window  inputs of the window model, int64[r, k]; as `golden`
    """

    serial: int
    target: str
    source: str
    model: str
    version: int
    rollback_to: list[bytes]
    program: list[tuple[int, ...]]
    decision_interval_us: int
    tree: Tree
    window: WindowModel | None = None
    policy: Policy | None = PREDICT_ONLY
    golden: np.ndarray | None = field(default=None, repr=False)
    golden_window: np.ndarray | None = field(default=None, repr=False)

    @property
    def feature_hash(self) -> int:
        """First 8 bytes, big-endian, of the hash of the feature program."""
        return int.from_bytes(program_hash(self.program, self.decision_interval_us)[:8], "big")

    @property
    def policy_mode(self) -> int:
        """OFF, SHADOW or ENFORCE; no policy is OFF."""
        return self.policy.mode if self.policy else OFF


def bundle_hash(payload: bytes) -> bytes:
    """SHA-256 of the payload, 32 bytes; in hex it is the bundle's ETag."""
    return hashlib.sha256(payload).digest()


def bundle_id(digest: bytes) -> int:
    """63-bit number of a bundle in rows: first 8 bytes of its hash, big-endian, without the highest bit."""
    return int.from_bytes(digest[:8], "big") & (1 << 63) - 1


def encode(bundle: Bundle) -> bytes:
    """Payload of a bundle, with golden vectors; equal bundles give equal bytes. BundleError for one that no AP would take."""
    if bundle.source not in SOURCES:
        raise ValueError(f"source {bundle.source!r}; known are {', '.join(SOURCES)}")
    check_program(bundle.program, bundle.decision_interval_us)
    n = len(bundle.program)
    bundle.tree.check(n)
    if bundle.window:
        bundle.window.check(n)
    values = {"format": FORMAT, "serial": bundle.serial, "target": bundle.target, "source": SOURCES[bundle.source], "model": bundle.model,
              "version": bundle.version, "rollback_to": bundle.rollback_to, "program": program_columns(bundle.program, bundle.decision_interval_us),
              "tree": tree_columns(bundle.tree), "window": window_columns(bundle.window) if bundle.window else None,
              "policy": bundle.policy.columns() if bundle.policy else None}
    x, window_x = choose(bundle.tree, bundle.window, n, bundle.golden, bundle.golden_window, room=len(write(BUNDLE, values)))
    values["golden"] = golden_columns(bundle.tree, bundle.window, x, window_x)
    payload = write(BUNDLE, values)
    decode(payload)
    return payload


def decode(payload: bytes) -> Bundle:
    """Bundle of a payload. BundleError, in the contract's order, unless an AP that it is meant for would take it."""
    return _open_payload(payload, None, None, None)


def sign(payload: bytes, key: Ed25519PrivateKey) -> bytes:
    """SignedBundle of a payload: what travels, and what an AP keeps on flash."""
    signed = write(SIGNED, {"payload": payload, "key_id": key_id(key), "signature": key.sign(DOMAIN + payload)})
    if len(signed) > settings()["max_bundle_bytes"]:
        raise BundleError("oversized", f"{len(signed)} bytes; at most {settings()['max_bundle_bytes']}")
    return signed


def split_signed(data: bytes) -> tuple[bytes, int, bytes]:
    """(payload, key_id, signature) of a SignedBundle; nothing is verified. BundleError: oversized, malformed, unsigned."""
    if len(data) > settings()["max_bundle_bytes"]:
        raise BundleError("oversized", f"{len(data)} bytes; at most {settings()['max_bundle_bytes']}")
    envelope = parse(SIGNED, data)
    if envelope["payload"] is None:
        raise BundleError("malformed", "no payload")
    if not envelope["signature"]:
        raise BundleError("unsigned", "no signature")
    return envelope["payload"], envelope["key_id"], envelope["signature"]


def open_signed(data: bytes, trusted: dict[int, Ed25519PublicKey], ap_id: str | None, site: str | None,
                in_force: tuple[Bundle, bytes] | None = None) -> tuple[Bundle, bytes]:
    """(bundle, its hash) if AP `ap_id` at `site` may use it, else BundleError with the first reason in the contract's order.

    `in_force`: what this function gave for the bundle in force. `ap_id` None: any target (for the platform, which stores what others will use).
    """
    payload, signer, signature = split_signed(data)
    if signer not in trusted:
        raise BundleError("unknown_key", f"key {signer:016x} is not among the {len(trusted)} trusted")
    try:
        trusted[signer].verify(signature, DOMAIN + payload)
    except InvalidSignature:
        raise BundleError("bad_signature", f"not made with key {signer:016x}") from None
    targets = None if ap_id is None else ("fleet", f"site/{site}", f"ap/{ap_id}")
    digest = bundle_hash(payload)
    return _open_payload(payload, targets, in_force, digest), digest


def _open_payload(payload: bytes, targets: tuple | None, in_force: tuple[Bundle, bytes] | None, digest: bytes | None) -> Bundle:
    v = parse(BUNDLE, payload)
    if v["serial"] <= 0 or not v["target"] or len(v["rollback_to"]) > MAX_ROLLBACK or any(len(h) != 32 for h in v["rollback_to"]):
        raise BundleError("malformed", f"serial {v['serial']}, target {v['target']!r}, {len(v['rollback_to'])} hashes to go back to")
    if v["format"] != FORMAT or v["source"] not in SOURCES.values() or v["program"] is None or v["tree"] is None:
        raise BundleError("unsupported_format", f"format {v['format']}, source {v['source']}; program and tree are needed")
    if targets is not None and v["target"] not in targets:
        raise BundleError("wrong_target", f"it is for {v['target']}")
    if in_force is not None and v["serial"] <= in_force[0].serial and digest != in_force[1] and digest not in in_force[0].rollback_to:
        raise BundleError("replayed", f"serial {v['serial']} is not greater than {in_force[0].serial}, and that one does not allow to go back to it")
    program = program_words(v["program"])
    n, interval = len(program), v["program"]["decision_interval_us"]
    check_program(program, interval)
    tree = tree_of(v["tree"])
    tree.check(n)
    window = window_of(v["window"]) if v["window"] is not None else None
    if window:
        window.check(n)
    policy = policy_of(v["policy"]) if v["policy"] is not None else None
    bundle = Bundle(v["serial"], v["target"], {n: s for s, n in SOURCES.items()}[v["source"]], v["model"], v["version"], v["rollback_to"], program,
                    interval, tree, window, policy)
    for name, model in (("tree", tree), ("window model", window)):
        if model and model.feature_hash != bundle.feature_hash:
            raise BundleError("feature_mismatch", f"{name} is for program {model.feature_hash:016x}, not {bundle.feature_hash:016x}")
    bundle.golden, bundle.golden_window = _check_golden(v["golden"] or {}, tree, window, n)
    return bundle


def _check_golden(v: dict, tree: Tree, window: WindowModel | None, n: int) -> tuple[np.ndarray, np.ndarray | None]:
    def rows(model: str, inputs: list[int], answers: list[int], width: int) -> np.ndarray:
        if not answers or len(inputs) != len(answers) * width:
            raise BundleError("golden_mismatch", f"{model}: {len(answers)} answers and {len(inputs)} values for {width} inputs")
        return np.array(inputs, np.int64).reshape(-1, width)

    x = rows("tree", v.get("features", []), v.get("leaf", []), n)
    if (wrong := np.flatnonzero(tree.apply(x) != np.array(v["leaf"]))).size:
        raise BundleError("golden_mismatch", f"vector {wrong[0]}: leaf {tree.apply(x)[wrong[0]]}, not {v['leaf'][wrong[0]]}")
    if not window:
        if v["window_input"] or v["window_bytes"]:
            raise BundleError("golden_mismatch", "vectors for a window model, and none is there")
        return x, None
    window_x = rows("window model", v["window_input"], v["window_bytes"], len(window.inputs))
    if (wrong := np.flatnonzero(window.predict(window_x) != np.array(v["window_bytes"]))).size:
        raise BundleError("golden_mismatch", f"window vector {wrong[0]}: {window.predict(window_x)[wrong[0]]} bytes, not {v['window_bytes'][wrong[0]]}")
    return x, window_x
