package release

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Plan is how a release is rolled out.
type Plan struct {
	ActivateInS float64  `json:"activate_in_s"` // APs use it this long after the step that gave it to them
	Metric      string   `json:"metric"`        // rollout metric; empty for the share of rejections alone
	Limit       *float64 `json:"limit"`         // above this it is aborted
	Share       float64  `json:"share"`         // of one step, where there are no Steps; as is SoakS
	SoakS       float64  `json:"soak_s"`
	Steps       []Step   `json:"steps"`
	DeadlineS   float64  `json:"deadline_s"` // that a step takes beyond its soak; then it is stalled
	Guards      []Guard  `json:"-"`          // what is read from ClickHouse: Metric, and those that every canary has
}

// Step of a plan: who has the release, and what must be seen of it before the next step.
type Step struct {
	Share     float64 `json:"share"`      // of the APs in scope, 0 to 1
	SoakS     float64 `json:"soak_s"`     // at least, from the first AP that applied it
	MinAPs    int     `json:"min_aps"`    // 0: as many as the push service thinks enough
	MinOnsets int     `json:"min_onsets"` // congestion onsets at APs that have it
}

// Guard is a metric that aborts a rollout above its limit, and holds it while it cannot be read.
type Guard struct {
	Metric string  `json:"metric"`
	Limit  float64 `json:"limit"`
}

// RolloutMetric is a line of schema/rollout_metrics.yaml.
type RolloutMetric struct {
	Of          Of       `json:"of"`
	Meaning     string   `json:"meaning"`
	CanaryLimit *float64 `json:"canary_limit"` // nil: canaries do not have it unless asked
}

// Of is what a metric compares.
type Of string

const (
	Answers Of = "answers" // of APs
	Model   Of = "model"   // its predictions
	Users   Of = "users"   // what users of the APs get
)

//go:embed rollout_metrics.json
var metricsFile []byte

// RolloutMetrics are all that a plan may name.
var RolloutMetrics = func() (m map[string]RolloutMetric) {
	if err := json.Unmarshal(metricsFile, &m); err != nil {
		panic(err) // it is generated, and embedded
	}
	return m
}()

const (
	// DefaultShare of a canary or challenger whose release names none.
	DefaultShare = 0.1
	// DefaultDeadlineS, in seconds: a day. A step that nothing came of in that time wants somebody to look.
	DefaultDeadlineS = 86400
	maxSteps         = 8
)

// RejectedShare is the metric that every rollout has: rejections among the answers of its APs.
const RejectedShare = "rejected_share"

// checkPlan is a release's plan with its defaults; nil: everyone at once. What it names and this service does not know
// refuses the release: a guard that nobody reads is none.
func checkPlan(slot Slot, p *Plan) (*Plan, error) {
	if p == nil {
		p = &Plan{}
	}
	plan := *p
	switch {
	case plan.Share < 0 || plan.Share > 1:
		return nil, refuse("rollout.share is %g, it must be from 0 to 1", plan.Share)
	case plan.SoakS < 0 || plan.ActivateInS < 0 || plan.DeadlineS < 0:
		return nil, refuse("rollout.soak_s, rollout.activate_in_s and rollout.deadline_s cannot be negative")
	case slot == Online:
		return nil, nil
	}
	if err := checkMetric(&plan); err != nil {
		return nil, err
	}
	if plan.Share == 0 {
		plan.Share = map[Slot]float64{Champion: 1, Canary: DefaultShare, Challenger: DefaultShare}[slot]
	}
	if plan.DeadlineS == 0 {
		plan.DeadlineS = DefaultDeadlineS
	}
	if err := checkSteps(&plan); err != nil {
		return nil, err
	}
	plan.Guards = guards(slot, &plan)
	if slot == Champion && len(plan.Steps) == 1 && plan.Steps[0].Share == 1 && plan.Steps[0].SoakS == 0 &&
		plan.ActivateInS == 0 {
		return nil, nil
	}
	return &plan, nil
}

func checkMetric(p *Plan) error {
	_, known := RolloutMetrics[p.Metric]
	switch {
	case p.Metric == "":
		return nil
	case !known:
		return refuse("rollout.metric `%.80s` is unknown; there are %s", p.Metric,
			strings.Join(slices.Sorted(maps.Keys(RolloutMetrics)), ", "))
	case p.Limit == nil:
		return refuse("rollout.metric is %s, and there is no rollout.limit to abort at", p.Metric)
	}
	return nil
}

// checkSteps gives a plan of share and soak its steps: that share, and everyone after the soak if there is one.
func checkSteps(p *Plan) error {
	if len(p.Steps) == 0 {
		p.Steps = []Step{{Share: p.Share, SoakS: p.SoakS, MinAPs: 1}}
		if p.SoakS > 0 && p.Share < 1 {
			p.Steps = append(p.Steps, Step{Share: 1})
		}
	}
	if len(p.Steps) > maxSteps {
		return refuse("rollout.steps are %d, there can be %d", len(p.Steps), maxSteps)
	}
	p.Steps = slices.Clone(p.Steps)
	before := 0.0
	for i := range p.Steps {
		s := &p.Steps[i]
		switch {
		case s.Share <= before || s.Share > 1:
			return refuse("rollout.steps: share %g comes after %g; each is greater than the one before, 1 at most",
				s.Share, before)
		case s.SoakS < 0 || s.MinAPs < 0 || s.MinOnsets < 0:
			return refuse("rollout.steps: soak_s, min_aps and min_onsets cannot be negative")
		case s.SoakS == 0 && i < len(p.Steps)-1:
			return refuse("rollout.steps: the step to %g has no soak_s, and another follows it", s.Share)
		}
		before = s.Share
	}
	p.Share, p.SoakS = p.Steps[0].Share, p.Steps[0].SoakS
	return nil
}

// guards are the metric that the release names, and for a canary those that each canary has.
func guards(slot Slot, p *Plan) (list []Guard) {
	if p.Metric != "" && p.Metric != RejectedShare {
		list = append(list, Guard{p.Metric, *p.Limit})
	}
	if slot != Canary {
		return list
	}
	for _, name := range slices.Sorted(maps.Keys(RolloutMetrics)) {
		if m := RolloutMetrics[name]; m.CanaryLimit != nil && name != p.Metric {
			list = append(list, Guard{name, *m.CanaryLimit})
		}
	}
	return list
}
