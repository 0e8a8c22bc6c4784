"""The learning half of the demo: first model versions, the APs' agents, and how far the loop has come."""
import subprocess

from oal_local import mlflow, registry
from oal_local.clickhouse import since
from oal_local.errors import PlatformError
from oal_local.paths import REPO

MODEL = "congestion"
TRAIN = REPO / "training" / "oal-train"
TREE = "policies/rwnd-fair/experiment.yaml"
#: Experiments whose results are the first two versions, so that there is something to promote and to go back to. Each
#: is no worse than the other on what both held out, so the registry's gate lets both in.
EXPERIMENTS = ("training/experiments/fleet_small.yaml", "training/experiments/fleet.yaml")
#: Of many sites, and of none that the demo replays (demo.ORDER): a model is not shown what it learned from.
ITEMS = REPO / "lab" / "corpus" / "fleet.items.parquet"
SOURCES = {1: MODEL, 2: "online"}  # bundle_status.source
APPLIED = (1, 3)  # bundle_status.state: applied, restored from flash
#: SQL: a judged prediction before an onset, with nothing dropped in the second before: as v_quality's first_drops.
FIRST = ("complete AND class_now IN ('Good', 'Acceptable') AND class IN ('Poor', 'Bad') AND since_drop_us = -1 AND"
         " until_drop_us >= 0")


def agent_section(platform, ap_ids: list[str]) -> tuple[str, str, dict]:
    """The exporter's agent, with a certificate for each AP that the process plays."""
    platform.issue_certificates(*ap_ids)
    pki = platform.state.pki
    return ("agent", "agent", {
        "url": platform.push.ap_url, "ca": pki / "ca.crt", "cert": pki / "%s.crt", "key": pki / "%s.key",
        "trusted_keys": platform.state.trusted_keys, "state_dir": platform.state.agents
    })


def versions(platform) -> list[int]:
    """Versions of the congestion model in the registry, ascending."""
    found = platform.mlflow.api(f"model-versions/search?filter=name%3D%27{MODEL}%27").get("model_versions", [])
    return sorted(int(v["version"]) for v in found)


def aliased(platform, alias: str) -> int:
    """The version that has the alias."""
    return int(platform.mlflow.api(f"registered-models/alias?name={MODEL}&alias={alias}")["model_version"]["version"])


def set_alias(platform, alias: str, version: int) -> None:
    """What MLflow's page does when somebody gives a version an alias."""
    platform.mlflow.api("registered-models/alias", {"name": MODEL, "alias": alias, "version": str(version)})


def delete_alias(platform, alias: str) -> None:
    platform.mlflow.api("registered-models/alias", {"name": MODEL, "alias": alias}, "DELETE")


def set_tag(platform, version: int, key: str, value: str) -> None:
    platform.mlflow.api("model-versions/set-tag", {"name": MODEL, "version": str(version), "key": key, "value": value})


def open_gate(platform, version: int, why: str) -> None:
    """Let a version be champion whatever its figures are (docs/gates.md)."""
    set_tag(platform, version, "gate.open", why)


def tags(platform, version: int) -> dict[str, str]:
    found = platform.mlflow.api(f"model-versions/get?name={MODEL}&version={version}")["model_version"].get("tags", [])
    return {tag["key"]: tag["value"] for tag in found}


def seed(platform, experiments=EXPERIMENTS) -> None:
    """Register the first versions of the congestion model from committed items, and make the newest champion. Does
    nothing where there are some.
    """
    try:
        if versions(platform):
            return
    except PlatformError as error:
        if "RESOURCE_DOES_NOT_EXIST" not in str(error):
            raise
    for name in experiments:
        platform.log(f"training: experiment {name} on {ITEMS.relative_to(REPO)}, for the registry …")
        command = [
            TRAIN, "fit", REPO / name, "--source", ITEMS, "--tracking-uri",
            mlflow.url(platform.settings), "--config",
            registry.config_file(platform.state), "--register", MODEL
        ]
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise PlatformError(f"`{' '.join(str(c) for c in command)}` failed:\n{done.stdout[-3000:]}")
    newest = versions(platform)[-1]
    set_alias(platform, "champion", newest)
    platform.log(f"model registry: {MODEL}/{newest} is champion")


