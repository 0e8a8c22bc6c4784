"""What was asked of the exporter, line by line: the arithmetic, and the figures of ap-exporter/README.md."""
import pathlib

import pytest
from reach import __main__ as command
from reach import lines
from system import cost

README = pathlib.Path(__file__).resolve().parents[2] / "ap-exporter/README.md"


def cell(active: int, packets: int, user: float, kernel: float) -> cost.Cell:
    return cost.Cell("mips", "module-budget", 100, active, packets, user, kernel, 0, [], "packet", "2026-01-01")


def test_calls_are_those_of_the_whole_process():
    line = lines.calls({"calls": {"auto": {"tick": {"ppoll": 10.0, "read": 1.0}, "sampler": {"sendto": 10.0},
                                           "others": {"futex": 9.5, "madvise": 0.3}}}})
    assert line.is_ == pytest.approx(30.8) and line.met
    assert line.parts == {"tick: ppoll": 10, "tick: read": 1, "sampler: sendto": 10, "others: futex": 9.5}
    assert lines.calls({"calls": {"auto": {"tick": {"ppoll": 41.0}}}}).text().startswith("missed ")


def test_a_share_of_a_processor_is_of_350_million_instructions_a_second():
    line = lines.hundred([cell(10, 0, 21_000, 21_000), cell(10, 1500, 42_000, 28_000), cell(100, 0, 7_000, 7_000)])
    assert line.is_ == pytest.approx(3) and line.parts["kernel"] == pytest.approx(1.5)
    assert line.parts["10 active, 1,500 packets/s"] == pytest.approx(5)
    assert not lines.hundred([cell(10, 0, 21_000, 21_140)]).met
    assert lines.ten(cell(10, 1500, 35_000, 35_000)).met


def test_cells_that_were_measured_are_not_played_again():
    """The figure then has their day."""
    cells = [cell(active, packets, 21_000, 21_000) for active in (10, 100) for packets in (0, 1500)]
    assert command.hundred(cells).is_ == pytest.approx(3)
    assert command.hundred(cells).measured == "2026-01-01"
    with pytest.raises(KeyError):
        command.hundred(cells[:3])


def test_ticks_missed_and_memory_are_what_was_said():
    line = lines.ticks({"slow driver": ({"ticks": 10, "ticks_missed": 1}, {"ticks": 1260, "ticks_missed": 1})})
    assert line.met and line.is_ == 0 and line.unit == "of 1,250"
    assert not lines.ticks({"slow driver": ({"ticks": 0, "ticks_missed": 1}, {"ticks": 9, "ticks_missed": 2})}).met
    line = lines.memory([{"name": "exporter_rss_tls_feed", "value": 1, "note": ""},
                         {"name": "exporter_rss_agent_feed", "value": 8_400_000,
                          "note": "x; anonymous 2000000, file-backed 6300000, shared 100000; budget 1"}])
    assert not line.met and line.parts == {"anonymous": 2.0, "file-backed": 6.3, "shared": 0.1}


def test_what_was_measured_is_kept(tmp_path):
    one = lines.ten(cell(10, 1500, 35_000, 35_000))
    lines.save(tmp_path / "x" / "reach.json", {"ten": one})
    assert lines.read(tmp_path / "x" / "reach.json") == {"ten": one}
    assert lines.read(tmp_path / "none.json") == {}


def test_the_figures_of_the_readme_are_those_that_were_measured():
    """Each line that was, with its day; what was not says so."""
    text = README.read_text()
    for line in lines.read(command.RESULTS).values():
        assert f"{lines.show(line.is_)} {line.unit}" in text, line.text()
