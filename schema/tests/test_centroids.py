"""Centroids: integers that answer as the fit did, and in C alike."""

import math
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oal_schema.centroids import AIR, MAX_SCALE, ONE, QUEUE, Centroids, CentroidsError, compiled, loads, log2_q16
from oal_schema.tree import MISSING

LAW = Path(__file__).resolve().parents[2] / "policies/loss-cause/law.h"
#: Windows of some 12 and 80 segments, round trips of some 33 and 110 ms.
FIT = compiled(np.array([3.4, 11.0]), np.array([0.9, 0.6]), np.array([-0.9, -1.0]), np.array([1.1, 1.0]), True)

HARNESS = r"""
#include <stdio.h>
#include "law.h"
int main(void)
{
	struct law_centroids c = { 0 };
	long long x[LAW_MAX_INPUTS];
	unsigned int i;
	int k;

	while (scanf("%u %d", &c.inputs, &c.usable) == 2) {
		for (i = 0; i < c.inputs; i++)
			if (scanf("%lld %lld %lld %lld %lld", &c.shift[i], &c.scale[i], &c.centre[0][i],
			          &c.centre[1][i], &x[i]) != 5)
				return 1;
		k = law_nearest(&c, x);
		printf("%d %lld\n", k, x[0] < 0 ? -1 : law_log2(x[0]));
	}
	return 0;
}
"""


@given(st.integers(0, (1 << 63) - 1))
def test_a_logarithm_is_right_to_sixteen_bits(x):
    assert 0 <= math.log2(x + 1) * ONE - log2_q16(x) < 2.5


def test_a_compiled_fit_answers_as_the_fit_does():
    rng = np.random.default_rng(4)
    rows = np.stack([np.exp(rng.normal(3.4, 1, 4000)), np.exp(rng.normal(11, 0.8, 4000))], axis=1).round().astype(int)
    z = (np.log1p(rows) - (3.4, 11.0)) / (0.9, 0.6)
    far = {k: ((z - centre) ** 2).sum(axis=1) for k, centre in ((AIR, (-0.9, -1.0)), (QUEUE, (1.1, 1.0)))}
    clear = np.abs(far[AIR] - far[QUEUE]) > 0.002  # nearer, the integers' last bits decide
    want = np.where(far[AIR] < far[QUEUE], AIR, QUEUE)
    got = np.array([FIT.answer([int(v) for v in row]) for row in rows])
    assert clear.mean() > 0.99 and (got[clear] == want[clear]).all() and set(got) == {AIR, QUEUE}


def test_what_is_not_known_is_congestion():
    assert FIT.answer([12, 33_000]) == AIR and FIT.answer([80, 110_000]) == QUEUE
    assert FIT.answer([MISSING, 33_000]) == FIT.answer([12, -1]) == QUEUE
    none = Centroids(FIT.shift, FIT.scale, FIT.air, FIT.queue, False)
    assert none.answer([12, 33_000]) == QUEUE, "clusters that are none"
    same = Centroids((0,), (ONE,), (5,), (5,), True)
    assert same.answer([3]) == QUEUE, "equally near"


def test_a_file_is_read_back_and_one_that_answers_otherwise_is_refused():
    text = FIT.dumps([[12, 33_000], [80, 110_000], [MISSING, 1]])
    assert loads(text) == FIT
    with pytest.raises(CentroidsError, match="vector 0: 0, not 1"):
        loads(text.replace('"answer": 0', '"answer": 1', 1))
    with pytest.raises(CentroidsError, match="golden vectors"):
        loads(FIT.dumps([]))


@pytest.mark.parametrize("change", [
    {"scale": (0, 1)}, {"scale": (MAX_SCALE + 1, 1)}, {"shift": (1 << 23, 0)}, {"air": (1 << 29, 0)}, {"queue": (1,)},
    {"shift": (), "scale": (), "air": (), "queue": ()}])
def test_numbers_that_would_leave_64_bits_are_refused(change):
    with pytest.raises(CentroidsError):
        Centroids(**vars(FIT) | change)


def test_an_input_that_hardly_varied_has_no_scale():
    with pytest.raises(CentroidsError, match="scale"):
        compiled(np.array([3.4]), np.array([1e-6]), np.array([0.0]), np.array([1.0]), True)


@pytest.fixture(scope="module")
def law(tmp_path_factory):
    folder = tmp_path_factory.mktemp("law")
    (folder / "harness.c").write_text(HARNESS)
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wconversion",
                    "-fsanitize=undefined", "-fno-sanitize-recover", f"-I{LAW.parent}", "-o", folder / "law",
                    folder / "harness.c"], check=True)
    return folder / "law"


LIMITS = {"shift": st.integers(-(1 << 22), 1 << 22), "scale": st.integers(1, MAX_SCALE),
          "air": st.integers(-(1 << 28), 1 << 28), "queue": st.integers(-(1 << 28), 1 << 28)}
INPUT = st.one_of(st.integers(0, 1 << 20), st.integers(MISSING, (1 << 63) - 1), st.just(MISSING))


@st.composite
def cases(draw):
    width = draw(st.integers(1, 4))
    pick = lambda of: tuple(draw(of) for _ in range(width))
    return Centroids(**{name: pick(of) for name, of in LIMITS.items()}, usable=draw(st.integers(0, 5)) > 0), pick(INPUT)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(cases(), min_size=1, max_size=200))
def test_the_c_answers_alike(law, many):
    text = "\n".join(
        f"{len(c.shift)} {int(c.usable)} " + " ".join(" ".join(map(str, row)) for row in zip(
            c.shift, c.scale, c.air, c.queue, x)) for c, x in many)
    done = subprocess.run([law], input=text, capture_output=True, text=True, check=True)
    want = [f"{c.answer(list(x))} {log2_q16(x[0]) if x[0] >= 0 else -1}" for c, x in many]
    assert done.stdout.splitlines() == want
