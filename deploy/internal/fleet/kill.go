package fleet

import (
	"fmt"
	"slices"
	"strings"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/release"
)

// Target is what a kill turns off: every policy in a scope, or one.
type Target struct {
	Scope  string `json:"scope"`            // fleet, site/SITE or ap/AP_ID
	Policy string `json:"policy,omitempty"` // a policy's name; empty: all of them
}

// String is the target as people read it, and its key in the store.
func (t Target) String() string {
	if t.Policy == "" {
		return t.Scope
	}
	return t.Scope + ", policy " + t.Policy
}

// Check says what is wrong with a target.
func (t Target) Check() error {
	if release.ScopeKind(t.Scope) == "" {
		return fmt.Errorf("`%.80s` is no scope: fleet, site/SITE or ap/AP_ID", t.Scope)
	}
	if t.Policy != "" && !bundle.PolicyName.MatchString(t.Policy) {
		return fmt.Errorf("`%.80s` is no name of a policy: a folder of policies/, such as %s", t.Policy,
			bundle.RwndFair)
	}
	return nil
}

// Kill says that no AP in a scope may act by a policy, or by any, whatever its bundle says.
type Kill struct {
	Target
	Who     string `json:"who"`      // turned it off
	Note    string `json:"note"`     // for whom, if they said
	Reason  string `json:"reason"`   // why
	SinceUS int64  `json:"since_us"` // of the first of several without an unkill between them
}

// Control is what the kill switch says to an AP, as the header OAL-Control has it.
type Control string

const (
	On  Control = "on"  // it may do what its bundles and its own configuration allow
	Off Control = "off" // nothing is to be done by any policy
)

// Switched is what the kill switch says to an AP, or what the AP says it has of it.
type Switched struct {
	Control Control `json:"control"` // empty: an exporter that does not say
	// Killed are the policies that are off by themselves, sorted, with a space between them: the header OAL-Killed.
	Killed string `json:"killed_policies,omitempty"`
	// ByPolicy says that the exporter knows OAL-Killed. One that does not has all control off where one policy is.
	ByPolicy bool `json:"by_policy,omitempty"`
}

// off says whether a target's policy, or all of them, is off.
func (s Switched) off(policy string) bool {
	return s.Control == Off || policy != "" && slices.Contains(strings.Fields(s.Killed), policy)
}

// Any says whether something is off.
func (s Switched) Any() bool { return s.Control == Off || s.Killed != "" }

// Knows says whether there is an AP in a scope. The fleet is always there.
func (f *Fleet) Knows(scope string) bool {
	if scope == "fleet" {
		return true
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, a := range f.aps {
		if inScope(&a.AP, scope) {
			return true
		}
	}
	return false
}

// KnownPolicies are those of which something is offered or an AP has something, by name, and rwnd-fair.
func (f *Fleet) KnownPolicies() []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	names := slices.Clone(f.policies)
	for _, a := range f.aps {
		for policy := range a.Policies {
			names = append(names, policy)
		}
	}
	for _, rel := range f.known {
		names = append(names, rel.Policy())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// SetKills replaces what is switched off. Every waiting AP to which that is news is woken.
func (f *Fleet) SetKills(kills []Kill) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.kills = make(map[string][]string, len(kills))
	for _, k := range kills {
		f.kills[k.Scope] = append(f.kills[k.Scope], k.Policy)
	}
	for _, a := range f.aps {
		if a.poll != nil && f.switched(&a.AP) != a.poll.switched {
			a.poll.wakeUp()
		}
	}
}

// switched is the state of the kill switch for an AP. The caller holds the lock.
func (f *Fleet) switched(a *AP) Switched {
	s := Switched{Control: On, ByPolicy: a.ByPolicy}
	killed := slices.Concat(f.kills["fleet"], f.kills["ap/"+a.ID])
	if a.Site != "" {
		killed = append(killed, f.kills["site/"+a.Site]...)
	}
	slices.Sort(killed)
	killed = slices.Compact(killed)
	if all := slices.Contains(killed, ""); all {
		s.Control, killed = Off, killed[1:]
	}
	if len(killed) > 0 && (!a.ByPolicy || len(killed) > MaxKilled) {
		s.Control = Off
		return s
	}
	s.Killed = strings.Join(killed, " ")
	return s
}

// Switched is the state of the kill switch for the AP, and whether that is news to it.
func (f *Fleet) Switched(p *Poll) (now Switched, news bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	now = f.switched(&p.a.AP)
	return now, now != p.switched
}

// CountKilled counts the APs to which the kill switch applies, and how many of them are connected and have not said
// that they heard.
func (f *Fleet) CountKilled() (killed, unheard int) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, a := range f.aps {
		now := f.switched(&a.AP)
		if !now.Any() {
			continue
		}
		killed++
		if a.Connected && a.Switched != now {
			unheard++
		}
	}
	return killed, unheard
}

// KillCounts are the APs of a scope: those there are, those connected, and those that said they have the target off.
type KillCounts struct {
	APs       int `json:"aps"`
	Connected int `json:"connected"`
	Heard     int `json:"heard"` // of the connected
}

// CountKill counts the APs of a target's scope.
func (f *Fleet) CountKill(t Target) (c KillCounts) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, a := range f.aps {
		if !inScope(&a.AP, t.Scope) {
			continue
		}
		c.APs++
		if a.Connected {
			c.Connected++
			if a.off(t.Policy) {
				c.Heard++
			}
		}
	}
	return c
}
