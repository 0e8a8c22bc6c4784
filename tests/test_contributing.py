"""CONTRIBUTING.md's table "Where a change belongs".

Each change is made in a copy of the tree, in the one place that the table names; `make gen` runs; whatever else then
differs must be a generated file.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tree import changed, commit, run
from tree import copy as tree_copy

ROOT = Path(__file__).resolve().parent.parent
#: Written by `make gen`.
GENERATED = re.compile(r"^schema/generated/|^schema/proto/oal/bundle\.proto$"
                       r"|^observe/grafana/(dashboards|provisioning)/"
                       r"|^helm/oal/(values\.schema\.json|README\.md)$|^ap-exporter/README\.md$")


def after(path: Path, text: str, line: str) -> None:
    """Put `line` behind the first line that begins with `text`."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(i for i, candidate in enumerate(lines) if candidate.startswith(text))
    lines.insert(at + 1, line)
    path.write_text("".join(lines), encoding="utf-8")


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def column(tree: Path) -> None:
    proto = tree / "schema/proto/oal/samples.proto"
    text = proto.read_text(encoding="utf-8")
    message = re.search(r"^message StationColumns \{\n.*?^\}\n", text, re.M | re.S)
    number = max(map(int, re.findall(r"^  repeated \w+ \w+ = (\d+)", message[0], re.M))) + 1
    field = (f"  // Made up.\n  repeated sint64 made_up = {number} "
             "[(oal.col) = { kind: STATE type: U16 unit: \"1\" source: \"exporter\" }];\n")
    proto.write_text(text[: message.end() - 2] + field + text[message.end() - 2:], encoding="utf-8")
    settings = tree / "schema/settings.yaml"
    settings.write_text(re.sub(r"(?m)^schema_revision: (\d+)", lambda m: f"schema_revision: {int(m[1]) + 1}",
                               settings.read_text(encoding="utf-8")), encoding="utf-8")


def feature(tree: Path) -> None:
    append(tree / "policies/rwnd-fair/features.yaml",
           "  - {name: made_up_bytes, op: lag, a: backlog_bytes, window: 7, unit: B}\n")


def view(tree: Path) -> None:
    last = max(int(p.name[:4]) for p in (tree / "clickhouse/migrations").glob("*.sql"))
    new = tree / f"clickhouse/migrations/{last + 1:04}_made_up.sql"
    new.write_text("CREATE VIEW v_made_up AS SELECT 1 AS one;\n")


def panel(tree: Path) -> None:
    board = tree / "observe/grafana/src/oal_grafana/dashboards/arriving.py"
    text = board.read_text(encoding="utf-8")
    assert "Time to read a row" in text
    board.write_text(text.replace("Time to read a row", "Time to read a row, made up"), encoding="utf-8")


def topic(tree: Path) -> None:
    after(tree / "platform/kafka/topics.yaml", "  training.items.v1:", "  made.up.v1: {}\n")


def number(tree: Path) -> None:
    after(tree / "policies/rwnd-fair/numbers.yaml", "  # how much",
          '  - {name: made_up_us, min: 0, max: 9, default: 1, unit: us, doc: "Made up."}\n')


def value(tree: Path) -> None:
    append(tree / "helm/oal/values.yaml", "\n# Made up.\nmadeUp: 1\n")


def scenario(tree: Path) -> None:
    text = (tree / "lab/scenarios/steady.yaml").read_text(encoding="utf-8")
    (tree / "lab/scenarios/made-up.yaml").write_text("# made up\n" + text, encoding="utf-8")


def option(tree: Path) -> None:
    base = tree / "ap-exporter/src/base"
    after(base / "config_options.c", "	N(exporter, max_flows,", '	N(exporter, made_up, 1, 0, 9, "made up"),\n')
    header = base / "config.h"
    text = header.read_text(encoding="utf-8")
    member = re.search(r"^struct config_exporter \{\n(.*?)^\};", text, re.M | re.S)
    header.write_text(text[: member.end(1)] + "	uint32_t made_up;\n" + text[member.end(1):], encoding="utf-8")


def metric(tree: Path) -> None:
    file = tree / "deploy/internal/metric/metric.go"
    after(file, "	KnownAPs ", "	MadeUp           prometheus.Gauge\n")
    after(file, "	s.KnownAPs = ", '	s.MadeUp = gauge("made_up", "Made up.")\n')


#: what is changed → (how, the one folder)
CHANGES = {
    "a column that APs send": (column, "schema/"),
    "a feature": (feature, "policies/rwnd-fair/"),
    "a view": (view, "clickhouse/migrations/"),
    "a panel or an alert": (panel, "observe/grafana/src/"),
    "a topic, or who may use it": (topic, "platform/kafka/"),
    "a number of a policy": (number, "policies/rwnd-fair/"),
    "a value of the chart": (value, "helm/oal/"),
    "a scenario of the lab": (scenario, "lab/scenarios/"),
    "an option of the exporter": (option, "ap-exporter/src/base/"),
    "a metric of the push service": (metric, "deploy/internal/metric/"),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of what git tracks, as it is in the working tree, in which the ten changes have been made and `make gen`
    has run. What each change wrote by hand is in `by_hand`."""
    copy = tree_copy(tmp_path_factory.mktemp("tree"))
    by_hand = {}
    for change, (make, _) in CHANGES.items():
        make(copy)
        by_hand[change] = changed(copy)
        commit(copy, change)
    run(copy, "make", "gen")
    return copy, by_hand


def test_the_table_names_each_of_them():
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = {change.strip(): place for change, place in re.findall(r"^\| (.*?) \| `(.*?)`", table, re.M)}
    assert set(CHANGES) <= set(rows)
    for change, (_, folder) in CHANGES.items():
        place = rows[change].replace("NAME", "rwnd-fair")
        same = place.startswith(folder.rstrip("/")) or folder.startswith(place.rstrip("/") + "/")
        assert same, (change, place, folder)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_made_by_hand_in_one_folder(tree, change):
    _, by_hand = tree
    folder = CHANGES[change][1]
    assert by_hand[change] and all(name.startswith(folder) for name in by_hand[change]), by_hand[change]


def test_whatever_else_follows_is_generated(tree):
    copy, _ = tree
    left = {name for name in changed(copy) if not GENERATED.search(name)}
    assert not left, f"`make gen` left these to be changed by hand: {sorted(left)}"
    written = changed(copy)
    for name in ("schema/generated/reference.md", "schema/generated/features/congestion.oalf",
                 "schema/proto/oal/bundle.proto", "helm/oal/values.schema.json", "ap-exporter/README.md"):
        assert name in written, f"{name} does not say what was changed"
    assert any(name.startswith("observe/grafana/dashboards/") for name in written)


def test_what_was_changed_still_compiles(tree):
    copy, _ = tree
    run(copy, "go", "-C", "deploy", "vet", "./internal/metric")
    assert "made_up" in run(copy, "ap-exporter/build/ap-exporter", "options")
    assert "made-up" in run(copy, "make", "-s", "-C", "lab", "list")
