package rollout

import (
	"fmt"
	"testing"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/release"
)

func released(slot release.Slot, version uint32, plan *release.Plan) *release.Release {
	return &release.Release{Slot: slot, Scope: "fleet", CreatedUS: int64(version) * 1e6, Plan: plan,
		Bundle: bundle.Bundle{Hash: fmt.Sprintf("%064x", version), Serial: int64(version) * 1e6, Version: version}}
}

func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("ap-%d", i))
	}
	return all
}

func limit(v float64) *float64 { return &v }

func TestThresholdTakesTheShareAndAtLeastOne(t *testing.T) {
	for _, c := range []struct {
		share   float64
		aps, in int
	}{{0.1, 1, 1}, {0.1, 3, 1}, {0.1, 100, 10}, {0.5, 3, 2}, {0.01, 1000, 10}, {1, 7, 7}, {0.999, 10, 10}} {
		aps := names(c.aps)
		threshold, in := Threshold("r", c.share, aps), 0
		for _, ap := range aps {
			if Position("r", ap) <= threshold {
				in++
			}
		}
		if in != c.in {
			t.Errorf("share %g of %d APs: %d are in, want %d", c.share, c.aps, in, c.in)
		}
	}
	// APs that come later are in by the same share.
	threshold, in := Threshold("r", 0.2, names(1000)), 0
	for i := range 10000 {
		if Position("r", fmt.Sprintf("later-%d", i)) <= threshold {
			in++
		}
	}
	if in < 1600 || in > 2400 {
		t.Errorf("%d of 10000 later APs are in a share of 0.2", in)
	}
}

func TestMembersDifferFromReleaseToRelease(t *testing.T) {
	same := 0
	for _, ap := range names(1000) {
		if Position("a", ap) <= 1<<62 && Position("b", ap) <= 1<<62 {
			same++
		}
	}
	if same > 120 { // a quarter of a quarter is 62
		t.Errorf("%d of 1000 APs are in a quarter of both", same)
	}
}

// walk runs a rollout through looks at its APs and returns the steps it took.
func walk(r *Rollout, looks []look) (steps []Step, last *Rollout) {
	for _, l := range looks {
		if l.measure != nil {
			l.measure.BegunUS = l.atUS + 1
		}
		next := Next(r, Look{Counts: l.counts, Measure: l.measure, NowUS: l.atUS + 1}) // 0 is never
		if next.Step != r.Step {
			steps = append(steps, next.Step)
		}
		r = next
	}
	return steps, r
}

type look struct {
	atUS    int64
	counts  Counts
	measure *Measure
}

