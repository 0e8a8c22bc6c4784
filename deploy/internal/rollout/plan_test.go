package rollout

import (
	"fmt"
	"strings"
	"testing"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/release"
)

const second = int64(1e6)

func evidence(share float64) release.Step {
	return release.Step{Share: share, SoakS: 100, MinAPs: 10, MinOnsets: 30}
}

// canary goes to everyone in three steps; one metric of the model's, one of the users'.
func canary(mode bundle.Mode) *Rollout {
	rel := released(release.Canary, 2, &release.Plan{Share: 0.1, SoakS: 100, DeadlineS: 1000,
		Steps:  []release.Step{evidence(0.1), evidence(0.5), {Share: 1}},
		Guards: []release.Guard{{Metric: "brier_rise", Limit: 0.05}, {Metric: "rtt_rise", Limit: 0.3}}})
	rel.Bundle.Mode, rel.Bundle.Models = mode, "models"
	return New(rel, nil, names(100), second)
}

// eyes look at a rollout with what they see of it.
type eyes struct {
	r *Rollout
	Look
}

func (e *eyes) at(seconds int64) *Rollout {
	e.NowUS = seconds * second
	e.r = Next(e.r, e.Look)
	return e.r
}

func (e *eyes) read(atS int64, onsets int, brier, rtt float64) {
	e.Measure = &Measure{BegunUS: atS * second, Onsets: onsets,
		Readings: map[string]Reading{"brier_rise": {Value: &brier}, "rtt_rise": {Value: &rtt}}}
}

func watch(r *Rollout) *eyes {
	return &eyes{r, Look{Counts: Counts{APs: 10, Applied: 3, InScope: 100},
		IDs: func() []string { return names(100) }}}
}

func (e *eyes) expect(t *testing.T, step Step, share float64, detail string) {
	t.Helper()
	if e.r.Step != step || e.r.Share != share || !strings.Contains(e.r.Detail, detail) {
		t.Errorf("it is %s with a share of %g: %s; want %s, %g: %s", e.r.Step, e.r.Share, e.r.Detail, step, share,
			detail)
	}
}

// A step lasts until its time has passed, its APs applied it, its onsets were seen, and a reading of the step is good.
func TestACanaryTakesEachStepWithEvidence(t *testing.T) {
	e := watch(canary(bundle.Enforce))
	e.at(10)
	e.expect(t, Soaking, 0.1, "for 100 s")
	e.read(100, 40, 0.01, 0.1)
	e.Applied = 10
	e.at(109)
	e.expect(t, Soaking, 0.1, "for 100 s")
	e.Applied = 3
	e.read(110, 4, 0.01, 0.1)
	e.at(110)
	e.expect(t, Soaking, 0.1, "soaked; 3 of 10 APs applied; 4 of 30 onsets")
	e.Applied = 10
	e.read(120, 30, 0.01, 0.1)
	e.Measure.Readings["rtt_rise"] = Reading{Why: "too little"}
	e.at(120)
	e.expect(t, Soaking, 0.1, "soaked; rtt_rise cannot be read: too little")
	e.read(125, 30, 0.01, 0.1)
	e.Measure.OnsetsWhy = "ClickHouse is away"
	e.at(125)
	e.expect(t, Soaking, 0.1, "soaked; onsets cannot be read: ClickHouse is away")
	e.read(130, 30, 0.01, 0.1)
	before := e.r.Threshold
	e.at(130)
	e.expect(t, Soaking, 0.5, "step 2 of 3")
	if e.r.Threshold <= before || e.r.All || e.r.At != 1 {
		t.Errorf("%+v", e.r)
	}
	e.at(231) // the reading is of the step before
	e.expect(t, Soaking, 0.5, "soaked; waiting for a reading of brier_rise, rtt_rise, onsets")
	e.read(231-61, 30, 0.01, 0.1)
	e.at(231)
	e.expect(t, Soaking, 0.5, "waiting for a reading") // one that is a minute old
	e.read(231, 30, 0.01, 0.1)
	e.at(231)
	e.expect(t, Expanded, 0.5, "")
	if !e.r.All {
		t.Error("not everyone")
	}
}

func TestUsersHarmAborts(t *testing.T) {
	for mode, want := range map[bundle.Mode]Step{bundle.Enforce: Aborted, bundle.Shadow: Soaking} {
		e := watch(canary(mode))
		e.at(10)
		e.read(20, 0, 0.01, 0.31)
		if e.at(20); e.r.Step != want {
			t.Errorf("in mode %s it is %s: %s", mode, e.r.Step, e.r.Detail)
		}
		if want == Aborted && (e.r.Metric != "rtt_rise" || *e.r.Value != 0.31 || *e.r.Limit != 0.3) {
			t.Errorf("its row says %s %g", e.r.Metric, *e.r.Value)
		}
	}
}

