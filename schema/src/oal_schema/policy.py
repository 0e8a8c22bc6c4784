"""Control policies: what an AP may do with its predictions, with the checks of README, "Policies" (the C is
`ap-exporter/src/model/bundle_policy.c`).

The list of numbers, with bounds and defaults, is `numbers.yaml`; read here from `generated/schema.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .mode import ENFORCE, OFF, SHADOW
from .nodes import BundleError
from .settings import generated

MAX_VERSION = (1 << 32) - 1


def spec() -> dict:
    """`numbers.yaml` as the generator saw it: `fields`, `rules`, `weights`, `modes`, `rewrite_reasons`,
    `rewrite_backends`.
    """
    return generated()["policy"]


def numbers() -> list[str]:
    """Names of the numbers, in order."""
    return [f["name"] for f in spec()["fields"]]


def defaults() -> dict[str, int]:
    """The default of every number."""
    return {f["name"]: f["default"] for f in spec()["fields"]}


@dataclass(frozen=True)
class Policy:
    """What a bundle says its AP may do.

    mode     OFF, SHADOW or ENFORCE
    name     of the policy file; without one there is no control: no version, no numbers, no weights
    control  every number of `numbers.yaml`
    weights  server port → weight of its flows, permille of the ordinary flow's
    """

    mode: int = OFF
    name: str = ""
    version: int = 0
    control: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[int, int] = field(default_factory=dict)

    def columns(self) -> dict:
        """Fields of Policy in `bundle.proto`."""
        w = spec()["weights"]
        return {
            "mode": self.mode,
            "name": self.name,
            "version": self.version,
            **self.control,
            w["ports"]: list(self.weights),
            w["values"]: list(self.weights.values()),
        }

    @property
    def mode_name(self) -> str:
        return spec()["modes"][self.mode]

    def __str__(self) -> str:
        return f"{self.name or 'no control'}/{self.version} ({self.mode_name})"


#: predict and report, without any control: what a bundle has when nobody says otherwise
PREDICT_ONLY = Policy(SHADOW)


def make(
    name: str,
    version: int,
    mode: int,
    control: Mapping[str, int] | None = None,
    weights: Mapping[int, int] | None = None,
) -> Policy:
    """A policy whose missing numbers are the defaults. BundleError("bad_policy") for one that no AP would take."""
    return of(
        Policy(mode, name, version, defaults() | dict(control or {}), dict(sorted((weights or {}).items()))).columns()
    )


def of(v: dict) -> Policy:
    """Policy of the fields of `bundle.proto`, checked in the contract's order. BundleError("bad_policy") names field,
    value and bounds.
    """
    names, w = numbers(), spec()["weights"]
    if unknown := sorted(set(v) - {"mode", "name", "version", *names, w["ports"], w["values"]}):
        raise _bad(f"{unknown[0]} is no number of a policy")
    _within("mode", v["mode"], OFF, ENFORCE)
    if not v["name"]:
        if v["mode"] == ENFORCE:
            raise _bad("name is missing: only a named policy may enforce")
        given = [n for n in ("version", *names, w["ports"], w["values"]) if v.get(n)]
        if given:
            raise _bad(f"name is missing, but {given[0]} is given")
        return Policy(v["mode"])
    _within("version", v["version"], 1, MAX_VERSION)
    for f in spec()["fields"]:
        _within(f["name"], v[f["name"]], f["min"], f["max"])
    for r in spec()["rules"]:
        low, high = v[r["low"]], v[r["high"]]
        if r["times"] * low > high:
            raise _bad(
                f"{r['low']} {low} is more than {high // r['times']}: {r['times']} times {r['low']} is at most "
                f"{r['high']} ({high})"
            )
    ports, values = v[w["ports"]], v[w["values"]]
    if len(ports) != len(values) or len(ports) > w["max"]:
        raise _bad(
            f"{w['ports']} has {len(ports)} and {w['values']} {len(values)} values; as many each, at most {w['max']}"
        )
    for i, (port, value) in enumerate(zip(ports, values)):
        _within(w["ports"], port, w["port_min"], w["port_max"])
        _within(w["values"], value, w["value_min"], w["value_max"])
        if port in ports[:i]:
            raise _bad(f"{w['ports']} {port} is there twice")
    return Policy(v["mode"], v["name"], v["version"], {n: v[n] for n in names}, dict(zip(ports, values)))


def _within(name: str, value: int, lo: int, hi: int) -> None:
    if not lo <= value <= hi:
        raise _bad(f"{name} {value}; {lo} to {hi}")


def _bad(detail: str) -> BundleError:
    return BundleError("bad_policy", detail)
