"""Control on the running platform: policy files → APs → what they would do with their predictions → ClickHouse; the
kill switch; neighbours.

The APs are replayed, so they decide and report in shadow; what a rewrite does to packets is tested where packets are
(lab/conformance).
"""

from __future__ import annotations

import signal

import yaml
from flow import until
from looped import APS, now_us
from oal_local import control, demo
from oal_local.clickhouse import since
from oal_local.stages import Stages, verdict
from oal_schema import policy

CONGESTED = "ap-congested"  # of the replayed captures the one that gives most reasons to act
SHADOW = control.BACKENDS.index("shadow")
#: Clamps last, so that there are some when they are to be given up, and the guard, which compares throughputs that no
#: clamp changes here, stays out of it.
LASTING = {"hold_us": 60_000_000, "guard_permille": 500, "guard_backoff_us": 1_000_000}
KILLED = policy.spec()["rewrite_reasons"].index("killed")


def change_policy(looped, **changes) -> int:
    """As somebody would who edits the fleet's policy; its new version."""
    file = looped.policies / "default.yaml"
    text = yaml.safe_load(file.read_text())
    text |= {"version": text["version"] + 1} | changes
    file.with_suffix(".new").write_text(yaml.safe_dump(text))
    file.with_suffix(".new").rename(file)
    return text["version"]


def follows(looped, version: int, at: int) -> bool:
    """Has every AP applied a bundle with this version of the policy since then?"""
    return looped.aps(
        "bundle_status",
        f"state = 1 AND {since(at)} AND bundle IN (SELECT bundle FROM oal.release WHERE policy = 'default' AND"
        f" policy_version = {version})",
    ) == set(looped.ap_ids)


def say(looped, what: str, at: int) -> bool:
    """Does the last report of every AP since then say so?"""
    rows = looped.platform.clickhouse.rows(
        f"SELECT ap_id, argMax({what}, ts) AS so FROM oal.control WHERE {since(at)} GROUP BY ap_id")
    return {row["ap_id"] for row in rows if row["so"]} == set(looped.ap_ids)


def clamped(looped) -> bool:
    """Are flows clamped, by the last reports?"""
    return looped.count("SELECT sum(n) FROM (SELECT argMax(clamps, ts) AS n FROM oal.control GROUP BY ap_id)") > 0


def lowered(looped, at: int, where: str = "1") -> int:
    """Windows that APs have decided to lower since then."""
    return looped.count(f"SELECT count() FROM oal.rewrite WHERE {where} AND window_bytes > 0 AND {since(at)}")


def reasons_to_act(looped, at: int) -> int:
    """Windows of time since then in which Poor or Bad is what came true: with policy off, nothing is predicted."""
    return looped.count(f"SELECT count() FROM oal.label WHERE class IN ('Poor', 'Bad') AND {since(at)}")


# The tests below run in this order on one platform, as an operator's day would.


def test_the_shipped_policy_reaches_every_ap_which_decides_in_shadow(looped):
    until("every AP is in shadow", lambda: say(looped, f"mode = {control.MODES.index('shadow')}", looped.since_us))
    until("windows are decided on", lambda: lowered(looped, looped.since_us) >= 20)
    assert looped.count(
        f"SELECT count() FROM oal.rewrite WHERE backend != {SHADOW}") == 0, "a replayed AP says that it wrote a window"
    until(
        "they stand in v_rewrites with their policy",
        lambda: looped.count(
            f"SELECT count() FROM oal.v_rewrites(from = fromUnixTimestamp64Micro({looped.since_us}), to = now64(6) +"
            " 60) WHERE policy = 'default' AND policy_version = 1 AND backend = 'shadow'"
        )
        >= 20,
    )
    strange = looped.platform.clickhouse.rows(
        "SELECT * FROM oal.rewrite WHERE window_bytes > 0 AND (rate_kbps = 0 OR capacity_kbps = 0 OR share_kbps = 0)"
        " LIMIT 3"
    )
    assert not strange, f"windows without the figures that they follow from: {strange}"


def test_a_changed_policy_file_reaches_every_ap_and_is_what_they_do(looped):
    at = now_us()
    version = change_policy(looped, mode="off")
    until("every AP applied the policy", lambda: follows(looped, version, at))
    until("every AP is off", lambda: say(looped, "mode = 0 AND killed = 0", at))
    off = now_us()
    until("there are reasons to act", lambda: reasons_to_act(looped, off) >= 50)
    assert lowered(looped, off) == 0, "windows are lowered although the policy says off"

    at = now_us()
    version = change_policy(looped, mode="shadow", control=LASTING)
    until("every AP applied the policy", lambda: follows(looped, version, at))
    until("windows are decided on again", lambda: lowered(looped, at) >= 20)


def killed_amid_clamps(looped, attempts: int = 5) -> tuple[int, int]:
    """Turn the fleet off while windows are clamped; when that was, and when every AP had said so. Clamps end by
    themselves too, on a busy machine before the switch has come: then it is turned on again, and off at the next ones.
    """
    for _ in range(attempts):
        until("there are clamps", lambda: clamped(looped))
        at = now_us()
        control.kill(looped.platform, "fleet", "test of the switch")
        until("every AP says that it is killed", lambda: say(looped, "killed = 1 AND mode = 0", at))
        killed = now_us()
        until("there are reasons to act", lambda: reasons_to_act(looped, killed) >= 50)
        if given_up(looped, at):
            return at, killed
        control.unkill(looped.platform, "fleet", "again")
        back = now_us()
        until("windows are decided on again", lambda: lowered(looped, back) >= 20)
    raise AssertionError("no clamp was given up because of the switch")


