"""What the demo says of the model in force, beside persistence."""

import pytest
from oal_local.loop import lines, persistence_foresees

SAID = {
    "shipped": 1, "held": {}, "released": 1, "applied": 3, "rejected": 0, "in_force": {}, "predictions": 500,
    "judged": 400, "right": 240, "persistence_right": 220, "differ": 0, "same": 500, "lacked_input": 0, "onsets": 60,
    "onsets_foreseen": 40, "acceptable": 100, "acceptable_onsets": 30, "good": 200, "good_onsets": 30,
    "first_drops": 25, "first_foreseen": 10, "lead_p50_ms": 310.4,
}


@pytest.mark.parametrize(("alarms", "onsets"), [(0, 0), (50, 15), (100, 30), (140, 36), (300, 60), (999, 60)])
def test_persistence_alarms_where_it_is_acceptable_first(alarms, onsets):
    assert persistence_foresees(SAID | {"alarms": alarms}) == pytest.approx(onsets)


def test_nothing_judged_is_nothing_foreseen():
    nothing = {"alarms": 0, "acceptable": 0, "acceptable_onsets": 0, "good": 0, "good_onsets": 0}
    assert persistence_foresees(nothing) == 0


def test_model_and_persistence_stand_in_one_line():
    text = lines(SAID | {"alarms": 140})
    assert "60 % right (persistence 55 %)" in text
    assert "40 of 60 onsets foreseen (persistence with as many alarms 36), 140 alarms" in text
    assert "25     with none in the second before; 10 foreseen, median lead 310 ms" in text
    none = lines(SAID | {"alarms": 140, "first_foreseen": 0, "lead_p50_ms": float("nan")})
    assert "25     with none in the second before; 0 foreseen: no lead time" in none and "nan" not in none
