"""The dashboards' JSON against Grafana's own types (@grafana/schema), with the TypeScript compiler: names, nesting,
values of enums.
"""
import json
import shutil
import subprocess

import npm
import pytest
from oal_grafana.queries import boards, panels_of

#: Of the oldest and the newest Grafana that the dashboards are for: where the types of panels are, and of dashboards.
VERSIONS = {
    "10.1": ("@grafana/schema/dist/esm/raw", "@grafana/schema/dist/esm/raw/dashboard/x/dashboard_types.gen"),
    "12.4": ("grafana-schema-12/dist/esm/raw", "grafana-schema-12/dist/types/raw/dashboard/x/types.gen")
}
#: Panel type → folder and file of its types, and whether its fields have options of their own.
PANELS = {
    "stat": ("stat", "Stat", False), "gauge": ("gauge", "Gauge", False), "table": ("table", "Table", False),
    "timeseries": ("timeseries", "TimeSeries", True), "barchart": ("barchart", "BarChart", True),
    "heatmap": ("heatmap", "Heatmap", True), "state-timeline": ("statetimeline", "StateTimeline", True),
    "text": ("text", "Text", False)
}
UNTYPED = ("alertlist",)  # whose options the schema does not have
#: What the newest Grafana takes over from older ones by itself: (version, type of panel, option, key).
TAKEN_OVER = {("12.4", "heatmap", "tooltip", "show")}


def _options(panel: dict, version: str) -> dict:
    dropped = {(option, key) for v, kind, option, key in TAKEN_OVER if (v, kind) == (version, panel["type"])}
    return {
        option: {k: v for k, v in value.items() if (option, k) not in dropped} if isinstance(value, dict) else value
        for option, value in panel["options"].items()
    }


def source(board: dict, version: str) -> str:
    """TypeScript that is right if the dashboard is."""
    panels, dashboards = VERSIONS[version]
    lines = [
        "import type { Json } from './json';",
        f"import type {{ Dashboard, Panel, RowPanel }} from '{dashboards}';"
    ]
    for folder, name, fields in PANELS.values():
        lines.append(
            f"import type {{ Options as {name}Options{f', FieldConfig as {name}Field' if fields else ''} }} from"
            f" '{panels}/composable/{folder}/panelcfg/x/{name}PanelCfg_types.gen';"
        )
    shell = {k: v for k, v in board.items() if k != "panels"}
    # The schema types an annotation's target for Grafana's own tags; a plugin's query is whatever the plugin wants.
    shell["annotations"] = {
        "list": [{k: v for k, v in a.items() if k != "target"} for a in board["annotations"]["list"]]
    }
    lines.append(f"export const shell: Json<Dashboard> = {json.dumps(shell)};")
    for row in board["panels"]:
        if row["type"] == "row":
            lines.append(f"export const row{row['id']}: Json<RowPanel> = {json.dumps({**row, 'panels': []})};")
    for panel in panels_of(board):
        if panel["type"] in UNTYPED:
            lines.append(f"export const panel{panel['id']}: Json<Panel> = {json.dumps(panel)};")
            continue
        _, name, fields = PANELS[panel["type"]]
        lines.append(f"export const panel{panel['id']}: Json<Panel> = {json.dumps(panel)};")
        options = json.dumps(_options(panel, version))
        lines.append(f"export const options{panel['id']}: Json<{name}Options> = {options};")
        if fields:
            lines.append(
                f"export const field{panel['id']}: Json<{name}Field> ="
                f" {json.dumps(panel['fieldConfig']['defaults'].get('custom', {}))};"
            )
    return "\n".join(lines) + "\n"


def _broken(number: int, version: str) -> str:
    board = boards()["oal-arriving"]
    BREAKS[number](board)
    return source(board, version)


BREAKS = [
    lambda board: board["panels"][1]["options"].update(graphMode="sparkles"),
    lambda board: board["panels"][1]["gridPos"].update(width=3),
    lambda board: board.update(refreshEvery="30s"),
    lambda board: next(p for p in board["panels"]
                       if p["type"] == "timeseries")["fieldConfig"]["defaults"]["custom"].update(drawStyle="crayon"),
]


@pytest.fixture(scope="session")
def said(tmp_path_factory):
    """What the compiler says of each file; one run for all, because its start is what takes time."""
    folder = tmp_path_factory.mktemp("schema")
    (folder / "node_modules").symlink_to(npm.install(npm.SCHEMA) / "node_modules")
    for name in ("tsconfig.json", "json.d.ts"):
        shutil.copy(npm.SCHEMA / name, folder)
    files = {
        f"{uid}-{version}": made
        for version in VERSIONS for uid, made in
        ({uid: source(board, version)
          for uid, board in boards().items()} | {f"broken{i}": _broken(i, version) for i in range(len(BREAKS))}).items()
    }
    for name, text in files.items():
        (folder / f"{name}.ts").write_text(text)
    done = subprocess.run(["node_modules/.bin/tsc", "-p", "tsconfig.json"], cwd=folder, capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 2 and not done.stderr, done.stdout + done.stderr  # the broken ones
    return {name: [line for line in done.stdout.splitlines() if line.startswith(f"{name}.ts(")] for name in files}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("uid", sorted(boards()))
def test_a_dashboard_is_what_grafanas_schema_says(said, uid, version):
    assert said[f"{uid}-{version}"] == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("number", range(len(BREAKS)))
def test_the_compiler_notices_what_is_not_in_the_schema(said, number, version):
    assert any("error TS" in line for line in said[f"broken{number}-{version}"])
