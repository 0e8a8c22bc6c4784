"""What every generated file must have, and that it is generated."""
import json
import re
import subprocess
import sys

import pytest
import yaml
from oal_grafana import generate
from oal_grafana.board import BOARDS
from oal_grafana.board import HOME as HOME_BOARD
from oal_grafana.colours import CLASS_NAMES
from oal_grafana.dashboards import home, runbooks
from oal_grafana.queries import DASHBOARDS, HOME, RULES, boards, panels_of
from oal_grafana.sql import CLASS_BOUNDS
from oal_grafana.units import FREE, UNITS

ALL = boards()
PANELS = [
    pytest.param(board, panel, id=f"{uid}: {panel['title']}") for uid, board in ALL.items()
    for panel in panels_of(board)
]
ASKING = [parameter for parameter in PANELS if "targets" in parameter.values[1]]
#: A figure, a page or a list is no question of its own.
QUESTIONS = [uid for uid in ALL if uid not in (HOME_BOARD, "oal-runbooks")]
TABLES = [parameter for parameter in ASKING if parameter.values[1]["type"] == "table"]
NO_DATA = "#888888"
CLAIM_NOTHING = {
    "no data", "no data: is Telegraf running?", "no report", "no onset known", "nothing to compare",
    "no window known of"
}
#: Of the smallest screen that a person on duty has, without Grafana 9's menu and margins; what a panel's edges take.
SCREEN_PX, EDGES_PX = 1366 - 89, 24
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
    panels = [*panels_of(ALL[uid]), *(p for p in ALL[uid]["panels"] if p["type"] == "row")]
    assert len({p["id"] for p in panels}) == len(panels)
    _apart([p for p in ALL[uid]["panels"]])
    for row in ALL[uid]["panels"]:
        if row["type"] == "row" and row["collapsed"]:
            assert row["panels"], "a collapsed row holds its panels"
            _apart([row, *row["panels"]])


def _apart(panels):
    """No two take one place."""
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("uid", QUESTIONS)
def test_a_dashboard_opens_with_a_row_of_figures_that_answers_its_question(uid):
    first, *others = ALL[uid]["panels"]
    assert first["type"] == "row" and first["title"].startswith("Is it good?")
    row = [p for p in others if p["gridPos"]["y"] == 1]
    assert len(row) >= 5 and {p["type"] for p in row} <= {"stat", "gauge"} and max(p["gridPos"]["x"] + p["gridPos"]["w"]
                                                                                   for p in row) == 24


@pytest.mark.parametrize("board, panel", ASKING)
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


@pytest.mark.parametrize("board, panel", ASKING)
def test_a_panel_leads_to_its_statement(board, panel):
    (link,) = panel["links"]
    assert link["url"].startswith(f"/d/{board['uid']}?") and f"inspect={panel['id']}&inspectTab=query" in link["url"]


@pytest.mark.parametrize("board, panel", ASKING)
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
    assert len(notes["summary"]) > 30 and len(notes["description"]) > 50
    assert rule["condition"] in {part["refId"] for part in rule["data"]}
    assert rule["noDataState"] in ("OK", "NoData", "Alerting")
    assert len(rule["uid"]) <= 40, "Grafana's limit"


def test_alert_rules_cover_what_the_issue_names():
    assert {r.values[0]["uid"] for r in RULE_LIST} >= {
        "oal-silent-ap", "oal-ticks-missed", "oal-kafka-lag", "oal-checkpoints", "oal-parts",
        "oal-worse-than-persistence", "oal-guard-reverts", "oal-control-acts-on-nothing", "oal-certificates",
        "oal-disk", "oal-forged", "oal-late", "oal-dead-letters", "oal-stable-offset", "oal-transaction-lost",
        "oal-trainer-behind", "oal-no-predictions", "oal-job-restarts", "oal-push-connections", "oal-backup-age",
        "oal-kafka-replicas", "oal-clickhouse-replicas", "oal-job-down", "oal-clickhouse-away", "oal-rules-fail"
    }