func TestNext(t *testing.T) {
	half := &release.Plan{Share: 0.5, SoakS: 10, Limit: limit(0.2)}
	metric := &release.Plan{Share: 0.5, SoakS: 10, Metric: "brier_rise", Limit: limit(0.02),
		Guards: []release.Guard{{Metric: "brier_rise", Limit: 0.02}}}
	for name, c := range map[string]struct {
		plan  *release.Plan
		looks []look
		want  []Step
	}{
		"everyone at once completes when all connected have answered": {nil, []look{
			{1, Counts{APs: 4, Applied: 3, Pending: 1, InScope: 4}, nil}, {2, Counts{APs: 4, Applied: 3, InScope: 4},
				nil}}, []Step{Completed}},
		"nothing happens without APs": {nil, []look{{1, Counts{}, nil}, {1e9, Counts{}, nil}}, nil},
		"members, soak, everyone": {half, []look{
			{0, Counts{APs: 2, Pending: 2, InScope: 4}, nil}, {1e6, Counts{APs: 2, Applied: 1, Pending: 1, InScope: 4},
				nil},
			{10e6, Counts{APs: 2, Applied: 2, InScope: 4}, nil}, {11e6, Counts{APs: 2, Applied: 2, InScope: 4}, nil},
			{12e6, Counts{APs: 4, Applied: 2, Pending: 2, InScope: 4}, nil},
			{13e6, Counts{APs: 4, Applied: 4, InScope: 4}, nil}},
			[]Step{Soaking, Expanded, Completed}},
		"no expansion before anyone has applied it": {half, []look{{0, Counts{APs: 2, InScope: 4}, nil},
			{1e9, Counts{APs: 2, InScope: 4}, nil}}, nil},
		"a share of rejections beyond the limit": {half,
			[]look{{0, Counts{APs: 4, Applied: 2, Rejected: 2, InScope: 8}, nil}}, []Step{Aborted}},
		"one rejection within the limit": {half,
			[]look{{0, Counts{APs: 10, Applied: 9, Rejected: 1, InScope: 20}, nil}}, []Step{Soaking}},
		"the first answer of many is no evidence": {half,
			[]look{{0, Counts{APs: 100, Rejected: 1, Pending: 99, InScope: 200}, nil}}, nil},
		"a metric within its limit": {metric, []look{{0, Counts{APs: 1, Applied: 1, InScope: 2}, nil},
			{5e6, Counts{APs: 1, Applied: 1, InScope: 2}, value(0.01)},
			{10e6, Counts{APs: 1, Applied: 1, InScope: 2}, nil},
			{11e6, Counts{APs: 1, Applied: 1, InScope: 2}, value(0.01)}}, []Step{Soaking, Expanded}},
		"a good value of before decides nothing": {metric, []look{{0, Counts{APs: 1, Applied: 1, InScope: 2}, nil},
			{5e6, Counts{APs: 1, Applied: 1, InScope: 2}, value(0.01)},
			{10e6, Counts{APs: 1, Applied: 1, InScope: 2}, nil}, {1e9, Counts{APs: 1, Applied: 1, InScope: 2}, nil}},
			[]Step{Soaking}},
		"a metric beyond its limit": {metric, []look{{0, Counts{APs: 1, Applied: 1, InScope: 2}, nil},
			{5e6, Counts{APs: 1, Applied: 1, InScope: 2}, value(0.03)}},
			[]Step{Soaking, Aborted}},
		"a metric that cannot be read holds it": {metric, []look{{0, Counts{APs: 1, Applied: 1, InScope: 2}, nil},
			{20e6, Counts{APs: 1, Applied: 1, InScope: 2}, why("ClickHouse is down")}}, []Step{Soaking}},
		"a share without a soak stays": {&release.Plan{Share: 0.1}, []look{{0, Counts{APs: 1, Applied: 1, InScope: 9},
			nil}, {1e12, Counts{APs: 1, Applied: 1, InScope: 9}, nil}},
			[]Step{Soaking}},
		"everyone at a later time completes when somebody has it": {&release.Plan{Share: 1, ActivateInS: 5}, []look{
			{1, Counts{InScope: 4}, nil}, {2, Counts{APs: 4, InScope: 4}, nil},
			{3, Counts{APs: 4, Applied: 2, Pending: 2, InScope: 4}, nil}, {4, Counts{APs: 4, Applied: 4, InScope: 4},
				nil}}, []Step{Completed}},
		"what reached no AP is not completed": {&release.Plan{Share: 1, ActivateInS: 5},
			[]look{{1, Counts{InScope: 4}, nil}, {60e6, Counts{APs: 4, InScope: 4}, nil}}, nil},
		"everyone with a soak can still be aborted": {&release.Plan{Share: 1, SoakS: 10},
			[]look{{0, Counts{APs: 3, Applied: 3, InScope: 3}, nil},
				{5e6, Counts{APs: 3, Applied: 1, Rejected: 2, InScope: 3}, nil}}, []Step{Soaking, Aborted}},
	} {
		t.Run(name, func(t *testing.T) {
			steps, last := walk(New(released(release.Champion, 2, c.plan), nil, names(4), 0), c.looks)
			if fmt.Sprint(steps) != fmt.Sprint(c.want) {
				t.Errorf("steps %v, want %v; %+v", steps, c.want, last)
			}
		})
	}
}

func value(v float64) *Measure {
	return &Measure{Readings: map[string]Reading{"brier_rise": {Value: &v}}}
}

func why(text string) *Measure {
	return &Measure{Readings: map[string]Reading{"brier_rise": {Why: text}}}
}

func TestFallback(t *testing.T) {
	first := New(released(release.Champion, 1, nil), nil, nil, 1)
	staged := New(released(release.Champion, 2, &release.Plan{Share: 0.5, SoakS: 5}), first, names(4), 2)
	if staged.Fallback.Hash != first.Hash {
		t.Error("a staged champion falls back to the one before")
	}
	over := Supersede(staged, "", false, 3)
	third := New(released(release.Champion, 3, &release.Plan{Share: 0.5, SoakS: 5}), over, names(4), 4)
	if third.Fallback.Hash != first.Hash {
		t.Error("what never reached everyone is nothing to fall back to")
	}
	fourth := New(released(release.Champion, 4, nil), Abort(third, "", 5), nil, 6)
	if fourth.Fallback.Hash != first.Hash {
		t.Error("an aborted release is nothing to fall back to")
	}
	if r := New(released(release.Champion, 5, nil), Supersede(fourth, "", true, 7), nil, 8); r.Fallback != nil {
		t.Error("a withdrawn release is nothing to fall back to")
	}
	canary := New(released(release.Canary, 6, &release.Plan{Share: 0.1}), nil, names(40), 9)
	if r := New(released(release.Canary, 7, &release.Plan{Share: 0.1}), Supersede(canary, "", false, 10), names(40),
		11); r.Fallback == nil || r.Fallback.Threshold != canary.Threshold {
		t.Error("a canary falls back to the canary before, for that one's members")
	}
}

func TestExpansionHasItsOwnActivationTime(t *testing.T) {
	r := New(released(release.Champion, 1, &release.Plan{Share: 0.5, SoakS: 5, ActivateInS: 2}), nil, names(4), 1e6)
	if r.ActivateUS != 3e6 {
		t.Errorf("members use it at %d, 2 s after the release", r.ActivateUS)
	}
	if e := Expand(r, 50e6); e.ActivateUS != 52e6 || !e.All {
		t.Errorf("everyone uses it at %d, 2 s after the expansion", e.ActivateUS)
	}
}
