// Package rollout says who gets a release, and when it goes on, ends or is taken back. It is pure: no clock, no I/O.
package rollout

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"sort"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/release"
)

// Step is a phase of a rollout, and the name of the step that led there.
type Step string

const (
	Started    Step = "started"    // its members have it as their desired state
	Held       Step = "held"       // nobody has it: it waits for an approval
	Soaking    Step = "soaking"    // the first AP applied it
	Expanded   Step = "expanded"   // every AP in its scope has it as its desired state
	Completed  Step = "completed"  // every AP that is connected has answered
	Aborted    Step = "aborted"    // its members are given back what the slot had before
	Superseded Step = "superseded" // another release took its slot, or it was withdrawn
	Stalled    Step = "stalled"    // it did not get on within its deadline, and goes no further by itself

	// Widened and Approved are no phases: they name what happened to a rollout that soaks, or waits.
	Widened  Step = "widened"
	Approved Step = "approved"
)

// Rollout is one release on its way. It is stored at every step.
type Rollout struct {
	ID        string       `json:"id"`
	Slot      release.Slot `json:"slot"`
	Scope     string       `json:"scope"`
	Policy    string       `json:"policy,omitempty"` // empty: rwnd-fair
	Hash      string       `json:"hash"`
	Serial    int64        `json:"serial"`
	Model     string       `json:"model"`
	Version   uint32       `json:"version"`
	CreatedUS int64        `json:"created_us"`

	Share       float64         `json:"share"`            // of the present step of its plan, as SoakS
	Threshold   uint64          `json:"threshold,string"` // an AP whose position is at most this is a member
	SoakS       float64         `json:"soak_s"`
	ActivateInS float64         `json:"activate_in_s"`
	Metric      string          `json:"metric"` // that its release names, or that aborted it
	Limit       *float64        `json:"limit"`
	Plan        []release.Step  `json:"plan,omitempty"`
	At          int             `json:"at"` // the present step of the plan, from 0
	DeadlineS   float64         `json:"deadline_s"`
	Guards      []release.Guard `json:"guards,omitempty"`

	Mode       string    `json:"mode"`                  // of its control policy; empty: not known
	Models     string    `json:"models"`                // hash of what decides
	PromotedBy string    `json:"promoted_by,omitempty"` // empty: not known
	Approval   *Approval `json:"approval,omitempty"`    // nil: none

	Step       Step   `json:"step"`
	All        bool   `json:"all"` // everyone in scope, not only members
	StartedUS  int64  `json:"started_us"`
	AppliedUS  int64  `json:"applied_us"`    // the first AP applied it; 0 = none yet
	StepUS     int64  `json:"step_us"`       // latest step
	PlanUS     int64  `json:"plan_us"`       // the present step of the plan began
	ProgressUS int64  `json:"progress_us"`   // its deadline runs from here
	Was        Step   `json:"was,omitempty"` // what it was before it stalled
	ActivateUS int64  `json:"activate_us"`   // APs use it from then on; 0 = at once
	Detail     string `json:"detail"`

	APs      int      `json:"aps"`
	StepAPs  int      `json:"step_aps"` // known APs that the present step is of; 0 = none is known
	Applied  int      `json:"applied"`
	Rejected int      `json:"rejected"`
	Onsets   int      `json:"onsets"` // congestion onsets seen in the present step, at APs that have it
	Value    *float64 `json:"value"`  // of the metric; nil = not measured

	Fallback  *Fallback `json:"fallback"`
	Withdrawn bool      `json:"withdrawn,omitempty"` // superseded by nothing
	Spoiled   bool      `json:"spoiled,omitempty"`   // it was aborted, whatever came after
	// grows with every change; the store refuses one that is not the next
	Revision int64 `json:"revision"`
}

// Fallback is what the slot had before.
type Fallback struct {
	ID        string `json:"id"`
	Hash      string `json:"hash"`
	Threshold uint64 `json:"threshold,string"`
	All       bool   `json:"all"`
}

