"""What every generated file must have, and that it is generated."""
import json
import re
import subprocess
import sys

import pytest
import yaml
from oal_grafana import generate
from oal_grafana.board import BOARDS
from oal_grafana.colours import CLASS_NAMES
from oal_grafana.queries import DASHBOARDS, HOME, RULES, boards
from oal_grafana.sql import CLASS_BOUNDS
from oal_grafana.units import UNITS

ALL = boards()
PANELS = [
    pytest.param(board, panel, id=f"{uid}: {panel['title']}") for uid, board in ALL.items() for panel in board["panels"]
    if panel["type"] != "row"
]
RULE_LIST = [
    pytest.param(rule, id=rule["uid"]) for group in yaml.safe_load(RULES.read_text())["groups"]
    for rule in group["rules"]
]


def test_the_committed_files_are_what_the_builders_make():
    assert generate.stale() == [], f"`{generate.MEND}` mends it"


def test_a_stale_file_is_named_with_the_command_that_mends_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generate, "files", lambda: {DASHBOARDS / "oal-arriving.json": "{}"})
    monkeypatch.setattr(sys, "argv", ["generate", "--check"])
    assert generate.main() == 1
    said = capsys.readouterr().err
    assert "oal-arriving.json" in said and "make -C observe/grafana gen" in said


def test_classes_are_those_of_the_settings():
    settings = yaml.safe_load((HOME.parents[1] / "schema" / "settings.yaml").read_text())
    assert settings["class_names"] == [*CLASS_NAMES] and settings["class_bounds_permille"] == [
        round(bound * 1000) for bound in CLASS_BOUNDS
    ]


def test_a_command_that_a_text_names_is_one_that_there_is():
    usage = (HOME.parents[1] / "deploy" / "cmd" / "oal-deploy" / "main.go").read_text()
    named = set(re.findall(r"oal-deploy ctl (\w+)", json.dumps([*ALL.values(), yaml.safe_load(RULES.read_text())])))
    assert named and all(re.search(rf"^ +{command} ", usage, re.M) for command in named), named


def test_there_is_one_dashboard_a_question():
    assert {uid: board["title"] for uid, board in ALL.items()} == BOARDS


@pytest.mark.parametrize("uid", ALL)
def test_a_dashboard_links_to_all_others_and_keeps_time_and_choice(uid):
    links = {link["url"]: link for link in ALL[uid]["links"]}
    assert set(links) == {f"/d/{other}" for other in ALL if other != uid}
    assert all(link["keepTime"] and link["includeVars"] for link in links.values())


@pytest.mark.parametrize("uid", ALL)
def test_panels_have_ids_of_their_own_and_do_not_overlap(uid):
    panels = ALL[uid]["panels"]
    assert len({p["id"] for p in panels}) == len(panels)
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("uid", ALL)
def test_a_dashboard_opens_with_a_row_of_figures_that_answers_its_question(uid):
    first, *others = ALL[uid]["panels"]
    assert first["type"] == "row" and first["title"].startswith("Is it good?")
    row = [p for p in others if p["gridPos"]["y"] == 1]
    assert len(row) >= 5 and {p["type"] for p in row} <= {"stat", "gauge"} and max(p["gridPos"]["x"] + p["gridPos"]["w"]
                                                                                   for p in row) == 24


@pytest.mark.parametrize("board, panel", PANELS)
def test_a_panel_says_what_it_shows_what_to_do_and_in_which_unit(board, panel):
    assert len(panel["description"]) > 60
    assert panel["type"] in ("timeseries", "stat", "gauge", "table", "heatmap", "barchart",
                             "state-timeline"), "a deprecated or unknown kind of panel"
    fields = panel.get("fieldConfig", {}).get("defaults", {})
    assert panel["type"] == "heatmap" or fields["unit"] in UNITS
    if panel["type"] in ("timeseries", "barchart"):
        assert fields["custom"]["axisLabel"]
    assert all(
        re.fullmatch(r"#[0-9A-F]{6}", colour) for colour in re.findall(
            r'"(?:fixedColor|color)": "([^"]+)"', json.dumps(panel))), "a named colour differs between themes"


@pytest.mark.parametrize("board, panel", PANELS)
def test_a_panel_leads_to_its_statement(board, panel):
    (link,) = panel["links"]
    assert link["url"].startswith(f"/d/{board['uid']}?") and f"inspect={panel['id']}&inspectTab=query" in link["url"]


@pytest.mark.parametrize("board, panel", PANELS)
def test_a_query_is_one_that_plugin_3_and_4_take(board, panel):
    for target in panel["targets"]:
        assert target["queryType"] == "sql" and target["editorType"] == "sql" and target["format"] == (
            0 if panel["type"] in ("timeseries", "heatmap", "state-timeline") else 1)
        assert "[[" not in target["rawSql"] and ";" not in target["rawSql"]
        assert set(re.findall(r"\$\{(\w+)", target["rawSql"])) <= {v["name"] for v in board["templating"]["list"]}


