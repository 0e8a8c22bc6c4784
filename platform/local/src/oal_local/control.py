"""Control in the demo: what access points may do with their predictions, the switch that turns it off, and what came of
it.
"""
from urllib.parse import urlencode

from oal_local import push
from oal_local.clickhouse import since
from oal_local.paths import REPO

#: Policies of the demo: what each does to its subjects, in words.
POLICIES = {"rwnd-fair": "windows of downloads", "mark": "CE in packets to stations",
            "uplink-cap": "windows of uploads"}
MODES = ("off", "shadow", "enforce")  # control.mode
BACKENDS = ("none", "shadow", "ovs", "bpf")  # rewrite.backend


def replay_sections(folder) -> list[tuple[str, str, dict]]:
    """The exporter's control for APs that are replayed: their windows have been, so it decides and reports."""
    options = {"mode": "shadow", "kill_file": folder / "kill"}
    return [("rwnd", "rwnd", options), ("mark", "mark", options)]


def kill(platform, scope: str, reason: str, who: str = "local") -> dict:
    """Turn control off for `fleet`, `site/SITE` or `ap/AP_ID`."""
    return platform.push.get(f"/v1/control/kill/{scope}", {"who": who, "reason": reason}, "PUT")


def unkill(platform, scope: str, reason: str, who: str = "local") -> dict:
    return platform.push.get(f"/v1/control/kill/{scope}?{urlencode({'who': who, 'reason': reason})}", method="DELETE")


def kills(platform) -> list[dict]:
    """What is turned off, by whom and why, and how many APs have heard."""
    return platform.push.get("/v1/control/kill")["kills"]


def commands(platform) -> str:
    """How a person turns it off and on again."""
    ctl = f"{push.BINARY.relative_to(REPO)} ctl"
    config = push.config_file(platform.state)
    return "\n".join((f"  control off  {ctl} kill fleet --reason TRYING --config {config}",
                      f"  and on       {ctl} unkill fleet --reason TRIED --config {config}"))


class Control:
    """Reads what control has done since a moment (realtime µs)."""

    def __init__(self, platform, since_us: int):
        self.platform, self.since_us = platform, since_us

    def holders(self) -> dict[str, list[str]]:
        """By policy: the access points that have a bundle of it in force, of those seen since the moment."""
        found = {policy: [] for policy in POLICIES}
        for ap in self.platform.push.get("/v1/fleet?limit=1000")["aps"]:
            if ap["last_seen_us"] < self.since_us:
                continue
            held = {"rwnd-fair": ap["applied"], **{p["policy"]: p["applied"] for p in ap.get("policies") or ()}}
            for policy, bundle in held.items():
                if bundle:
                    found.setdefault(policy, []).append(ap["ap_id"])
        return found

    def read(self) -> dict:
        rows = self.platform.clickhouse.rows
        when = since(self.since_us)
        aps = rows(
            "SELECT ap_id, argMax(mode, ts) AS last_mode, argMax(killed, ts) AS last_killed, argMax(clamps, ts) AS"
            f" last_clamps, max(guard_reverts) AS reverts, max(acks_clamped) AS acks FROM oal.control WHERE {when}"
            " GROUP BY ap_id ORDER BY ap_id"
        )
        rewrites = rows(
            "SELECT backend, countIf(window_bytes > 0) AS lowered, countIf(window_bytes = 0) AS given_up FROM"
            f" oal.rewrite WHERE {when} GROUP BY backend"
        )
        acted = rows(
            "SELECT policy, backend, countIf(value > 0) AS changes, countIf(value = 0) AS given_up, uniqExactIf((ap_id,"
            f" subject), value > 0) AS subjects FROM oal.action WHERE {when} GROUP BY policy, backend ORDER BY policy,"
            " backend"
        )
        return {
            "policies": policies(self.holders(), acted),
            "mode": {r["ap_id"]: MODES[r["last_mode"]] for r in aps},
            "killed": [r["ap_id"] for r in aps if r["last_killed"]],
            "clamps": sum(r["last_clamps"] for r in aps),
            "guard_reverts": sum(r["reverts"] for r in aps),
            "acks_clamped": sum(r["acks"] for r in aps),
            "lowered": {BACKENDS[r["backend"]]: r["lowered"] for r in rewrites},
            "given_up": sum(r["given_up"] for r in rewrites),
            "neighbours": rows(f"SELECT uniqExact(ap_id, neighbour) AS n FROM oal.neighbour_ap WHERE {when}")[0]["n"],
        }


def policies(holders: dict[str, list[str]], acted: list[dict]) -> dict[str, dict]:
    """By policy: how many access points have it, and what it did by backend; `shadow`: it only said so."""
    found = {policy: {"aps": len(aps), "acted": {}} for policy, aps in holders.items()}
    for row in acted:
        of_policy = found.setdefault(row["policy"], {"aps": 0, "acted": {}})
        of_policy["acted"][BACKENDS[row["backend"]]] = {
            name: row[name] for name in ("changes", "given_up", "subjects")
        }
    return found


def policy_lines(found: dict[str, dict]) -> list[str]:
    """A line a policy: who has it, what it did."""
    def acts(acted: dict) -> str:
        return "; ".join(f"{backend} {n['changes']:,} changes of {n['subjects']:,}, {n['given_up']:,} given up"
                         for backend, n in acted.items()) or "nothing yet"

    return [f"  policy {policy:<11} {of_policy['aps']:>10,} APs {POLICIES.get(policy, '?')}: {acts(of_policy['acted'])}"
            for policy, of_policy in found.items()]


def lines(s: dict) -> str:
    """Control's part of the summary."""
    modes = ", ".join(f"{list(s['mode'].values()).count(mode)} {mode}"
                      for mode in MODES if mode in s["mode"].values()) or "no policy yet"
    backends = ", ".join(f"{n:,} {backend}" for backend, n in s["lowered"].items())
    return "\n".join(
        (
            (
                f"  windows lowered    {sum(s['lowered'].values()):>10,}    "
                f" {backends + '; ' if backends else ''}{s['given_up']:,} given up, {s['clamps']:,} in force now,"
                f" {s['acks_clamped']:,} ACKs rewritten"
            ),
            (
                f"  control            {modes}; the guard took back {s['guard_reverts']:,} times; kill switch"
                f" {'on for ' + ', '.join(s['killed']) if s['killed'] else 'off'}; {s['neighbours']} neighbours"
                " heard of"
            ),
            *policy_lines(s["policies"]),
        )
    )


def verdict(s: dict, aps: int, live: bool, in_turns: bool = False) -> list[str]:
    """What is wrong with the control of a finished run that nobody turned off, but the demo itself (`in_turns`)."""
    wrong = []
    if len(s["mode"]) < aps:
        wrong.append(f"{len(s['mode'])} of {aps} APs said what their policy does")
    if s["killed"] and not in_turns:
        wrong.append(f"the kill switch is on for {', '.join(s['killed'])}")
    for policy in POLICIES:
        acted = s["policies"][policy]["acted"]
        if not s["policies"][policy]["aps"]:
            wrong.append(f"no AP has policy {policy}")
        elif live and not set(acted) - {"shadow"}:
            wrong.append(f"policy {policy} did nothing at the live AP")
    if live and not s["acks_clamped"]:
        wrong.append("the live AP rewrote no ACK")
    if not live and not s["lowered"].get("shadow"):
        wrong.append("no AP decided on a window")
    if not live and set(s["lowered"]) - {"shadow"}:
        wrong.append("a replayed AP says that it wrote a window")
    return wrong
