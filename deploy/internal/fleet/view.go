package fleet

import (
	"maps"
	"slices"
	"sort"
	"strings"

	"oal/deploy/internal/bundle"
)

// Wanted is what an AP should have of a policy.
type Wanted struct {
	Desired       string `json:"desired"`
	DesiredSerial int64  `json:"desired_serial"`
	Slot          string `json:"slot"`
	Scope         string `json:"scope"`
	Model         string `json:"model"`
	Version       uint32 `json:"version"`
}

// View is an AP with what it should have: of rwnd-fair, and in Policies of every other, by name.
type View struct {
	AP
	Wanted
	Policies []PolicyView `json:"policies,omitempty"` // in place of those of AP
	Killed   bool         `json:"killed"`             // the kill switch is on for all its policies
	// KilledPolicies are those that are off by themselves, beside what AP says that it has heard.
	KilledPolicies []string `json:"policies_to_be_off,omitempty"`
	Revoked        bool     `json:"revoked"` // it is kept out
}

// PolicyView is what an AP has, and should have, of a policy other than rwnd-fair.
type PolicyView struct {
	Policy string `json:"policy"`
	Held
	Wanted
}

// Has says whether the latest report about one of its policies was of this state.
func (v *View) Has(state string) bool { return v.AP.has(state) }

// Current says whether it has what it should have of every policy, and no other.
func (v *View) Current() bool {
	return v.Desired == v.Applied && !slices.ContainsFunc(v.Policies, func(p PolicyView) bool {
		return p.Desired != p.Applied
	})
}

// Rejecting says whether it rejected what it should have of a policy.
func (v *View) Rejecting() bool {
	rejects := func(h Held, w Wanted) bool { return h.State == Rejected && h.Reported == w.Desired }
	return rejects(v.Held, v.Wanted) || slices.ContainsFunc(v.Policies, func(p PolicyView) bool {
		return rejects(p.Held, p.Wanted)
	})
}

func (d desire) wanted() (w Wanted) {
	if rel := d.release; rel != nil {
		w.Desired, w.DesiredSerial, w.Slot, w.Scope = rel.Bundle.Hash, rel.Bundle.Serial, string(rel.Slot), rel.Scope
		w.Model, w.Version = rel.Bundle.Model, rel.Bundle.Version
	}
	return w
}

func (f *Fleet) view(a *ap) View {
	v := View{AP: a.AP, Wanted: a.desire(bundle.RwndFair).wanted(), Revoked: f.revoked[a.ID]}
	now := f.switched(&a.AP)
	v.Killed, v.KilledPolicies = now.Control == Off, strings.Fields(now.Killed)
	names := slices.Collect(maps.Keys(a.AP.Policies))
	for _, d := range a.desires {
		names = append(names, d.release.Policy())
	}
	slices.Sort(names)
	for _, policy := range slices.Compact(names) {
		if policy != bundle.RwndFair {
			v.Policies = append(v.Policies, PolicyView{policy, a.held(policy), a.desire(policy).wanted()})
		}
	}
	return v
}

// Get is one AP.
func (f *Fleet) Get(id string) (View, bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	a := f.aps[id]
	if a == nil {
		return View{}, false
	}
	return f.view(a), true
}

// List is a page of APs by id, those after the given one that match. match is called under the lock: no I/O in it.
func (f *Fleet) List(after string, limit int, match func(*View) bool) (page []View, more bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	ids := make([]string, 0, len(f.aps))
	for id := range f.aps {
		if id > after {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	for _, id := range ids {
		v := f.view(f.aps[id])
		if match != nil && !match(&v) {
			continue
		}
		if len(page) == limit {
			return page, true
		}
		page = append(page, v)
	}
	return page, false
}