class Loop:
    """Reads how far the loop has come since a moment (realtime µs)."""

    def __init__(self, platform, since_us: int):
        self.platform, self.since_us = platform, since_us

    def in_force(self) -> dict[str, dict]:
        """By AP: what it applied last."""
        return {
            row["ap_id"]: row
            for row in self.platform.clickhouse.rows(
                "SELECT ap_id, argMax(source, ts) AS source, argMax(version, ts) AS version, argMax(bundle, ts) AS"
                f" bundle, max(ts) AS since FROM oal.bundle_status WHERE state IN {APPLIED} GROUP BY ap_id"
            )
        }

    def read(self) -> dict:
        rows = self.platform.clickhouse.rows
        when = since(self.since_us)
        decisions = rows(
            f"SELECT action, reason, count() AS n FROM oal.tree_decision WHERE {when} GROUP BY action, reason ORDER BY"
            " n DESC"
        )
        releases = rows(f"SELECT slot, action, count() AS n FROM oal.release WHERE {when} GROUP BY slot, action")
        statuses = rows(
            f"SELECT state, reason, count() AS n FROM oal.bundle_status WHERE {when} GROUP BY state, reason")
        quality = rows(
            "SELECT countIf(class != 'unknown' AND complete) AS judged, count() AS predictions, countIf(features_match"
            " = 'same') AS same, countIf(features_match = 'differ') AS differ, countIf(features_match = 'lacked input')"
            " AS lacked_input, countIf(complete AND predicted = class)"
            " AS right, countIf(complete AND class_now = class) AS persistence_right, countIf(complete AND class_now"
            " IN ('Good', 'Acceptable') AND class IN ('Poor', 'Bad')) AS onsets, countIf(complete AND class_now IN"
            " ('Good', 'Acceptable') AND class IN ('Poor', 'Bad') AND predicted IN ('Poor', 'Bad')) AS"
            " onsets_foreseen, countIf(complete AND class_now IN ('Good', 'Acceptable') AND class != 'unknown' AND"
            " predicted IN ('Poor', 'Bad')) AS alarms, countIf(complete AND class_now = 'Acceptable' AND class !="
            " 'unknown') AS acceptable, countIf(complete AND class_now = 'Acceptable' AND class IN ('Poor', 'Bad')) AS"
            " acceptable_onsets, countIf(complete AND class_now = 'Good' AND class != 'unknown') AS good,"
            " countIf(complete AND class_now = 'Good' AND class IN ('Poor', 'Bad')) AS good_onsets,"
            f" countIf({FIRST}) AS first_drops, countIf({FIRST} AND predicted IN ('Poor', 'Bad')) AS first_foreseen,"
            f" quantileExactIf(0.5)(until_drop_us, {FIRST} AND predicted IN ('Poor', 'Bad')) / 1000 AS lead_p50_ms"
            f" FROM oal.prediction WHERE {when}"
        )[0]
        return {
            "shipped": sum(d["n"] for d in decisions if d["action"] == "shipped"),
            "held": {d["reason"]: d["n"] for d in decisions if d["action"] == "held"},
            "released": sum(r["n"] for r in releases if r["action"] == "release"),
            "applied": sum(s["n"] for s in statuses if s["state"] in APPLIED),
            "rejected": sum(s["n"] for s in statuses if s["state"] == 2),
            "in_force": {
                ap: f"{SOURCES.get(row['source'], '?')}/{row['version']}" for ap, row in self.in_force().items()
            },
            **quality,
        }


def persistence_foresees(s: dict) -> float:
    """Onsets that persistence would foresee with as many alarms as the model raised: it alarms where it is Acceptable
    already, then where it is Good, and among equals by chance (expected number).
    """
    found, left = 0.0, s["alarms"]
    for n, onsets in ((s["acceptable"], s["acceptable_onsets"]), (s["good"], s["good_onsets"])):
        raised = min(left, n)
        found += onsets * raised / n if n else 0.0
        left -= raised
    return found


def lines(s: dict) -> str:
    """The loop's part of the summary."""
    held = ", ".join(f"{reason.replace('_', ' ')} {n:,}" for reason, n in list(s["held"].items())[:4]) or "none yet"
    share = (
        "-"
        if not s["judged"]
        else (
            f"{100 * s['right'] / s['judged']:.0f} % right (persistence"
            f" {100 * s['persistence_right'] / s['judged']:.0f} %)"
        )
    )
    return "\n".join(
        (
            f"  trees shipped      {s['shipped']:>10,}     held back: {held}",
            f"  bundles applied    {s['applied']:>10,}     {s['rejected']:,} rejected; in force: "
            + (", ".join(f"{ap} {v}" for ap, v in sorted(s["in_force"].items())[:6]) or "none yet"),
            (
                f"  predictions        {s['predictions']:>10,}     {s['judged']:,} judged: {share};"
                f" {s['onsets_foreseen']:,} of {s['onsets']:,} onsets foreseen"
                f" (persistence with as many alarms {persistence_foresees(s):,.0f}), {s['alarms']:,} alarms"
                + (f"; {s['lacked_input']:,} of features that lacked input" if s["lacked_input"] else "")
            ),
            (
                f"  before a drop      {s['first_drops']:>10,}     with none in the second before;"
                f" {s['first_foreseen']:,} foreseen"
                + (f", median lead {s['lead_p50_ms']:.0f} ms" if s["first_foreseen"] else ": no lead time")
            ),
        )
    )


def verdict(s: dict, aps: int) -> list[str]:
    """What is wrong with the loop of a finished run."""
    wrong = []
    if len(s["in_force"]) < aps:
        wrong.append(f"{len(s['in_force'])} of {aps} APs have a model in force")
    if s["rejected"]:
        wrong.append(f"APs rejected {s['rejected']} bundles")
    if not s["judged"]:
        wrong.append("no prediction was joined with the class that came true")
    if s["differ"]:
        wrong.append(f"{s['differ']} predictions were made from features that differ from the stream job's")
    if not s["shipped"] and not s["held"]:
        wrong.append("the online trainer decided nothing")
    return wrong
