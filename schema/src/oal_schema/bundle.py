"""Signed bundles: encode, decode, sign, and what an AP checks before it uses one (README, "Bundles").

The C is `ap-exporter/src/model/bundle.c`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from .bundle_law import FAIR_WINDOW, POLICY_NAME, RWND_FAIR, Law, law_of
from .bundle_models import Model, check_golden, kinds_of, models_of, table_of
from .bundle_parts import check_program, program_columns, program_words
from .bundle_vectors import choose
from .bundle_wire import BUNDLE, SIGNED, parse, write
from .keys import TrustedKey, key_id
from .nodes import BundleError
from .policy import OFF, PREDICT_ONLY, Policy
from .policy import of as policy_of
from .program_file import program_hash
from .settings import settings
from .tree import Tree
from .window import WindowModel

__all__ = ["Bundle", "Law", "Model", "bundle_hash", "bundle_id", "decode", "encode", "models_of", "open_signed", "sign"]
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
    models         at most 4, each of another role; with the rows from which golden vectors are made. None: the law goes
                   by what it measures
    policy         what the AP may do with its predictions; None: nothing, as with mode off
    law            what is done with the models' answers
    of_policy      policy (folder) it belongs to
    """

    serial: int
    target: str
    source: str
    model: str
    version: int
    rollback_to: list[bytes]
    program: list[tuple[int, ...]]
    decision_interval_us: int
    models: list[Model]
    policy: Policy | None = PREDICT_ONLY
    law: Law = FAIR_WINDOW
    of_policy: str = RWND_FAIR

    def role(self, name: str) -> Model | None:
        """The model of a role, or None."""
        return next((m for m in self.models if m.role == name), None)

    @property
    def tree(self) -> Tree | None:
        """The tree that says the class, or None."""
        model = self.role("class")
        return model.table if model else None

    @property
    def window(self) -> WindowModel | None:
        """The model of role window, or None."""
        model = self.role("window")
        return model.table if model else None

    @property
    def golden(self) -> np.ndarray | None:
        """Golden rows of `tree`, int64[r, features]."""
        return self.role("class").golden

    @property
    def format(self) -> int:
        """1 wherever that can say it: agents in the field read nothing else. Otherwise 2."""
        fair = self.of_policy == RWND_FAIR and self.law == FAIR_WINDOW
        roles = [(m.role, m.kind.name) for m in self.models]
        return 1 if fair and roles in ([("class", "tree")], [("class", "tree"), ("window", "sum")]) else 2

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
    """Payload of a bundle, with golden vectors; equal bundles give equal bytes. BundleError for one that no AP would
    take.
    """
    if bundle.source not in SOURCES:
        raise ValueError(f"source {bundle.source!r}; known are {', '.join(SOURCES)}")
    check_program(bundle.program, bundle.decision_interval_us)
    n = len(bundle.program)
    for m in bundle.models:
        m.table.check(n)
    values = {
        "format": bundle.format,
        "serial": bundle.serial,
        "target": bundle.target,
        "source": SOURCES[bundle.source],
        "model": bundle.model,
        "version": bundle.version,
        "rollback_to": bundle.rollback_to,
        "program": program_columns(bundle.program, bundle.decision_interval_us),
        "policy": bundle.policy.columns() if bundle.policy else None,
    }
    put_models = _put_models_1 if bundle.format == 1 else _put_models_2
    put_models(values, bundle, None)
    if bundle.models:
        put_models(
            values, bundle, choose([(m.table, m.golden) for m in bundle.models], n, room=len(write(BUNDLE, values)))
        )
    payload = write(BUNDLE, values)
    decode(payload)
    return payload


def _put_models_1(values: dict, bundle: Bundle, rows: list[np.ndarray] | None) -> None:
    values |= {field: m.kind.columns(m.table) for field, m in zip(("tree", "window"), bundle.models)}
    if rows is not None:
        values["golden"] = {}
        for (inputs, answers), m, x in zip(
            (("features", "leaf"), ("window_input", "window_bytes")), bundle.models, rows
        ):
            values["golden"] |= {inputs: x.ravel(), answers: m.table.answer(x)}


def _put_models_2(values: dict, bundle: Bundle, rows: list[np.ndarray] | None) -> None:
    values |= {
        "law": bundle.law.columns(),
        "of_policy": bundle.of_policy,
        "models": [{"role": m.role, "kind": m.kind.name, m.kind.name: m.kind.columns(m.table)} for m in bundle.models],
    }
    for v, m, x in zip(values["models"], bundle.models, rows or []):
        v |= {"golden_input": x.ravel(), "golden_answer": m.table.answer(x)}


def decode(payload: bytes) -> Bundle:
    """Bundle of a payload. BundleError, in the contract's order, unless an AP that it is meant for would take it."""
    return _open_payload(payload, (None, None), None, None, None)


def sign(payload: bytes, key: Ed25519PrivateKey) -> bytes:
    """SignedBundle of a payload: what travels, and what an AP keeps on flash."""
    signed = write(SIGNED, {"payload": payload, "key_id": key_id(key), "signature": key.sign(DOMAIN + payload)})
    if len(signed) > settings()["max_bundle_bytes"]:
        raise BundleError("oversized", f"{len(signed)} bytes; at most {settings()['max_bundle_bytes']}")
    return signed


def split_signed(data: bytes) -> tuple[bytes, int, bytes]:
    """(payload, key_id, signature) of a SignedBundle; nothing is verified. BundleError: oversized, malformed, unsigned.
    """
    if len(data) > settings()["max_bundle_bytes"]:
        raise BundleError("oversized", f"{len(data)} bytes; at most {settings()['max_bundle_bytes']}")
    envelope = parse(SIGNED, data)
    if envelope["payload"] is None:
        raise BundleError("malformed", "no payload")
    if not envelope["signature"]:
        raise BundleError("unsigned", "no signature")
    return envelope["payload"], envelope["key_id"], envelope["signature"]