// Another leader has the stored state and no reading of its own: a good value that was stored does not let it go on.
func TestAfterAFailoverAStoredValueDecidesNothing(t *testing.T) {
	e := watch(canary(bundle.Enforce))
	e.Applied = 10
	e.at(10)
	e.read(109, 40, 0.01, 0.1)
	e.at(109)
	stored := *e.r
	stored.Value = new(float64)
	next := watch(&stored)
	next.Applied = 10
	next.at(200)
	next.expect(t, Soaking, 0.1, "soaked; waiting for a reading of")
	next.Measure = &Measure{BegunUS: 200 * second, Readings: map[string]Reading{}, Onsets: 40}
	next.at(200)
	next.expect(t, Soaking, 0.1, "brier_rise cannot be read: it was not asked for")
}

func TestAStalledRolloutGoesNoFurther(t *testing.T) {
	e := watch(canary(bundle.Enforce))
	e.at(10)
	e.read(1100, 4, 0.01, 0.1)
	e.at(1100)
	e.expect(t, Soaking, 0.1, "soaked; 3 of 10")
	e.at(1101)
	e.expect(t, Stalled, 0.1, "no progress in 1100 s: soaked; 3 of 10 APs applied; 4 of 30 onsets")
	e.Applied = 10
	e.read(1110, 40, 0.01, 0.1)
	e.at(1110)
	e.expect(t, Stalled, 0.1, "no progress")
	e.read(1120, 40, 0.06, 0.1)
	e.at(1120)
	e.expect(t, Aborted, 0.1, "brier_rise is 0.06")

	nobody := New(released(release.Champion, 1, nil), nil, nil, second)
	look := Look{Counts: Counts{APs: 4, Pending: 1, InScope: 4}, NowUS: 86401 * second}
	if r := Next(nobody, look); r.Step != Stalled || !strings.Contains(r.Detail, "0 of 4 APs applied it, 1 are conn") {
		t.Errorf("%+v", r)
	} else if look.Pending, look.Applied = 0, 4; Next(r, look).Step != Completed {
		t.Errorf("everyone has it, and it is %s", Next(r, look).Step)
	}
	if r := Next(nobody, Look{NowUS: 86401 * second}); r != nobody {
		t.Errorf("there is nobody to reach: %+v", r)
	}
}

// What was stored before plans had steps goes on as it would have; a metric that nobody knows holds it.
func TestRolloutsOfBefore(t *testing.T) {
	old := func(metric string) *eyes {
		r := &Rollout{Slot: release.Canary, Share: 0.1, SoakS: 10, Step: Soaking, StartedUS: second, StepUS: second,
			AppliedUS: second, Metric: metric, Limit: limit(0.1), Threshold: 5}
		return watch(r)
	}
	e := old("rejected_share")
	e.at(20)
	e.expect(t, Expanded, 0.1, "")
	e = old("rejected_ratio")
	e.at(20)
	e.expect(t, Soaking, 0.1, "soaked; waiting for a reading of rejected_ratio")
}

func TestEveryMetricCanBeRead(t *testing.T) {
	for name := range release.RolloutMetrics {
		if _, known := MetricQueries[name]; !known && name != RejectedShare {
			t.Errorf("nothing reads %s", name)
		}
	}
	for name := range MetricQueries {
		if _, known := release.RolloutMetrics[name]; !known {
			t.Errorf("%s is not in schema/rollout_metrics.yaml", name)
		}
	}
}

var gate = Gate{Required: true, Share: 0.1}