@pytest.mark.parametrize("rule", RULE_LIST)
def test_an_alert_leads_to_its_panel_and_to_its_page(rule):
    """By Grafana's own address, so that the links of a message work; and without it, since Grafana expands nothing in
    the address of its button *View runbook*.
    """
    notes, panels = rule["annotations"], {p["id"]: p for p in panels_of(ALL[rule["dashboardUid"]])}
    assert (notes["__dashboardUid__"], notes["__panelId__"]) == (rule["dashboardUid"], str(rule["panelId"]))
    assert rule["panelId"] in panels and rule["labels"]["board"] == rule["dashboardUid"]
    assert notes["dashboard"] == f"{{{{ externalURL }}}}d/{rule['dashboardUid']}?viewPanel={rule['panelId']}"
    page = re.fullmatch(r"/d/oal-runbooks\?viewPanel=(\d+)", notes["runbook_url"])
    assert notes["runbook"] == f"{{{{ externalURL }}}}{notes['runbook_url'][1:]}"
    (shown,) = [p for p in panels_of(ALL["oal-runbooks"]) if p["id"] == int(page.group(1))]
    assert shown["title"] == rule["uid"] and f"**{rule['title']}.**" in shown["options"]["content"]
    assert notes["description"] in " ".join(shown["options"]["content"].replace("`", "").split())


def test_every_page_is_of_an_alert_and_every_alert_has_one():
    assert sorted(runbooks.pages()) == sorted(r.values[0]["uid"] for r in RULE_LIST)


@pytest.mark.parametrize("rule", RULE_LIST)
def test_a_figure_in_an_alerts_sentence_is_written_for_people(rule):
    """Not `0.87 full`, not `3600 s`."""
    summary = rule["annotations"]["summary"]
    assert "{{ .Values.A }}" not in summary
    for form in re.findall(r"\{\{ ([^}]*Values[^}]*) \}\}", summary):
        # By `index`: without a row there is no A, and .Values.A.Value is nil, of which no duration can be made.
        assert re.fullmatch(
            r'(humanizePercentage|humanizeDuration|printf "%\.[0-3]f") \(index \.Values "A"\)\.Value', form), summary


def test_one_rule_fires_when_clickhouse_is_away_and_no_other_errs():
    """Each of the others would be an alert of its own; a query that fails while ClickHouse answers has a rule, and when
    that one cannot look, the first fires.
    """
    fails = {r.values[0]["uid"]: r.values[0]["execErrState"] for r in RULE_LIST}
    assert {uid: state for uid, state in fails.items() if state != "OK"} == {"oal-clickhouse-away": "Alerting"}
    asked = {r.values[0]["uid"]: r.values[0]["data"][0]["model"]["rawSql"] for r in RULE_LIST}
    assert "FROM system.quota_usage" in asked["oal-clickhouse-away"] and "system.quota_usage" in asked["oal-rules-fail"]


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


@pytest.mark.parametrize("uid", ALL)
def test_variables_have_no_id_that_another_has_too(uid):
    """Grafana 9 knows a variable by its id: five of one id are one variable, and ${site} goes out as it is."""
    assert [v for v in ALL[uid]["templating"]["list"] if "id" in v] == []


def test_units_are_grafanas():
    from grafana_foundation_sdk.models import units

    known = {value for name, value in vars(units).items() if isinstance(value, str) and not name.startswith("_")}
    assert {unit for unit in UNITS if not unit.startswith(FREE)} <= known
    used = set(re.findall(r'"unit": "([^"]+)"', json.dumps([*ALL.values()], ensure_ascii=False)))
    assert used and {unit for unit in used if not unit.startswith(FREE)} <= known, used - known
    assert not used & {"cps", "pps"}, "shown as c/s, and half a packet as 500 mp/s, which nobody reads"


