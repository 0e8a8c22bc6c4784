"""What is written from `numbers.yaml`: the C struct with its bounds, the JSON schema of a policy file, the page of the
reference.
"""

from __future__ import annotations

import json

from .bundle_law import POLICY_NAME, RWND_FAIR
from .emit_c import NOTE
from .policy import MAX_VERSION
from .policy_file import APPLIES_TO, NAME

#: characters of a policy's name, as of any string in a bundle
MAX_NAME = 127


def c_header(policy: dict) -> str:
    weights = policy["weights"]
    o = [
        NOTE,
        "#ifndef OAL_POLICY_H\n#define OAL_POLICY_H\n\n#include <stddef.h>\n#include <stdint.h>\n",
        f"enum {{ OAL_POLICY_MAX_NAME = {MAX_NAME}, OAL_POLICY_MAX_WEIGHTS = {weights['max']}, OAL_POLICY_N_RULES = "
        f"{len(policy['rules'])} }};",
    ]
    for one, many in (
        ("policy_mode", "modes"),
        ("rewrite_reason", "rewrite_reasons"),
        ("rewrite_backend", "rewrite_backends"),
        ("action_kind", "actions"),
        ("congestion_control", "congestion_controls"),
    ):
        plural = f"{one}s"
        o.append(
            f"enum oal_{one} {{ "
            + ", ".join(f"OAL_{one.upper()}_{x.upper()}" for x in policy[many])
            + f", OAL_N_{plural.upper()} }};"
        )
        o.append(f"#define OAL_{plural.upper()} {{ " + ", ".join(f'"{x}"' for x in policy[many]) + " }")
    o.append(
        "\n/* A control policy, as a bundle carries it. */\nstruct oal_policy {\n"
        "\tchar name[OAL_POLICY_MAX_NAME + 1];\n\tuint32_t version;\n\tuint32_t mode; /* enum oal_policy_mode */"
    )
    for f in policy["fields"]:
        unit = f" [{f['unit']}]" if f["unit"] != "1" else ""
        o.append(f"\tuint32_t {f['name']}; /* {f['doc'].rstrip('.')}{unit} */")
    o.append("\t/* Flows with this server port weigh so much, in permille of the ordinary flow's weight. */")
    o.append(
        f"\tuint32_t n_weights;\n\tuint32_t {weights['ports']}[OAL_POLICY_MAX_WEIGHTS];\n"
        f"\tuint32_t {weights['values']}[OAL_POLICY_MAX_WEIGHTS];\n}};\n"
    )
    o.append(
        "enum oal_policy_field {\n"
        + "".join(f"\tOAL_POLICY_{f['name'].upper()},\n" for f in policy["fields"])
        + "\tOAL_N_POLICY_FIELDS\n};"
    )
    o.append("""
struct oal_policy_field_spec {
	const char *name, *unit;
	uint16_t offset; /* in struct oal_policy; each is a uint32_t */
	uint8_t field;   /* in the message Policy */
	uint32_t min, max, normal; /* what is accepted, and the default */
};

/* times * low <= high */
struct oal_policy_rule {
	uint8_t low, high; /* enum oal_policy_field */
	uint32_t times;
};
""")
    numbers, last = {f["field"] for f in policy["fields"]}, weights["field"] + 1
    # by field number: what was taken out leaves a hole
    later = ["(kind)" if n in numbers else "0" for n in range(last + 1, max(numbers) + 1)]
    o.append(
        f"enum {{ OAL_POLICY_FIELD_MODE = 1, OAL_POLICY_FIELD_NAME, OAL_POLICY_FIELD_VERSION, "
        f"OAL_POLICY_FIELD_WEIGHT_PORT = {weights['field']}, OAL_POLICY_FIELD_WEIGHT_PERMILLE }};\n"
        f"enum {{ OAL_POLICY_MAX_FIELD = {last + len(later)} }};\n"
        f"/* Numbers declared after the weights, by field number: `kind`, or 0 for one that was taken out. */\n"
        f"#define OAL_POLICY_LATER_KINDS(kind){''.join(f' {kind},' for kind in later)}"
    )
    o.append(
        f"enum {{ OAL_POLICY_WEIGHT_PORT_MIN = {weights['port_min']}, OAL_POLICY_WEIGHT_PORT_MAX = "
        f"{weights['port_max']}, "
        f"OAL_POLICY_WEIGHT_PERMILLE_MIN = {weights['value_min']}, OAL_POLICY_WEIGHT_PERMILLE_MAX = "
        f"{weights['value_max']} }};\n"
    )
    o.append("""extern const struct oal_policy_field_spec oal_policy_fields[OAL_N_POLICY_FIELDS];
extern const struct oal_policy_rule oal_policy_rules[OAL_POLICY_N_RULES];

/* The default of every number; no name, version 0, mode off, no weights. */
void oal_policy_defaults(struct oal_policy *);
uint32_t oal_policy_get(const struct oal_policy *, enum oal_policy_field);
void oal_policy_set(struct oal_policy *, enum oal_policy_field, uint32_t value);

#endif""")
    return "\n".join(o) + "\n"