func TestMoreThanACanaryWaitsForAnApproval(t *testing.T) {
	r := New(released(release.Champion, 2, nil), nil, names(4), second)
	r.Admit(gate, nil)
	e := watch(r)
	e.Gate = gate
	e.at(10)
	e.expect(t, Held, 1, "it waits for an approval: `oal-deploy ctl approve "+r.ID)
	if !e.r.Off() || e.r.All || e.r.MayExpand(gate) || !e.r.Unapproved(gate) {
		t.Errorf("%+v", e.r)
	}
	if next := New(released(release.Champion, 3, nil), Supersede(e.r, "", false, 1), nil, 2); next.Fallback != nil {
		t.Errorf("what nobody ever had is something to fall back to: %+v", next.Fallback)
	}
	e.r = Approve(e.r, Approval{By: "ann", Reason: "looked at it", TSUS: 20 * second}, names(4))
	e.expect(t, Started, 1, "approved by ann: looked at it")
	if !e.r.All || e.r.Off() || !e.r.MayExpand(gate) {
		t.Errorf("%+v", e.r)
	}

	small := canary(bundle.Enforce)
	small.Admit(gate, nil)
	e = watch(small)
	e.Gate, e.Applied = gate, 10
	e.at(10)
	e.read(120, 40, 0.01, 0.1)
	e.at(120)
	e.expect(t, Soaking, 0.1, "soaked; it waits for an approval")
	e.at(1101)
	e.expect(t, Stalled, 0.1, "it waits for an approval")
	e.r = Approve(e.r, Approval{By: "ann", Reason: "good", TSUS: 1110 * second}, nil)
	e.read(1111, 40, 0.01, 0.1)
	e.at(1111)
	e.expect(t, Soaking, 0.5, "")
}

func TestRenewalsOfWhatWasApproved(t *testing.T) {
	of := func(mode bundle.Mode, plan *release.Plan) *Rollout {
		rel := released(release.Champion, 3, plan)
		rel.Bundle.Mode = mode
		return New(rel, nil, names(40), second)
	}
	staged := &release.Plan{Share: 0.05, SoakS: 5, Steps: []release.Step{{Share: 0.05, SoakS: 5}, {Share: 1}}}
	earlier := &Rollout{ID: "before", Mode: "enforce", Approval: &Approval{By: "ann"}}
	for _, c := range []struct {
		mode    bundle.Mode
		plan    *release.Plan
		earlier *Rollout
		step    Step
		all     bool
	}{
		{bundle.Enforce, nil, nil, Held, false},
		{bundle.Enforce, nil, earlier, Started, true},
		{bundle.Enforce, staged, earlier, Started, false},
		{bundle.Off, staged, earlier, Started, true}, // it takes power away
		{bundle.Off, staged, nil, Started, false},
	} {
		r := of(c.mode, c.plan)
		r.Admit(gate, c.earlier)
		if r.Step != c.step || r.All != c.all {
			t.Errorf("%s, %v: %s, all %t", c.mode, c.plan, r.Step, r.All)
		}
		if c.earlier != nil && (r.Approval.Of != "before" || r.Approval.By != "ann") {
			t.Errorf("%+v", r.Approval)
		}
	}
	for _, c := range []struct {
		mode, than string
		want       bool
	}{{"off", "off", true}, {"shadow", "enforce", true}, {"enforce", "shadow", false}, {"off", "", false},
		{"", "enforce", true}} {
		if NoGreater(c.mode, c.than) != c.want {
			t.Error(fmt.Sprint(c))
		}
	}
}

// Evidence takes three APs where the release does not say how many: or all of a step that has fewer, and never none.
func TestTheLeastNumberOfAPsIsThatOfTheStep(t *testing.T) {
	for _, c := range []struct {
		scope         string
		known, enough int
		says          string
	}{{"ap/a", 1, 1, "1 of its APs were enough (its step has no more than 1 "}, {"site/s", 2, 1, "no more than 1 "},
		{"site/s", 20, 2, "no more than 2 "}, {"fleet", 30, 3, ""}, {"fleet", 1000, 3, ""}, {"fleet", 0, 3, "never"}} {
		rel := released(release.Canary, 2, &release.Plan{Share: 0.1, SoakS: 100, DeadlineS: 1000,
			Steps: []release.Step{{Share: 0.1, SoakS: 100}, {Share: 1}}})
		rel.Scope = c.scope
		e := &eyes{New(rel, nil, names(c.known), second), Look{Counts: Counts{APs: c.known, Applied: 1,
			InScope: c.known}, IDs: func() []string { return names(c.known) }}}
		e.at(10)
		if e.Applied = c.enough - 1; e.Applied > 0 || c.known == 0 {
			e.at(120)
			e.expect(t, Soaking, 0.1, fmt.Sprintf("soaked; %d of %d APs applied", e.Applied, c.enough))
		}
		if c.known == 0 {
			continue // whoever may have it, nobody knows
		}
		e.Applied = c.enough
		e.at(121)
		e.expect(t, Expanded, 0.1, c.says)
		if c.says == "" && e.r.Detail != "" {
			t.Errorf("%s with %d known: %s", c.scope, c.known, e.r.Detail)
		}
		if e.r.At, e.r.Plan = 0, []release.Step{{MinAPs: 9}}; e.r.MinAPs() != 9 {
			t.Error("what the release says counts, however few there are")
		}
	}
}