@pytest.mark.parametrize("board, panel", TABLES)
def test_a_tables_columns_fit_and_have_readable_headers(board, panel):
    columns = [{p["id"]: p["value"] for p in o["properties"]} for o in panel["fieldConfig"]["overrides"]
               if o["matcher"]["id"] == "byName"]
    headers = [column["displayName"] for column in columns]
    assert len(headers) == len(set(headers))
    assert not [h for h in headers if "_" in h or not h[0].isupper()], headers
    for column in columns:
        moment = 7 * len("2026-11-25 18:03:07") + 12 if column.get("unit") == "dateTimeAsIso" else 0
        assert column["custom.minWidth"] >= max(moment, 7 * len(column["displayName"]) + 20), column["displayName"]
        # An "m" takes more, and the edges have room for one: "Most common reason" was cut.
        wide = max(0, sum(letter in "mMW" for letter in column["displayName"]) - 1)
        assert column["custom.minWidth"] >= 7 * len(column["displayName"]) + 4 * wide + 20, column["displayName"]
    wanted = sum(column["custom.minWidth"] for column in columns)
    assert wanted <= panel["gridPos"]["w"] / 24 * SCREEN_PX - EDGES_PX, "columns beyond the edge"


@pytest.mark.parametrize("board, panel", TABLES)
def test_a_cell_that_names_an_access_point_a_station_a_flow_or_a_model_leads_there(board, panel):
    columns = {o["matcher"]["options"]: {p["id"]: p["value"] for p in o["properties"]}
               for o in panel["fieldConfig"]["overrides"]}
    for name in {"ap_id", "access_point", "written_as", "station", "flow", "policy", "in_force", "site"} & set(columns):
        urls = [link["url"] for link in columns[name].get("links", [])]
        assert urls, f"{name} leads nowhere"
        for url in urls:
            uid = re.match(r"/d/([\w-]+)\?\$\{__url_time_range\}", url).group(1)
            chosen = {v["name"] for v in ALL[uid]["templating"]["list"]}
            assert set(re.findall(r"var-(\w+)=", url)) <= chosen, url
            assert set(re.findall(r"__data\.fields\.(\w+)", url)) <= set(columns), url
    if "version" in columns and "made_by" in columns:
        assert "var-model=" in columns["made_by"]["links"][0]["url"]


@pytest.mark.parametrize("board, panel", ASKING)
def test_what_is_missing_is_grey_and_an_outage_is_a_hole(board, panel):
    defaults = panel["fieldConfig"]["defaults"]
    if panel["type"] in ("stat", "gauge", "table"):
        grey = {x["options"]["match"]: x["options"]["result"] for x in _mappings_of_numbers(panel)}
        assert grey["null+nan"]["color"] == NO_DATA and grey["null+nan"]["text"]
    if panel["type"] in ("stat", "gauge"):
        # Shown without an answer too: with ClickHouse away "no policy is in force" would be a claim.
        assert {defaults["noValue"], grey["null+nan"]["text"]} <= CLAIM_NOTHING
    if panel["type"] in ("timeseries", "state-timeline"):
        sql = panel["targets"][0]["rawSql"]
        assert re.search(r"WITH FILL( TO \$__toTime)? STEP \$__interval_s", sql), "lines would cross an outage"
        assert ("TO $__toTime" in sql) == (panel["type"] == "state-timeline")


def _mappings_of_numbers(panel):
    by_type = [p["value"] for o in panel["fieldConfig"]["overrides"] for p in o["properties"]
               if o["matcher"] == {"id": "byType", "options": "number"} and p["id"] == "mappings"]
    return by_type[0] if by_type else panel["fieldConfig"]["defaults"]["mappings"]


@pytest.mark.parametrize("board, panel", [p for p in ASKING if p.values[1]["type"] in ("stat", "gauge")])
def test_a_figures_title_fits(board, panel):
    """On the smallest screen, beside the corner of the description, which both sides are spared for."""
    room = panel["gridPos"]["w"] / 24 * SCREEN_PX - 8 - 2 * 13
    assert len(panel["title"]) * 6.5 <= room, panel["title"]


