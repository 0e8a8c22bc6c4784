"""medium/timing.h compiled here: PHY rates of the standard's tables and the durations of airtime.py."""
import pathlib
import subprocess

import airtime
import pytest

PROGRAM = """
#include <stdio.h>
#include "timing.h"
int main(void)
{
	unsigned int target, width, max_mcs, bytes;
	while (scanf("%u %u %u %u", &target, &width, &max_mcs, &bytes) == 4) {
		struct medium_rate r = medium_rate_for(target, width, max_mcs);
		printf("%u %u %u %u %llu\\n", r.kbps, r.mcs, r.nss, r.short_gi, medium_ppdu_ns(&r, bytes));
	}
}
"""


@pytest.fixture(scope="module")
def timing(tmp_path_factory):
    folder = tmp_path_factory.mktemp("timing")
    (folder / "main.c").write_text(PROGRAM)
    medium = pathlib.Path(__file__).resolve().parent.parent / "medium"
    subprocess.run(["cc", "-Wall", "-Werror", f"-I{medium}", "-o", folder / "main", folder / "main.c"], check=True)

    def ask(target_kbps, width, max_mcs, octets):
        out = subprocess.run([folder / "main"], input=f"{target_kbps} {width} {max_mcs} {octets}", text=True,
                             check=True, capture_output=True)
        return [int(word) for word in out.stdout.split()]
    return ask


@pytest.mark.parametrize(("target", "width", "max_mcs", "kbps", "mcs", "nss", "gi"), [(6500, 20, 7, 6500, 0, 1, 0),
                                                                                      (65000, 20, 9, 65000, 7, 1, 0),
                                                                                      (72300, 20, 7, 72222, 7, 1, 1),
                                                                                      (86000, 20, 9, 78000, 4, 2, 0),
                                                                                      (270000, 40, 9, 270000, 7, 2, 0),
                                                                                      (866700, 80, 9, 866666, 9, 2, 1),
                                                                                      (29300, 80, 9, 29250, 0, 1, 0),
                                                                                      (1000, 20, 9, 6500, 0, 1, 0)])
def test_rates_are_those_of_the_mcs_tables(timing, target, width, max_mcs, kbps, mcs, nss, gi):
    assert timing(target, width, max_mcs, 100)[:4] == [kbps, mcs, nss, gi]


@pytest.mark.parametrize(("mbps", "octets"), [(65, 100), (65, 31200), (6.5, 1560), (52, 1556)])
def test_durations_are_whole_symbols_after_the_preamble(timing, mbps, octets):
    kbps, _, nss, gi, ns = timing(int(mbps * 1000), 20, 9, octets)
    assert (kbps, gi) == (int(mbps * 1000), 0)
    assert ns == airtime.ppdu(mbps, octets, nss) * 1000
