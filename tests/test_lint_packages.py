"""stream-jobs/lint_packages.py finds what it says it finds, and nothing in code that is well."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "stream-jobs"))

import lint_packages  # noqa: E402

TABLE = "## Packages\n| package | does |\n|---|---|\n| `low` | a |\n| `high` | b |\n| `(root)` | c |\n## More\n"


@pytest.fixture
def findings(tmp_path):
    def of(readme: str = TABLE, **sources: str) -> list[str]:
        """Faults of a tree whose files are given as package_Class="body"; root_Class is in no package of its own."""
        (tmp_path / "README.md").write_text(readme)
        for name, body in ({"low_A": "", "high_B": "", "root_Main": ""} | sources).items():
            package, _, cls = name.partition("_")
            folder = tmp_path / "src/main/java/oal/stream" / ("" if package == "root" else package)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{cls}.java").write_text(f"class {cls} {{ {body} }}\n")
        return lint_packages.findings(tmp_path)

    return of


def test_a_tree_that_is_well_has_no_faults(findings):
    assert findings(high_B="oal.stream.low.A a;", root_Main="oal.stream.high.B b; oal.stream.low.A a;") == []


def test_the_job_itself_has_no_faults():
    assert lint_packages.findings(ROOT / "stream-jobs") == []


def test_a_use_of_a_higher_package_is_found(findings):
    assert findings(low_A="oal.stream.high.B b;") == [
        "src/main/java/oal/stream/low/A.java: low uses high.B, which is higher"]


def test_a_use_of_the_root_is_found(findings):
    assert any("low uses (root).Main" in fault for fault in findings(low_A="oal.stream.Main m;"))


def test_circles_between_packages_and_files_are_found(findings):
    faults = findings(low_A="oal.stream.high.B b;", high_B="oal.stream.low.A a;")
    assert "circle between packages: high → low → high" in faults
    assert "circle between files: high.B → low.A → high.B" in faults


def test_a_circle_inside_a_package_is_found(findings):
    assert findings(low_A="C c;", low_C="A a;") == ["circle between files: low.A → low.C → low.A"]


@pytest.mark.parametrize(
    "body", ["/** {@link oal.stream.high.B} */", "// oal.stream.high.B", 'String s = "oal.stream.high.B";']
)
def test_comments_and_texts_use_nothing(findings, body):
    assert findings(low_A=body + "\n") == []


def test_the_table_has_every_package_and_no_other(findings):
    assert findings(other_C="") == ["README.md, Packages: `other` is not in the table"]
    assert "README.md, Packages: there is no package `none`" in findings(TABLE.replace("`low`", "`none`"), other_C="")


def test_long_files_and_lines_are_found(findings):
    faults = findings(low_A="\n" * 400, high_B="x" * 120)
    assert "src/main/java/oal/stream/low/A.java: 401 lines; at most 400" in faults
    assert any(fault.startswith("src/main/java/oal/stream/high/B.java:1:") for fault in faults)