def test_an_age_below_0_is_not_in_the_colour_of_good():
    for title in ("To the broker, p99", "To a row, p99"):
        (panel,) = [p for p in panels_of(ALL["oal-arriving"]) if p["title"] == title]
        first, second, *_ = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert second["value"] == 0 and first["color"] != second["color"]


@pytest.mark.parametrize("uid", ALL)
def test_an_axis_of_zeros_ends_at_one(uid):
    """Grafana makes it end at 100: "0 of 100 partitions"."""
    for panel in panels_of(ALL[uid]):
        defaults = panel.get("fieldConfig", {}).get("defaults", {})
        if panel["type"] == "timeseries" and defaults["unit"] in ("none", "count:/s") and panel["title"] != "Drift":
            assert defaults.get("max") == 1 or defaults["custom"]["axisSoftMax"] == 1, panel["title"]


@pytest.mark.parametrize("board, panel", ASKING)
def test_a_name_is_not_taken_for_a_missing_number(board, panel):
    """Grafana 9 asks JavaScript's isNaN, which is true of every text: names of access points were shown as "–", and
    those of models as "no data".
    """
    names = panel["type"] == "table" or panel["options"].get("textMode") == "value_and_name"
    mappings = panel["fieldConfig"]["defaults"].get("mappings", [])
    of_all = {x["options"]["match"] for x in mappings if x["type"] == "special"}
    assert names and of_all == {"null", "empty"} or not names and of_all <= {"null+nan"}


@pytest.mark.parametrize("uid", ALL)
def test_no_link_of_a_text_leads_to_a_file(uid):
    """[x](troubleshoot.md) would be a page of Grafana, which has none of that name."""
    for panel in panels_of(ALL[uid]):
        for target in re.findall(r"\]\(([^)]+)\)", panel.get("options", {}).get("content", "")):
            assert target.startswith(("/d/", "https://")), f"{panel['title']}: {target}"


@pytest.mark.parametrize("board, panel", ASKING)
def test_an_axis_is_of_one_kind_of_figure_and_does_not_name_its_unit(board, panel):
    if panel["type"] not in ("timeseries", "barchart"):
        return
    defaults = panel["fieldConfig"]["defaults"]
    axes = [defaults["custom"]["axisLabel"]] + [
        p["value"] for o in panel["fieldConfig"]["overrides"] for p in o["properties"] if p["id"] == "custom.axisLabel"
    ]
    if defaults["unit"] not in ("none", "short"):
        assert not [a for a in axes if re.search(r"second|byte|\bbits|\bms\b", a)], "Grafana scales the ticks"
    assert not [a for a in axes if ";" in a or "," in a and "unit" in a], axes
    for override in panel["fieldConfig"]["overrides"]:
        properties = {p["id"]: p["value"] for p in override["properties"]}
        if "unit" in properties:
            assert properties["custom.axisPlacement"] == "right" and properties["custom.axisLabel"]


@pytest.mark.parametrize("board, panel", ASKING)
def test_no_two_lines_are_of_one_colour(board, panel):
    """Where each has a colour of its own, one that is another's too says nothing: "not here" looked "not counted"."""
    fixed = [p["value"]["fixedColor"] for o in panel["fieldConfig"]["overrides"] for p in o["properties"]
             if p["id"] == "color"]
    assert len(fixed) == len(set(fixed))


@pytest.mark.parametrize("board, panel", ASKING)
def test_long_names_take_no_height_from_the_lines(board, panel):
    """Eight addresses with a word are three lines of a legend below."""
    name = panel["fieldConfig"]["defaults"].get("displayName", "")
    if "labels.station" in name and "field.name" in name:
        assert panel["options"]["legend"]["placement"] == "right", panel["title"]


def test_a_failure_is_no_duration():
    (checkpoints,) = [p for p in panels_of(ALL["oal-platform"]) if p["title"] == "Checkpoints"]
    units = {o["matcher"]["options"]: p["value"] for o in checkpoints["fieldConfig"]["overrides"]
             for p in o["properties"] if p["id"] == "unit"}
    assert checkpoints["fieldConfig"]["defaults"]["unit"] == "ms" and units == {"failed": "none"}


