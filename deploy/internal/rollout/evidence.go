package rollout

import (
	"fmt"
	"math"

	"oal/deploy/internal/release"
)

// Measure is a reading of what ClickHouse knows of a rollout.
type Measure struct {
	BegunUS   int64              // when it was asked for
	Readings  map[string]Reading // of its guards, by metric
	Onsets    int                // congestion onsets in the present step, at APs that have it
	OnsetsWhy string             // they could not be read; empty: they were
}

// Reading of a metric.
type Reading struct {
	Value *float64 // nil: there is none
	Why   string   // there is none
}

// Watched are the guards that count: what users get cannot suffer from a bundle that does not act on their traffic.
func (r *Rollout) Watched() (list []release.Guard) {
	for _, guard := range r.Guards {
		if release.RolloutMetrics[guard.Metric].Of != release.Users || modeOf(r.Mode) == modeOf("enforce") {
			list = append(list, guard)
		}
	}
	return list
}

// Measured says whether there is something to read.
func (r *Rollout) Measured() bool {
	return r.phase() == Soaking && (len(r.Watched()) > 0 || r.present().MinOnsets > 0)
}

// DefaultMinAPs is how many APs evidence takes where the release does not say: of one alone it is little.
const DefaultMinAPs = 3

// MinAPs is how many APs of the bundle evidence takes: as many as its step says; else three, or all of a step that has
// fewer. While nobody knows how many those are, it is three.
func (r *Rollout) MinAPs() int {
	if least := r.present().MinAPs; least > 0 {
		return least
	}
	if r.StepAPs > 0 {
		return min(DefaultMinAPs, r.StepAPs)
	}
	return DefaultMinAPs
}

// members is how many of these many APs a share is: at least one. 0: no AP is known.
func members(share float64, aps int) int {
	return min(aps, max(1, int(math.Round(share*float64(aps)))))
}

// fewer says why evidence of fewer APs than usual is taken, or nothing.
func (r *Rollout) fewer() string {
	if r.present().MinAPs > 0 || r.StepAPs == 0 || r.StepAPs >= DefaultMinAPs {
		return ""
	}
	return fmt.Sprintf(" (its step has no more than %d of those that are known)", r.StepAPs)
}

// MinOnsets is how many onsets the present step takes.
func (r *Rollout) MinOnsets() int { return r.present().MinOnsets }

// SinceUS is when the evidence for the present step of the plan begins: everyone in it may have the bundle, and the
// first uses it.
func (r *Rollout) SinceUS() int64 { return max(r.StartedUS, r.AppliedUS, r.PlanUS, r.ActivateUS) }

// fresh is the look's reading if it is of the present step and not old, or nil.
func (r *Rollout) fresh(l *Look) *Measure {
	m := l.Measure
	if m == nil || r.AppliedUS == 0 || m.BegunUS < r.SinceUS() || l.NowUS-m.BegunUS > FreshUS {
		return nil
	}
	return m
}

// note keeps for people what was read.
func (r *Rollout) note(m *Measure) {
	if m == nil {
		return
	}
	if m.OnsetsWhy == "" {
		r.Onsets = m.Onsets
	}
	if reading, is := m.Readings[r.Metric]; is {
		r.Value = reading.Value
	}
}

// beyondLimit is the first guard that aborts it, or nil.
func (r *Rollout) beyondLimit(m *Measure) *release.Guard {
	if m == nil || r.phase() != Soaking {
		return nil
	}
	for _, guard := range r.Watched() {
		if value := m.Readings[guard.Metric].Value; value != nil && *value > guard.Limit {
			return &guard
		}
	}
	return nil
}

// waits is what a rollout that has soaked lacks for its next step; nothing: it may go on.
func (r *Rollout) waits(l *Look, m *Measure) (lacks []string) {
	step := r.present()
	if least := r.MinAPs(); l.Applied < least {
		lacks = append(lacks, fmt.Sprintf("%d of %d APs applied%s", l.Applied, least, r.fewer()))
	}
	watched := r.Watched()
	switch {
	case m == nil && (len(watched) > 0 || step.MinOnsets > 0):
		lacks = append(lacks, "waiting for a reading of "+readingsOf(watched, step.MinOnsets > 0))
	case m != nil && step.MinOnsets > 0 && m.OnsetsWhy != "":
		lacks = append(lacks, "onsets cannot be read: "+m.OnsetsWhy)
	case m != nil && m.Onsets < step.MinOnsets:
		lacks = append(lacks, fmt.Sprintf("%d of %d onsets", m.Onsets, step.MinOnsets))
	}
	if m != nil {
		for _, guard := range watched {
			reading, asked := m.Readings[guard.Metric]
			if !asked {
				reading.Why = "it was not asked for"
			}
			if reading.Value == nil {
				lacks = append(lacks, guard.Metric+" cannot be read: "+reading.Why)
			}
		}
	}
	if next := r.following(); !l.Gate.allows(r, next.Share) {
		lacks = append(lacks, r.unapproved())
	}
	return lacks
}

func readingsOf(guards []release.Guard, onsets bool) (text string) {
	for _, guard := range guards {
		text += ", " + guard.Metric
	}
	if onsets {
		text += ", onsets"
	}
	return text[len(", "):]
}