// Key is that of the slot, scope and policy which it is for.
func (r *Rollout) Key() string { return release.Key(r.Slot, r.Scope, r.Policy) }

// Active says whether the rollout still waits for something.
func (r *Rollout) Active() bool { return r.Live() && r.Step != Completed }

// Live says whether it is still what its slot holds.
func (r *Rollout) Live() bool { return r.Step != Aborted && r.Step != Superseded }

// Waits says that nobody has it before somebody approves it.
func (r *Rollout) Waits() bool { return r.phase() == Held }

// Off says that APs are not given it.
func (r *Rollout) Off() bool { return r.Step == Aborted || r.phase() == Held }

// phase is what it is, or was when it stalled.
func (r *Rollout) phase() Step {
	if r.Step == Stalled {
		return r.Was
	}
	return r.Step
}

// Position is where an AP stands among those of a rollout: a stable, evenly spread number.
func Position(id, ap string) uint64 {
	sum := sha256.Sum256([]byte(id + "\x00" + ap))
	return binary.BigEndian.Uint64(sum[:8])
}

// Threshold is the position up to which a share of these APs are members: at least one of them.
// With no AP known it is the share of all positions there are.
func Threshold(id string, share float64, aps []string) uint64 {
	if share >= 1 {
		return math.MaxUint64
	}
	if len(aps) == 0 {
		return uint64(share * math.MaxUint64)
	}
	positions := make([]uint64, len(aps))
	for i, ap := range aps {
		positions[i] = Position(id, ap)
	}
	sort.Slice(positions, func(i, j int) bool { return positions[i] < positions[j] })
	return positions[members(share, len(aps))-1]
}

// New begins the rollout of a release. before is the rollout that the slot had, if any; aps are the known APs in scope.
func New(rel *release.Release, before *Rollout, aps []string, nowUS int64) *Rollout {
	r := &Rollout{ID: rel.ID(), Slot: rel.Slot, Scope: rel.Scope, Hash: rel.Bundle.Hash, Serial: rel.Bundle.Serial,
		Model: rel.Bundle.Model, Version: rel.Bundle.Version, CreatedUS: rel.CreatedUS,
		Share: 1, Threshold: math.MaxUint64, All: true, Step: Started, StartedUS: nowUS, StepUS: nowUS,
		PlanUS: nowUS, ProgressUS: nowUS, DeadlineS: release.DefaultDeadlineS, Detail: rel.Reason,
		Mode: rel.Bundle.Mode.String(), Models: rel.Bundle.Models, PromotedBy: rel.PromotedBy}
	if p := rel.Plan; p != nil {
		r.Share, r.SoakS, r.ActivateInS, r.Metric, r.Limit = p.Share, p.SoakS, p.ActivateInS, p.Metric, p.Limit
		r.Plan, r.Guards, r.DeadlineS = p.Steps, p.Guards, p.DeadlineS
		r.Threshold, r.All = Threshold(r.ID, p.Share, aps), p.Share >= 1
		if p.ActivateInS > 0 {
			r.ActivateUS = rel.CreatedUS + seconds(p.ActivateInS)
		}
	}
	if policy := rel.Policy(); policy != bundle.RwndFair {
		r.Policy = policy
	}
	r.Fallback = fallback(before)
	return r
}

// fallback is the earlier rollout itself if all of its APs have it, or else what it would have fallen back to.
func fallback(before *Rollout) *Fallback {
	if before == nil || before.Withdrawn {
		return nil
	}
	// A superseded rollout is one that a release replaced; whether it had got through is what All says.
	never := !before.All && before.Threshold == 0 // it waited for an approval to its end
	settled := before.Step != Aborted && !never && (before.All || before.Slot != release.Champion)
	if settled {
		return &Fallback{ID: before.ID, Hash: before.Hash, Threshold: before.Threshold, All: before.All}
	}
	return before.Fallback
}

func seconds(s float64) int64 { return int64(s * 1e6) }