def test_the_legend_of_classes_has_their_names():
    """By thresholds it would read < 1, 1+, 2+, 3+."""
    (panel,) = [p for p in panels_of(ALL["oal-congested"]) if p["type"] == "state-timeline"]
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["color"]["mode"] != "thresholds"
    assert [v["text"] for v in defaults["mappings"][0]["options"].values()] == [*CLASS_NAMES]


def test_a_description_names_headers_and_not_columns():
    for board in ALL.values():
        for panel in panels_of(board):
            columns = {o["matcher"]["options"] for o in panel.get("fieldConfig", {}).get("overrides", [])}
            assert not columns & set(re.findall(r"\*(\w+_\w+)\*", panel.get("description", ""))), panel["title"]


def test_the_home_board_has_a_row_a_question_and_every_figure_leads_on():
    rows = [p for p in ALL[HOME_BOARD]["panels"] if p["type"] == "row"]
    assert [r["title"] for r in rows] == [BOARDS[uid] for uid in home.ASKED] and set(home.ASKED) == set(QUESTIONS)
    figures = [p for p in panels_of(ALL[HOME_BOARD]) if "targets" in p]
    assert len(figures) == 5 * len(rows)
    for panel in figures:
        (link,) = panel["fieldConfig"]["defaults"]["links"]
        assert link["url"].startswith("/d/oal-") and "${__url_time_range}&${__all_variables}" in link["url"]
    ini = (HOME / "grafana.ini").read_text()
    assert f"default_home_dashboard_path = $__env{{OAL_GRAFANA_DASHBOARDS}}/{HOME_BOARD}.json" in ini


@pytest.mark.parametrize("uid", [*QUESTIONS, HOME_BOARD])
def test_a_board_marks_what_was_done_and_lists_its_alerts(uid):
    assert {note["name"] for note in ALL[uid]["annotations"]["list"]} >= {
        "Releases", "Policy changes", "Kill switch", "Upgrades and restarts"
    }
    (listed,) = [p for p in panels_of(ALL[uid]) if p["type"] == "alertlist"]
    assert listed["options"]["alertInstanceLabelFilter"] == (
        '{platform="oal"}' if uid == HOME_BOARD else f'{{board="{uid}"}}')
    assert listed["options"]["stateFilter"]["firing"] and listed["options"]["stateFilter"]["error"]


def test_the_platform_board_opens_with_what_is_wrong_and_keeps_the_rest_shut():
    rows = [p for p in ALL["oal-platform"]["panels"] if p["type"] == "row"]
    assert [r["title"] for r in rows if not r["collapsed"]] == ["Is it good?", "Components"]
    assert len([*panels_of(ALL["oal-platform"])]) > 30 and sum(p["type"] != "row"
                                                              for p in ALL["oal-platform"]["panels"]) < 13


def test_there_are_variables_of_site_band_channel_and_policy():
    names = {uid: [v["name"] for v in board["templating"]["list"]] for uid, board in ALL.items()}
    assert names["oal-congested"] == ["site", "band", "channel", "ap", "detail", "station", "flow"]
    assert names["oal-control"] == ["site", "ap", "policy", "in_force"]
    assert names["oal-model"] == ["site", "ap", "model"]
    hidden = {v["name"]: v["hide"] for v in ALL["oal-platform"]["templating"]["list"]}
    assert hidden == {"site": 2, "ap": 2}, "links from the platform keep site and access point"


def test_the_readmes_list_of_needs_names_tests_that_there_are():
    there = {name for path in (*HOME.glob("tests/test_*.py"), HOME.parents[1] / "helm/tests/test_operators.py")
             for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)}
    files = {path.stem for path in HOME.glob("tests/test_*.py")} | {"test_operators"}
    named = set(re.findall(r"\btest_\w+", (HOME / "README.md").read_text()))
    assert len(named & there) >= 20 and named <= there | files, named - there - files


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
