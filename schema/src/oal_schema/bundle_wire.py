"""Messages of `bundle.proto` as dicts: a writer whose bytes depend on the values alone, and a reader that trusts no
length (README, "Bundles").

The field tables below are checked against the `.proto` by tests/test_bundle.py.
"""

from __future__ import annotations

from . import wire
from .nodes import BundleError
from .policy import spec as policy_spec

#: kinds of number: how its varint maps to a value, and the largest varint
U32, S32, S64, FIXED64, BYTES, TEXT, MESSAGE = "u32", "s32", "s64", "fixed64", "bytes", "text", "message"
MAX_TEXT = 127


def _lists(kind: str, first: int, *names: str) -> dict[int, tuple[str, str, bool]]:
    return {first + i: (name, kind, True) for i, name in enumerate(names)}


#: number → (name, kind, repeated)
PROGRAM = {
    1: ("decision_interval_us", U32, False),
    **_lists(S32, 2, "op", "table", "column", "filter_column"),
    **_lists(S64, 6, "filter_value"),
    **_lists(S32, 7, "group"),
    **_lists(S64, 8, "window", "a", "b"),
    **_lists(U32, 11, "given"),
    **_lists(S64, 12, "bound"),
}
TREE = {
    1: ("feature_hash", FIXED64, False),
    **_lists(U32, 2, "feature"),
    **_lists(S64, 3, "threshold"),
    **_lists(U32, 4, "right", "missing_right", "leaf_class", "leaf_permille"),
}
WINDOW = {
    1: ("feature_hash", FIXED64, False),
    **_lists(S32, 2, "input"),
    3: ("base", S64, False),
    4: ("shift", U32, False),
    5: ("lo", S64, False),
    6: ("hi", S64, False),
    **_lists(U32, 7, "tree_nodes", "feature"),
    **_lists(S64, 9, "threshold"),
    **_lists(U32, 10, "right", "missing_right"),
    **_lists(S64, 12, "leaf_value"),
}
_POLICY = {
    1: ("mode", U32, False),
    2: ("name", TEXT, False),
    3: ("version", U32, False),
    **{f["field"]: (f["name"], U32, False) for f in policy_spec()["fields"]},
    **_lists(
        U32, policy_spec()["weights"]["field"], policy_spec()["weights"]["ports"], policy_spec()["weights"]["values"]
    ),
}
POLICY = dict(sorted(_POLICY.items()))  # fields are written in order of number
GOLDEN = {**_lists(S64, 1, "features"), **_lists(U32, 2, "leaf"), **_lists(S64, 3, "window_input", "window_bytes")}
MODEL = {
    1: ("role", TEXT, False),
    2: ("kind", TEXT, False),
    3: ("tree", TREE, False),
    4: ("sum", WINDOW, False),
    **_lists(S64, 5, "golden_input", "golden_answer"),
}
LAW = {1: ("name", TEXT, False), 2: ("subject", TEXT, False), 3: ("action", TEXT, False), **_lists(S64, 4, "values")}
BUNDLE = {
    1: ("format", U32, False),
    2: ("serial", S64, False),
    3: ("target", TEXT, False),
    4: ("source", U32, False),
    5: ("model", TEXT, False),
    6: ("version", U32, False),
    7: ("rollback_to", BYTES, True),
    8: ("program", PROGRAM, False),
    9: ("tree", TREE, False),
    10: ("window", WINDOW, False),
    11: ("policy", POLICY, False),
    12: ("golden", GOLDEN, False),
    13: ("models", MODEL, True),
    14: ("law", LAW, False),
    15: ("of_policy", TEXT, False),
}
SIGNED = {1: ("payload", BYTES, False), 2: ("key_id", FIXED64, False), 3: ("signature", BYTES, False)}


def _bad(detail: str) -> BundleError:
    return BundleError("malformed", detail)


def _number(kind: str, raw: int, name: str) -> int:
    if kind != S64 and raw >> 32:
        raise _bad(f"{name}: {raw} is more than 32 bits")
    return raw if kind == U32 else wire.unzigzag(raw)


def _text(data: bytes, name: str) -> str:
    if len(data) > MAX_TEXT or any(not 0x20 <= b <= 0x7E for b in data):
        raise _bad(f"{name}: not at most {MAX_TEXT} printable ASCII characters")
    return data.decode("ascii")


def parse(spec: dict, data: bytes) -> dict:
    """Read a message: scalars default to 0 or "", lists to [], messages and single bytes to None.
    BundleError("malformed") otherwise.

    A list may be packed, not packed or both; a field that is not a list may be there once.
    """
    out: dict = {
        name: [] if repeated else None if isinstance(kind, dict) or kind == BYTES else "" if kind == TEXT else 0
        for name, kind, repeated in spec.values()
    }
    seen = set()
    try:
        for number, wire_type, start, end in wire.fields(data, 0, len(data)):
            if number not in spec:
                continue
            name, kind, repeated = spec[number]
            if not repeated:
                if number in seen:
                    raise _bad(f"{name} is there twice")
                seen.add(number)
            if isinstance(kind, dict) or kind in (BYTES, TEXT):
                if wire_type != 2:
                    raise _bad(f"{name}: wire type {wire_type}")
                value = data[start:end]
                value = parse(kind, value) if isinstance(kind, dict) else value if kind == BYTES else _text(value, name)
                if repeated:
                    out[name].append(value)
                else:
                    out[name] = value
            elif kind == FIXED64:
                if wire_type != 1:
                    raise _bad(f"{name}: wire type {wire_type}")
                out[name] = int.from_bytes(data[start:end], "little")
            elif wire_type == 0:
                value = _number(kind, wire.get_varint(data, start, end)[0], name)
                if repeated:
                    out[name].append(value)
                else:
                    out[name] = value
            elif wire_type == 2 and repeated:
                out[name] += [_number(kind, raw, name) for raw in wire.varints(data, start, end)]
            else:
                raise _bad(f"{name}: wire type {wire_type}")
    except wire.Refused as e:
        raise _bad(e.detail) from None
    return out


def write(spec: dict, values: dict) -> bytes:
    """Bytes of a message: fields in order of number, lists packed, zero scalars and empty lists left out; messages that
    are None too.
    """
    out = bytearray()
    for number, (name, kind, repeated) in sorted(spec.items()):
        value = values.get(name)
        if isinstance(kind, dict):
            for piece in value or [] if repeated else [value] if value is not None else []:
                wire.put_bytes(out, number, write(kind, piece))
        elif kind in (BYTES, TEXT):
            for piece in value or [] if repeated else [value] if value else []:
                wire.put_bytes(out, number, piece.encode("ascii") if kind == TEXT else piece)
        elif kind == FIXED64:
            wire.put_fixed64(out, number, value or 0)
        elif repeated:
            packed = bytearray()
            for v in value if value is not None else []:
                wire.put_varint(packed, _raw(kind, int(v), name))
            if packed:
                wire.put_bytes(out, number, packed)
        else:
            wire.put_uint(out, number, _raw(kind, int(value or 0), name))
    return bytes(out)


def _raw(kind: str, value: int, name: str) -> int:
    lo, hi = {U32: (0, (1 << 32) - 1), S32: (-(1 << 31), (1 << 31) - 1), S64: (-(1 << 63), (1 << 63) - 1)}[kind]
    if not lo <= value <= hi:
        raise ValueError(f"{name}: {value} does not fit {kind}")
    return value if kind == U32 else wire.zigzag(value)
