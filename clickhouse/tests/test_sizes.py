"""What docs/sizing.md and the chart's fleet.yaml reckon with for rows that are kept for 180 days is what rows take."""

import re

import pytest
import yaml
from conftest import FOLDER

ROOT = FOLDER.parent
FLEET, SIZING = ROOT / "helm/oal/examples/fleet.yaml", ROOT / "docs/sizing.md"
RAW_GB_AN_AP = 10.7
KEPT = ("label", "item", "prediction")
#: A table of a minute has larger headers and shorter runs than one of a day.
TOLERANCE = 0.1


def reckoned() -> dict[str, float]:
    """Bytes a row, as fleet.yaml has them."""
    return {table: float(size) for table, size in re.findall(
        r"#\s+(label|item|prediction)s\s+10/s × ([\d.]+) B × 180 d", FLEET.read_text())}


@pytest.mark.parametrize("table", KEPT)
def test_rows_take_what_the_chart_reckons_with(filled, table):
    rows, size = map(int, filled.rows(
        "SELECT sum(rows), sum(data_compressed_bytes) FROM system.parts WHERE active AND table ="
        f" '{table}' AND database = '{filled.share}'")[0])
    print(f"{table}: {size / rows:.1f} B a row")
    assert size / rows == pytest.approx(reckoned()[table], rel=TOLERANCE)


def test_a_server_of_the_example_holds_what_it_is_given():
    """1,000 access points; nine tenths of the volume, because merges want room."""
    kept_gb = sum(reckoned().values()) * 10 * 86400 * 180 / 1e9
    assert re.search(rf"\b{kept_gb:.1f} GB\b", FLEET.read_text()) and re.search(rf"\b{kept_gb:.1f} GB\b",
                                                                               SIZING.read_text())
    size = yaml.safe_load(FLEET.read_text())["clickhouse"]["storage"]["size"]
    assert int(size.removesuffix("Ti")) * 2**40 * 0.9 > 1000 * (RAW_GB_AN_AP + kept_gb) * 1e9
