"""The rewrite conforms, in a short run: every mechanism on a real kernel, judged by captures. `make conformance` plays all of it."""
import pytest
from conformance import run
from conformance.switch import NAMES

QUICK = run.chosen(list(NAMES), None, quick=True)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Results by case and backend; all guests play before the first is looked at."""
    try:
        run.ovs_build()
        switches = list(NAMES)
    except run.NoSources:
        switches = ["bpf"]
    return {(r.case.name, r.backend): r for r in run.run(switches, quick=True, out=tmp_path_factory.mktemp("conformance"))}


@pytest.mark.parametrize(("case", "backend"), [(case.name, switch) for switch, cases in QUICK.items() for case in cases])
def test_conforms(played, case, backend):
    if backend != "bpf" and (case, backend) not in played:
        pytest.skip("Debian no longer has the sources of the Open vSwitch that the patches are for")
    result = played[case, backend]
    assert result.complaints == [] and result.figures


def test_every_backend_is_in_the_short_run():
    assert set(QUICK) == set(NAMES)