def given_up(looped, at: int) -> int:
    """Clamps that were given up since then because of a kill switch."""
    return looped.count(f"SELECT count() FROM oal.rewrite WHERE window_bytes = 0 AND reason = {KILLED} AND {since(at)}")


def test_the_kill_switch_turns_the_fleet_off_and_on_again(looped):
    at, killed = killed_amid_clamps(looped)
    state = control.kills(looped.platform)
    assert [(k["scope"], k["who"], k["note"], k["reason"])
            for k in state] == [("fleet", "admin", "local", "test of the switch")]
    until("the push service knows that all have heard", lambda:
          (k := control.kills(looped.platform)[0])["heard"] == k["connected"] == APS)
    assert lowered(looped, killed) == 0, "windows are lowered although the switch is on"
    assert not clamped(looped), "clamps stay although the switch is on"

    # What turned it off may die meanwhile: the APs stay off, also those that start anew.
    looped.platform.kill("push", signal.SIGKILL)
    until("push is back", lambda: looped.ready("push"))
    again = now_us()
    until("there are reasons to act", lambda: reasons_to_act(looped, again) >= 50)
    assert lowered(looped, again) == 0 and looped.aps(
        "control", f"killed = 0 AND {since(killed)}") == set(), "an AP forgot the switch when the push service had died"

    back = now_us()
    control.unkill(looped.platform, "fleet", "tested")
    until("every AP is back in shadow",
          lambda: say(looped, f"killed = 0 AND mode = {control.MODES.index('shadow')}", back))
    until("and decides on windows", lambda: lowered(looped, back) >= 20)
    assert control.kills(looped.platform) == []


def test_the_kill_switch_of_one_ap_is_its_own(looped):
    at = now_us()
    control.kill(looped.platform, f"ap/{CONGESTED}", "test of one")
    until("it is killed", lambda: looped.aps("control", f"killed = 1 AND {since(at)}") == {CONGESTED})
    killed = now_us()
    until("everybody has reported since", lambda: looped.aps("control", since(killed)) == set(looped.ap_ids))
    assert looped.aps("control",
                      f"killed = 1 AND {since(at)}") == {CONGESTED}, "the switch of one AP turned off another"
    control.unkill(looped.platform, f"ap/{CONGESTED}", "tested")
    back = now_us()
    until("it decides on windows again", lambda: lowered(looped, back, f"ap_id = '{CONGESTED}'") > 0)


def test_aps_of_a_site_that_share_a_channel_hear_of_each_other(looped):
    channels = looped.platform.clickhouse.rows(
        "SELECT ap_id, any(frequency_mhz) AS mhz FROM oal.channel GROUP BY ap_id")
    expected = {(a["ap_id"], neighbour_id(b["ap_id"])) for a in channels for b in channels
                if a["mhz"] == b["mhz"] and a["ap_id"] != b["ap_id"]}
    assert expected, f"no two of the replayed APs share a channel: {channels}"

    def heard() -> set:
        return {(row["ap_id"], row["neighbour"])
                for row in looped.platform.clickhouse.rows("SELECT DISTINCT ap_id, neighbour FROM oal.neighbour_ap")}

    until("all of them have", lambda: heard() >= expected)
    assert heard() == expected, "an AP heard of one that is not on its channel, or of itself"
    until(
        "that the congested one is busy, too",
        lambda: looped.count(
            f"SELECT count() FROM oal.neighbour_ap WHERE neighbour = {neighbour_id(CONGESTED)} AND tx_kbps > 0 AND"
            " stations > 0 AND loss_permille > 0"
        )
        > 0,
    )


def neighbour_id(ap_id: str) -> int:
    """64-bit FNV-1a without the highest bit (schema, table neighbour_ap)."""
    value = 0xCBF29CE484222325
    for byte in ap_id.encode():
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value & (1 << 63) - 1


def test_every_query_of_the_dashboards_returns_rows(looped):
    """Panels, variables, annotations and alert rules of observe/grafana, as user grafana; the table says what each
    returned.
    """
    said = []

    def answered() -> bool:
        said.append(demo.check_dashboards(looped.platform, looped.since_us))
        return not said[-1]

    until("each query of a dashboard returns rows", answered, limit_s=180)


def test_every_row_of_control_stands_once(looped):
    stages = Stages(looped.platform, looped.since_us)
    counted, let_go = looped.source.stop()
    try:
        last = demo.drain(stages, counted)
    finally:
        stages.close()
        looped.source.start()  # whoever comes next finds access points that send
    assert verdict(last, counted, APS, let_go) == []
    assert counted["rows"]["action"] > 0 and counted["rows"]["control"] > 0 and counted["rows"]["neighbour_ap"] > 0
    for table, key in (("action", "ap_id, boot_id, ts, policy, kind, subject, backend, reason, value"),
                       ("control", "ap_id, boot_id, ts"), ("neighbour_ap",
                                                           "ap_id, boot_id, ts, neighbour, frequency_mhz")):
        assert looped.count(
            f"SELECT count() - uniqExact({key}) FROM oal.{table}") == 0, f"a row of {table} stands twice"
    in_view = looped.count(
        f"SELECT count() FROM oal.v_rewrites(from = fromUnixTimestamp64Micro({looped.since_us}), to = now64(6) + 60)")
    assert in_view == counted["rows"]["action"], "v_rewrites has not each rewrite once"