def c_source(policy: dict) -> str:
    o = [
        NOTE,
        '#include "oal_policy.h"\n\n#include <string.h>\n',
        "const struct oal_policy_field_spec oal_policy_fields[OAL_N_POLICY_FIELDS] = {",
    ]
    o += [
        f'\t{{ "{f["name"]}", "{f["unit"]}", offsetof(struct oal_policy, {f["name"]}), {f["field"]}, {f["min"]}u, '
        f"{f['max']}u, {f['default']}u }},"
        for f in policy["fields"]
    ]
    o.append("};\n\nconst struct oal_policy_rule oal_policy_rules[OAL_POLICY_N_RULES] = {")
    o += [
        f"\t{{ OAL_POLICY_{r['low'].upper()}, OAL_POLICY_{r['high'].upper()}, {r['times']} }}, /* {r['doc']} */"
        for r in policy["rules"]
    ]
    o.append("""};

uint32_t oal_policy_get(const struct oal_policy *p, enum oal_policy_field i)
{
	uint32_t value;

	memcpy(&value, (const char *)p + oal_policy_fields[i].offset, sizeof value);
	return value;
}

void oal_policy_set(struct oal_policy *p, enum oal_policy_field i, uint32_t value)
{
	memcpy((char *)p + oal_policy_fields[i].offset, &value, sizeof value);
}

void oal_policy_defaults(struct oal_policy *p)
{
	memset(p, 0, sizeof *p);
	for (int i = 0; i < OAL_N_POLICY_FIELDS; i++)
		oal_policy_set(p, (enum oal_policy_field)i, oal_policy_fields[i].normal);
}""")
    return "\n".join(o) + "\n"


def json_schema(policy: dict) -> str:
    """JSON schema of a file of policies/in-force: what an editor shows. Rules between numbers are not in it;
    `oal-registry policies check` knows them.
    """
    weights = policy["weights"]
    control = {
        f["name"]: {
            "type": "integer",
            "minimum": f["min"],
            "maximum": f["max"],
            "default": f["default"],
            "description": f["doc"] + (f" [{f['unit']}]" if f["unit"] != "1" else ""),
        }
        for f in policy["fields"]
    }
    doc = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "Generated by `make gen` from policies/rwnd-fair/numbers.yaml; do not edit.",
        "title": "OAL control policy",
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "version", "applies_to", "mode"],
        "properties": {
            "name": {"type": "string", "pattern": f"^{NAME.pattern}$"},
            "version": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_VERSION,
                "description": "Grows with every change",
            },
            "applies_to": {
                "type": "string",
                "pattern": f"^({APPLIES_TO.pattern})$",
                "description": "fleet, site/SITE or ap/AP_ID; the most specific policy is an access point's",
            },
            "mode": {"enum": policy["modes"]},
            "control": {"type": "object", "additionalProperties": False, "properties": control},
            "policy": {
                "type": "string",
                "pattern": f"^{POLICY_NAME.pattern}$",
                "default": RWND_FAIR,
                "description": "Folder of policies/ that this is about",
            },
            "weights": {
                "type": "object",
                "maxProperties": weights["max"],
                "propertyNames": {"pattern": "^[1-9][0-9]{0,4}$"},
                "additionalProperties": {
                    "type": "integer",
                    "minimum": weights["value_min"],
                    "maximum": weights["value_max"],
                },
                "description": "Server port: weight of its flows, in permille of the ordinary flow's",
            },
        },
    }
    return json.dumps(doc, indent=1) + "\n"


def reference(policy: dict) -> list[str]:
    weights = policy["weights"]
    o = [
        "## Policy",
        "",
        'What a control policy may say. How it is checked: [README](../README.md), "Policies".',
        "",
        "| number | least | most | default | unit | meaning |",
        "|---|---|---|---|---|---|",
    ]
    o += [
        f"| `{f['name']}` | {f['min']} | {f['max']} | {f['default']} | {f['unit']} | {f['doc']} |"
        for f in policy["fields"]
    ]
    o += ["", "| must hold | because |", "|---|---|"] + [
        f"| {r['times']} × `{r['low']}` ≤ `{r['high']}` | {r['doc']} |" for r in policy["rules"]
    ]
    o += [
        "",
        f"Weights: at most {weights['max']}, ports {weights['port_min']} to {weights['port_max']}, "
        f"{weights['value_min']} to {weights['value_max']} permille.",
        "",
    ]
    for title, key in (
        ("Modes", "modes"),
        ("Reasons of an `action` row", "rewrite_reasons"),
        ("Backends", "rewrite_backends"),
        ("Actions", "actions"),
        ("Congestion controls", "congestion_controls"),
    ):
        o.append(f"{title}: " + ", ".join(f"{i} `{x}`" for i, x in enumerate(policy[key])) + ".")
    return o + [""]