@pytest.mark.parametrize("rule", RULE_LIST)
def test_an_alert_says_how_bad_it_is_what_to_do_and_where_to_look(rule):
    assert rule["labels"]["severity"] in ("warning", "critical") and re.fullmatch(r"\d+m", rule["for"])
    notes = rule["annotations"]
    assert notes["summary"] and len(notes["description"]) > 50 and notes["dashboard"].removeprefix("/d/") in ALL
    assert rule["condition"] in {part["refId"] for part in rule["data"]}
    assert rule["noDataState"] in ("OK", "NoData", "Alerting") and rule["execErrState"] == "Error"
    assert len(rule["uid"]) <= 40, "Grafana's limit"


def test_alert_rules_cover_what_the_issue_names():
    assert {r.values[0]["uid"] for r in RULE_LIST} >= {
        "oal-silent-ap", "oal-ticks-missed", "oal-kafka-lag", "oal-checkpoints", "oal-parts",
        "oal-worse-than-persistence", "oal-guard-reverts", "oal-control-acts-on-nothing", "oal-certificates",
        "oal-disk", "oal-forged", "oal-late", "oal-dead-letters", "oal-stable-offset", "oal-transaction-lost",
        "oal-trainer-behind", "oal-no-predictions", "oal-job-restarts"
    }


def test_an_alert_label_that_a_text_uses_is_a_column_of_its_query():
    for parameter in RULE_LIST:
        rule = parameter.values[0]
        sql = rule["data"][0]["model"]["rawSql"]
        for label in re.findall(r"\.Labels\.(\w+)", rule["annotations"]["summary"]):
            assert re.search(rf"\b{label}\b", sql), f"{rule['uid']}: {label}"


def test_nothing_in_provisioning_is_taken_for_an_environment_variable_by_mistake():
    """Grafana replaces $NAME, $__file{} in these files; the model of a rule is spared by some versions only, so it has
    none.
    """
    assert "$" not in RULES.read_text()
    names = set(
        re.findall(r"\$(\w+)", (HOME / "provisioning/datasources/oal.yaml").read_text() +
                   (HOME / "provisioning/dashboards/oal.yaml").read_text()))
    assert names == {
        "NAME", "__file", "OAL_CLICKHOUSE_HOST", "OAL_CLICKHOUSE_PORT", "OAL_CLICKHOUSE_PROTOCOL",
        "OAL_CLICKHOUSE_SECURE", "OAL_CLICKHOUSE_OWN_CA", "OAL_GRAFANA_DASHBOARDS"
    }


def test_provisioning_files_are_of_the_version_that_grafana_9_3_reads():
    for path in (HOME / "provisioning").rglob("*.yaml*"):
        assert yaml.safe_load(path.read_text())["apiVersion"] == 1, path


def test_grafana_is_shut_to_strangers():
    import configparser

    ini = configparser.ConfigParser(interpolation=None)
    ini.read(HOME / "grafana.ini")
    assert not ini.getboolean("auth.anonymous", "enabled") and not ini.getboolean(
        "users", "allow_sign_up") and not ini.getboolean("metrics", "enabled")
    assert ini.getboolean("security", "cookie_secure") and ini["plugins"]["allow_loading_unsigned_plugins"] == ""
    for key in ("admin_password", "secret_key"):
        assert re.fullmatch(r"\$__file\{/run/secrets/oal/[\w.-]+\}", ini["security"][key])
    assert not any(
        ini.getboolean("analytics", key)
        for key in ("reporting_enabled", "check_for_updates", "check_for_plugin_updates"))


def test_no_secret_and_no_address_of_a_registry_is_in_the_files():
    text = subprocess.run(["git", "grep", "-nIE", r"https?://[a-z0-9.-]+\.(com|org|io|net)", "--",
                           str(HOME)], capture_output=True, text=True, cwd=HOME).stdout
    assert [line for line in text.splitlines() if "package-lock.json" not in line] == []


def test_alert_rules_ask_as_a_user_whose_quota_no_dashboard_uses_up():
    sources = {s["uid"]: s for s in yaml.safe_load(
        (HOME / "provisioning/datasources/oal.yaml").read_text())["datasources"]}
    users = {uid: s["jsonData"].pop("username") for uid, s in sources.items()}
    assert users == {"oal-clickhouse": "grafana", "oal-clickhouse-alerts": "grafana_alerts"}
    assert sources["oal-clickhouse"]["jsonData"] == sources["oal-clickhouse-alerts"]["jsonData"]
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            asked = {d["datasourceUid"] for d in rule["data"]} | {d["model"]["datasource"]["uid"] for d in rule["data"]}
            assert asked == {"oal-clickhouse-alerts", "__expr__"}, rule["uid"]
    assert "oal-clickhouse-alerts" not in json.dumps([*ALL.values()])