def open_signed(
    data: bytes,
    trusted: dict[int, TrustedKey],
    ap_id: str | None,
    site: str | None,
    in_force: tuple[Bundle, bytes] | None = None,
) -> tuple[Bundle, bytes]:
    """(bundle, its hash) if AP `ap_id` at `site` may use it, else BundleError with the first reason in the contract's
    order.

    `in_force`: what this function gave for the bundle of the same policy in force. `ap_id` None: any target (for the
    platform, which stores what others will use).
    """
    payload, signer, signature = split_signed(data)
    if signer not in trusted:
        raise BundleError("unknown_key", f"key {signer:016x} is not among the {len(trusted)} trusted")
    try:
        trusted[signer].key.verify(signature, DOMAIN + payload)
    except InvalidSignature:
        raise BundleError("bad_signature", f"not made with key {signer:016x}") from None
    digest = bundle_hash(payload)
    return _open_payload(payload, (ap_id, site), in_force, digest, trusted[signer]), digest


def _open_payload(
    payload: bytes,
    place: tuple[str | None, str | None],
    in_force: tuple[Bundle, bytes] | None,
    digest: bytes | None,
    signer: TrustedKey | None,
) -> Bundle:
    """`place`: AP and its site, or None for any target; `signer`: the key that signed it, or None: nobody asks."""
    v = parse(BUNDLE, payload)
    hashes = v["rollback_to"]
    if v["serial"] <= 0 or not v["target"] or len(hashes) > MAX_ROLLBACK or any(len(h) != 32 for h in hashes):
        raise BundleError(
            "malformed", f"serial {v['serial']}, target {v['target']!r}, {len(hashes)} hashes to go back to"
        )
    models, law, of_policy = _parts(v)
    source = next(name for name, number in SOURCES.items() if number == v["source"])
    mode = v["policy"]["mode"] if v["policy"] is not None else OFF
    if signer is not None and (why := signer.refuses(source, v["target"], mode, *place)):
        raise BundleError("not_permitted", why)
    ap_id, site = place
    if ap_id is not None and v["target"] not in ("fleet", f"site/{site}", f"ap/{ap_id}"):
        raise BundleError("wrong_target", f"it is for {v['target']}")
    if (
        in_force is not None
        and v["serial"] <= in_force[0].serial
        and digest not in (in_force[1], *in_force[0].rollback_to)
    ):
        raise BundleError(
            "replayed",
            f"serial {v['serial']} is not greater than {in_force[0].serial}, and that one does "
            "not allow to go back to it",
        )
    program = program_words(v["program"])
    n, interval = len(program), v["program"]["decision_interval_us"]
    check_program(program, interval)
    tables = [Model(role, table_of(kind, columns, n)) for role, kind, columns, _, _ in models]
    policy = policy_of(v["policy"]) if v["policy"] is not None else None
    bundle = Bundle(
        v["serial"],
        v["target"],
        source,
        v["model"],
        v["version"],
        v["rollback_to"],
        program,
        interval,
        tables,
        policy,
        law,
        of_policy,
    )
    for m in tables:
        if m.table.feature_hash != bundle.feature_hash:
            raise BundleError(
                "feature_mismatch",
                f"{m.kind.title} is for program {m.table.feature_hash:016x}, not {bundle.feature_hash:016x}",
            )
    for m, (_, _, _, inputs, answers) in zip(tables, models):
        m.golden = check_golden(m, inputs, answers, n)
    golden = v["golden"] or {}
    if v["format"] == 1 and v["window"] is None and (golden.get("window_input") or golden.get("window_bytes")):
        raise BundleError("golden_mismatch", "vectors for a window model, and none is there")
    return bundle


def _parts(v: dict) -> tuple[list[tuple[str, str, dict, list[int], list[int]]], Law, str]:
    """((role, kind, columns, golden inputs, golden answers) of each model, law, policy), whatever the format."""
    first, second = (
        [v[name] is not None for name in ("tree", "window", "golden")],
        [v["models"], v["law"], v["of_policy"]],
    )
    if (
        v["format"] not in (1, 2)
        or v["source"] not in SOURCES.values()
        or v["program"] is None
        or v["format"] == 1
        and not first[0]
    ):
        raise BundleError(
            "unsupported_format", f"format {v['format']}, source {v['source']}; program and tree are needed"
        )
    if v["format"] == 1:
        if any(second):
            raise BundleError("malformed", "models, law or of_policy in a bundle of format 1")
        golden = v["golden"] or {}
        window = v["window"] is not None
        models = [("class", "tree", v["tree"], golden.get("features", []), golden.get("leaf", []))] + window * [
            ("window", "sum", v["window"], golden.get("window_input", []), golden.get("window_bytes", []))
        ]
        return models, FAIR_WINDOW, RWND_FAIR
    kinds = kinds_of(v["models"])
    law = law_of(v["law"], kinds)
    if any(first):
        raise BundleError("malformed", "tree, window or golden in a bundle of format 2")
    if not POLICY_NAME.fullmatch(v["of_policy"]):
        raise BundleError("malformed", f"of_policy {v['of_policy']!r}; it is {POLICY_NAME.pattern}")
    return (
        [(m["role"], m["kind"], m[m["kind"]], m["golden_input"], m["golden_answer"]) for m in v["models"]],
        law,
        v["of_policy"],
    )
