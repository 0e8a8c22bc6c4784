// Package fleet is every AP: what it has, what it should have, and the long poll that it waits in.
package fleet

import (
	"maps"
	"time"

	"oal/deploy/internal/bundle"
)

// MaxPolicies is settings.max_policies: bundles that an AP has side by side, one of each policy.
const MaxPolicies = 4

// MaxKilled is settings.max_killed_policies: names of policies that an AP keeps as off one by one. Where more apply,
// all control is off.
const MaxKilled = 8

// Held is what an AP has of one policy, and what it last said of it. Times are microseconds since 1970, 0 is never.
type Held struct {
	Applied       string `json:"applied"` // hash of the bundle in force
	AppliedSerial int64  `json:"applied_serial"`
	AppliedUS     int64  `json:"applied_us"`
	State         string `json:"state"`  // of the latest report: applied, rejected, restored, waiting
	Reason        string `json:"reason"` // of a rejection
	Reported      string `json:"reported"`
	ReportedUS    int64  `json:"reported_us"`
}

// AP is what is known of an access point. It is stored; times are microseconds since 1970, 0 is never.
type AP struct {
	ID     string `json:"ap_id"`
	Site   string `json:"site"`
	Agent  string `json:"agent"`   // version of its exporter
	BootID string `json:"boot_id"` // of its latest report
	Held          // of policy rwnd-fair
	// Policies is what it has of every other policy. The map is replaced, never changed: copies of an AP share it.
	Policies map[string]Held `json:"policies,omitempty"`
	// Several says that it can hold several policies; an older exporter takes bundles of rwnd-fair alone.
	Several    bool   `json:"several,omitempty"`
	LastSeenUS int64  `json:"last_seen_us"`
	Connected  bool   `json:"connected"`
	Replica    string `json:"replica"` // which serves it
	Switched          // what it says it has of the kill switch
	// CertificateUS is when the certificate ends with which it asked last; 0: not yet seen.
	CertificateUS int64 `json:"certificate_not_after_us"`
}

// can says whether it can have a policy.
func (a *AP) can(policy string) bool { return policy == bundle.RwndFair || a.Several }

// held is what it has of a policy.
func (a *AP) held(policy string) Held {
	if policy == bundle.RwndFair {
		return a.Held
	}
	return a.Policies[policy]
}

// hold replaces what it has of a policy; of one other than rwnd-fair an empty Held is forgotten. One policy more than
// an AP can have is not remembered. It returns whether something changed.
func (a *AP) hold(policy string, h Held) bool {
	if a.held(policy) == h {
		return false
	}
	if policy == bundle.RwndFair {
		a.Held = h
		return true
	}
	next := maps.Clone(a.Policies)
	if next == nil {
		next = map[string]Held{}
	}
	if _, known := next[policy]; !known && len(next) >= MaxPolicies {
		return false
	}
	next[policy] = h
	if h == (Held{}) {
		delete(next, policy)
	}
	a.Policies = next
	return true
}

// has says whether the latest report about one of its policies was of this state.
func (a *AP) has(state string) bool {
	if a.State == state {
		return true
	}
	for _, h := range a.Policies {
		if h.State == state {
			return true
		}
	}
	return false
}

// Status is an AP's report, checked.
type Status struct {
	Bundle string // hash
	Policy string // that the AP says the bundle is of; empty: it does not say
	Serial int64
	State  string
	Reason string
	BootID string
	Agent  string
}

// States that an AP reports, by settings.bundle_states.
const (
	Applied  = "applied"
	Rejected = "rejected"
	Restored = "restored"
	Waiting  = "waiting"
)

// retryRejected is how long a bundle that an AP rejected is kept from it: the answer is the same until its keys or
// memory change.
const retryRejected = 5 * time.Minute

// saveSeenAfterUS, in microseconds: a poll this soon after the one before is not stored for its time alone, so that an
// AP that comes back every second is not a write each time.
const saveSeenAfterUS = 60e6

// activationGraceUS, in microseconds: an AP that said that it keeps a bundle for later is sent it again only this long
// after that time, as its clock may be behind.
const activationGraceUS = 60e6

// connectedFor is how long an AP counts as connected after its last request: between two polls, and while it applies a
// bundle.
const connectedFor = 20 * time.Second

// ap is an AP with what only this process knows of it. The fleet's lock guards it.
type ap struct {
	AP
	poll *Poll
	// desires are computed when something changed, for the counts and the admin pages: one of each policy of which
	// there is something for it, rwnd-fair first, then by name
	desires []desire
	pushed  string // hash of a release that came while it waited: its answer is a latency
	dirty   bool   // not yet stored
}

// desire is what the AP should have of a policy; nothing is the zero value.
func (a *ap) desire(policy string) desire {
	for _, d := range a.desires {
		if d.release.Policy() == policy {
			return d
		}
	}
	return desire{}
}
