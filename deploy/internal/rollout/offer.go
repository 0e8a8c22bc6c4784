package rollout

import "oal/deploy/internal/release"

// Offer is what a slot holds for the APs of its scope.
type Offer struct {
	Slot       release.Slot
	Scope      string
	Release    *release.Release
	Rollout    string // its name, from which positions are made
	Threshold  uint64
	All        bool
	Off        bool  // aborted, or not begun
	Held       bool  // it waits for an approval
	ActivateUS int64 // 0: at once
	Fallback   *Offer
}

// Key is that of the slot, the scope and the release's policy.
func (o *Offer) Key() string { return release.Key(o.Slot, o.Scope, o.Release.Policy()) }

// Pick is what this AP is offered: the release, what the slot had before, or nothing. waiting says that the release is
// still to come to this AP.
func (o *Offer) Pick(ap string) (rel *release.Release, activateUS int64, waiting bool) {
	if o == nil {
		return nil, 0, false
	}
	if !o.Off && (o.All || Position(o.Rollout, ap) <= o.Threshold) {
		return o.Release, o.ActivateUS, false
	}
	// Those outside a canary's share never had the canary before; those outside a champion's keep the earlier champion.
	if o.Off || o.Slot == release.Champion {
		rel, activateUS, _ = o.Fallback.Pick(ap)
	}
	return rel, activateUS, !o.Off
}
