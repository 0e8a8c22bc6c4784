"""Golden trusted keys (golden/README.md): what a line of the file says, and which bundles a key may sign."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from . import golden_bundles
from .bundle import encode, open_signed, sign
from .bundle_law import Law
from .bundle_wire import BUNDLE, parse, write
from .golden_file import container
from .grant import grant
from .keys import TrustedKey, key_id, public_line, read_line
from .nodes import BundleError
from .policy import ENFORCE, OFF, SHADOW, Policy, make

AP, SITE = golden_bundles.AP_ID, golden_bundles.SITE
#: name → (private half: 32 times this byte, its grant)
GRANTS = {
    "registry": (4, grant("registry")),
    "registry-off": (5, grant("registry", max_mode="off")),
    "registry-shadow": (6, grant("registry", max_mode="shadow")),
    "registry-site": (7, grant("registry", f"site/{SITE}")),
    "registry-elsewhere": (8, grant("registry", "site/elsewhere")),
    "trainer": (9, grant("trainer", max_mode="shadow")),
    "trainer-ap": (10, grant("trainer", f"ap/{AP}")),
    "operator-site": (11, grant("operator", f"site/{SITE}")),
    "operator-ap": (12, grant("operator", f"ap/{AP}", "shadow")),
    "old": (13, None),
}
KEYS = {name: Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for name, (n, _) in GRANTS.items()}
MODES = {OFF: Policy(), SHADOW: Policy(SHADOW), ENFORCE: make("hall", 1, ENFORCE)}
#: (case, signer, what differs from a bundle of the registry for the fleet in shadow, or mode)
CASES = (
    ("role_registry", "registry", {}),
    ("role_trainer", "trainer", {"source": "online", "target": f"ap/{AP}"}),
    ("role_trainer_fleet", "trainer", {"source": "online"}),
    ("role_operator_site", "operator-site", {"target": f"site/{SITE}"}),
    ("role_operator_ap_of_site", "operator-site", {"target": f"ap/{AP}"}),
    ("role_operator_ap", "operator-ap", {"target": f"ap/{AP}"}),
    ("role_trainer_as_registry", "trainer", {}),
    ("role_registry_as_online", "registry", {"source": "online", "target": f"ap/{AP}"}),
    ("role_operator_as_online", "operator-ap", {"source": "online", "target": f"ap/{AP}"}),
    ("scope_fleet_site", "registry", {"target": f"site/{SITE}"}),
    ("scope_fleet_ap", "registry", {"target": f"ap/{AP}"}),
    ("scope_fleet_other_ap", "registry", {"target": "ap/ap-2"}),
    ("scope_site_site", "registry-site", {"target": f"site/{SITE}"}),
    ("scope_site_ap", "registry-site", {"target": f"ap/{AP}"}),
    ("scope_site_fleet", "registry-site", {}),
    ("scope_site_other_site", "registry-site", {"target": "site/elsewhere"}),
    ("scope_site_prefix", "registry-site", {"target": f"site/{SITE}2"}),
    ("scope_site_other_ap", "registry-site", {"target": "ap/ap-2"}),
    ("scope_elsewhere_ap", "registry-elsewhere", {"target": f"ap/{AP}"}),
    ("scope_elsewhere_site", "registry-elsewhere", {"target": f"site/{SITE}"}),
    ("scope_ap_ap", "trainer-ap", {"source": "online", "target": f"ap/{AP}"}),
    ("scope_ap_fleet", "trainer-ap", {"source": "online"}),
    ("scope_ap_site", "operator-ap", {"target": f"site/{SITE}"}),
    ("scope_ap_other_ap", "trainer-ap", {"source": "online", "target": "ap/ap-2"}),
    ("mode_enforce", "registry", {"mode": ENFORCE}),
    ("mode_off_enforce", "registry-off", {"mode": ENFORCE}),
    ("mode_off_shadow", "registry-off", {"mode": SHADOW}),
    ("mode_off_off", "registry-off", {"mode": OFF}),
    ("mode_off_none", "registry-off", {"mode": None}),
    ("mode_shadow_enforce", "registry-shadow", {"mode": ENFORCE}),
    ("mode_shadow_shadow", "registry-shadow", {"mode": SHADOW}),
    ("mode_trainer_enforce", "trainer", {"source": "online", "target": f"ap/{AP}", "mode": ENFORCE}),
    ("format_2", "registry-site", {"target": f"site/{SITE}", "of_policy": "example"}),
    ("format_2_enforce", "registry-shadow", {"mode": ENFORCE, "of_policy": "example"}),
    ("format_2_trainer", "trainer", {"of_policy": "example"}),
    ("old_line", "old", {}),
    ("old_line_online", "old", {"source": "online", "target": f"ap/{AP}"}),
)
#: (case, signer, fields of the message): what no writer makes
ODD = (
    ("unknown_source_before", "old", {"source": 3}),
    ("mode_3_within", "registry", {"mode": 3}),
    ("mode_3_above", "registry-shadow", {"mode": 3}),
)
NAME = "ed25519 iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w= n"
GOOD = "role=registry scope=fleet max_mode=enforce"
LINES = (
    *(f"{NAME} role={role} scope=site/lab max_mode={mode}" for role in ("registry", "trainer", "operator")
      for mode in ("off", "shadow", "enforce")),
    f"{NAME} {GOOD}",
    f"{NAME} role=trainer scope=fleet max_mode=shadow",
    f"{NAME} max_mode=off scope=ap/A.b_c-9 role=operator",
    f"  {NAME.replace(' ', chr(9))}\t{GOOD}  # a note\r",
    f"{NAME} role=registry scope=ap/{'a' * 64} max_mode=off",
    NAME,
    f"{NAME} # {GOOD}",
    NAME[:-1] + "n" * 63,
    NAME[:-1] + "role=registry",
    "",
    "  # a note",
    # refused from here
    NAME[:-2],
    f"{NAME} m",
    f"{NAME} role=registry",
    f"{NAME} role=registry scope=fleet",
    f"{NAME} role=registry max_mode=off",
    f"{NAME} scope=fleet max_mode=off",
    f"{NAME} {GOOD} role=registry",
    f"{NAME} {GOOD} scope=fleet",
    f"{NAME} {GOOD} max_mode=enforce",
    f"{NAME} {GOOD} until=2030",
    f"{NAME} {GOOD} x",
    f"{NAME} {GOOD} =",
    f"{NAME} {GOOD.replace('role=registry', 'role=')}",
    f"{NAME} {GOOD.replace('role=registry', 'role')}",
    f"{NAME} {GOOD.replace('registry', 'registrar')}",
    f"{NAME} {GOOD.replace('registry', 'regis')}",
    f"{NAME} {GOOD.replace('registry', 'Registry')}",
    f"{NAME} {GOOD.replace('registry', 'registry=')}",
    f"{NAME} {GOOD.replace('enforce', 'on')}",
    f"{NAME} {GOOD.replace('enforce', '')}",
    f"{NAME} {GOOD.replace('enforce', '2')}",
    f"{NAME} {GOOD.replace('registry', 'operator')}",
    *(f"{NAME} role=registry scope={scope} max_mode=off"
      for scope in ("", "site", "site/", "ap/", "fleet/", "fleet2", "site/a/b", "host/a", "site/-a", "site/.a", "ap/_a",
                    f"ap/{'a' * 65}", "site/a,b", "site/a=b", "/a")),
    NAME[:-1] + "n" * 64 + f" {GOOD}",
    NAME[:-1] + "n\u00e9" + f" {GOOD}",
    NAME.replace("w=", "x="),
    NAME.replace("ed25519", "rsa") + f" {GOOD}",
)


def lines() -> list[str]:
    """Of `keys.lines.txt`: what each line says, a tab, and the line."""
    out = []
    for line in LINES:
        try:
            key = read_line(line)
            says = "nothing" if key is None else str(key.grant) if key.grant else "old"
        except ValueError:
            says = "refused"
        out.append(f"{says}\t{line}")
    return out


def _payload(mode: int | None = SHADOW, **changes) -> bytes:
    if "of_policy" in changes:
        changes["law"] = Law("direct", "flow", "rwnd", (0, 0, 60_000, 30_000))
    policy = None if mode is None else MODES[mode]
    return encode(golden_bundles.bundle(tree=golden_bundles.random_tree(2, 1), policy=policy, **changes))


def cases() -> list[tuple[str, bytes]]:
    """(name, signed bundle)."""
    out = [(name, sign(_payload(**changes), KEYS[signer])) for name, signer, changes in CASES]
    for name, signer, fields in ODD:
        values = parse(BUNDLE, _payload())
        if "mode" in fields:
            values["policy"]["mode"] = fields["mode"]
        else:
            values |= fields
        out.append((name, sign(write(BUNDLE, values), KEYS[signer])))
    return out


def trusted() -> dict[int, TrustedKey]:
    """What `keys.trusted` says."""
    return {key_id(k): TrustedKey(k.public_key(), name, GRANTS[name][1]) for name, k in KEYS.items()}


def verdict(data: bytes, ap_id: str | None, site: str | None) -> str:
    """`ok` or the reason, at an AP or (None) at a service that keeps bundles for APs."""
    try:
        open_signed(data, trusted(), ap_id, site)
    except BundleError as e:
        return e.reason
    return "ok"


def outputs() -> dict[str, bytes]:
    """Files below `golden/`."""
    all_ = cases()
    file = ["# Test keys; their private halves are 32 times 04, 05 and so on."]
    file += [public_line(KEYS[name], name, g) for name, (_, g) in GRANTS.items()]
    verdicts = [f"{name} {verdict(data, AP, SITE)} {verdict(data, None, None)}" for name, data in all_]
    return {
        "keys.trusted": golden_bundles.text(file),
        "keys.lines.txt": "\n".join([*lines(), ""]).encode(),
        "keys.bin": container([(0, data) for _, data in all_]),
        "keys.txt": golden_bundles.text(verdicts),
    }
