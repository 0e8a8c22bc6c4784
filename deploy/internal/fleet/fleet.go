package fleet

import (
	"maps"
	"slices"
	"sync"
	"time"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
)

// Fleet knows all APs and wakes those whose desired bundle changed.
type Fleet struct {
	replica string
	now     func() time.Time
	// an AP that was waiting applied a release this long after it was made
	onApplied func(slot release.Slot, since time.Duration)

	// lock guards all below, and every ap and Poll reached from it. It is never held over I/O.
	lock   sync.Mutex
	aps    map[string]*ap
	offers map[string]*rollout.Offer // champion, canary, challenger by KEY
	// policies are those of which something is offered, and rwnd-fair: that first, then by name
	policies []string
	online   map[string]*release.Release // by AP
	known    map[string]*release.Release // by hash: those offered or offered before
	kills    map[string][]string         // policies that are switched off by scope; an empty name is all of them
	// revoked are the APs that are kept out.
	revoked map[string]bool
}

// New is an empty fleet. onApplied is called without the lock.
func New(replica string, now func() time.Time, onApplied func(release.Slot, time.Duration)) *Fleet {
	return &Fleet{replica: replica, now: now, onApplied: onApplied, aps: map[string]*ap{},
		offers: map[string]*rollout.Offer{}, policies: []string{bundle.RwndFair},
		online: map[string]*release.Release{}, known: map[string]*release.Release{}}
}

func (f *Fleet) us() int64 { return f.now().UnixMicro() }

// SetOffers replaces what the slots hold. Every AP whose desired bundle changes by it is woken.
func (f *Fleet) SetOffers(offers []*rollout.Offer, known []*release.Release) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.offers = make(map[string]*rollout.Offer, len(offers))
	others := map[string]bool{}
	for _, offer := range offers {
		f.offers[offer.Key()] = offer
		others[offer.Release.Policy()] = true
	}
	delete(others, bundle.RwndFair)
	f.policies = append([]string{bundle.RwndFair}, slices.Sorted(maps.Keys(others))...)
	f.known = make(map[string]*release.Release, len(known))
	for _, rel := range known {
		f.known[rel.Bundle.Hash] = rel
	}
	for _, a := range f.aps {
		f.refresh(a)
	}
}

// SetOnline sets an AP's online tree; nil withdraws it.
func (f *Fleet) SetOnline(id string, rel *release.Release) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if rel == nil {
		delete(f.online, id)
	} else {
		f.online[id] = rel
	}
	if a := f.aps[id]; a != nil {
		f.refresh(a)
	}
}

// Known is the number of APs that ever asked.
func (f *Fleet) Known() int {
	f.lock.Lock()
	defer f.lock.Unlock()
	return len(f.aps)
}

// refresh computes what an AP should have and wakes its poll if that is news to it.
func (f *Fleet) refresh(a *ap) {
	f.settle(a)
	if a.poll == nil {
		return
	}
	if _, due := f.due(a, a.poll); due || a.poll.surplus() {
		a.poll.wakeUp()
	}
}

// settle computes what an AP should have.
func (f *Fleet) settle(a *ap) {
	a.desires = a.desires[:0]
	for _, policy := range f.policies {
		if !a.can(policy) {
			continue
		}
		if d := f.resolve(&a.AP, policy); d.release != nil {
			a.desires = append(a.desires, d)
		}
	}
}

// Report takes an AP's status.
func (f *Fleet) Report(id string, s Status) {
	f.lock.Lock()
	a, now := f.get(id), f.us()
	policy := f.reported(a, s)
	h := a.held(policy)
	first := h.Reported != s.Bundle || h.State != s.State
	h.Reported, h.State, h.Reason, h.ReportedUS = s.Bundle, s.State, s.Reason, now
	a.BootID, a.Agent = s.BootID, s.Agent
	a.LastSeenUS, a.Connected, a.Replica, a.dirty = now, true, f.replica, true
	var slot release.Slot
	var since time.Duration
	if s.State == Applied || s.State == Restored {
		h.Applied, h.AppliedSerial, h.AppliedUS = s.Bundle, s.Serial, now
		if rel := f.find(id, s.Bundle); rel != nil && first && s.State == Applied && a.pushed == s.Bundle {
			slot, since = rel.Slot, time.Duration(now-rel.CreatedUS)*time.Microsecond
		}
	}
	a.hold(policy, h)
	f.refresh(a)
	f.lock.Unlock()
	if slot != "" {
		f.onApplied(slot, since)
	}
}

// reported is the policy that a report is about: that of its bundle, of which the AP need not have said it.
func (f *Fleet) reported(a *ap, s Status) string {
	if rel := f.find(a.ID, s.Bundle); rel != nil {
		return rel.Policy()
	}
	if s.Policy != "" {
		return s.Policy
	}
	for policy, h := range a.Policies {
		if h.Applied == s.Bundle || h.Reported == s.Bundle {
			return policy
		}
	}
	return bundle.RwndFair
}

func (f *Fleet) get(id string) *ap {
	a := f.aps[id]
	if a == nil {
		a = &ap{AP: AP{ID: id}}
		f.aps[id] = a
	}
	return a
}

// find is a release by its bundle's hash, of those known to concern this AP.
func (f *Fleet) find(id, hash string) *release.Release {
	if rel := f.online[id]; rel != nil && rel.Bundle.Hash == hash {
		return rel
	}
	return f.known[hash]
}

// IDs of the known APs in a scope that can have a policy, for the members of a rollout.
func (f *Fleet) IDs(scope, policy string) []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	var ids []string
	for id, a := range f.aps {
		if inScope(&a.AP, scope) && a.can(policy) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Count the APs of a release in a scope.
func (f *Fleet) Count(hash, scope string) rollout.Counts {
	f.lock.Lock()
	defer f.lock.Unlock()
	var c rollout.Counts
	policy := bundle.RwndFair
	if rel := f.known[hash]; rel != nil {
		policy = rel.Policy()
	}
	for _, a := range f.aps {
		if !inScope(&a.AP, scope) || !a.can(policy) {
			continue
		}
		c.InScope++
		if a.desire(policy).hash() != hash {
			continue
		}
		c.APs++
		h := a.held(policy)
		switch {
		case h.State == Rejected && h.Reported == hash:
			c.Rejected++
		case h.Applied == hash:
			c.Applied++
		case a.Connected:
			c.Pending++
		}
	}
	return c
}

// Sweep marks APs that have gone, or whose replica has, as not connected. It returns how many are connected.
func (f *Fleet) Sweep(alive map[string]bool) (connected int) {
	f.lock.Lock()
	defer f.lock.Unlock()
	limit := f.now().Add(-connectedFor).UnixMicro()
	for _, a := range f.aps {
		switch {
		case !a.Connected || a.poll != nil:
		case a.Replica == f.replica && a.LastSeenUS < limit:
			a.Connected, a.dirty = false, true
		case a.Replica != f.replica && !alive[a.Replica]:
			a.Connected = false // here only: the store keeps what that replica saw
		}
		if a.Connected {
			connected++
		}
	}
	return connected
}

// Dirty are the APs that changed since the last call, to be stored.
func (f *Fleet) Dirty() []AP {
	f.lock.Lock()
	defer f.lock.Unlock()
	var changed []AP
	for _, a := range f.aps {
		if a.dirty {
			a.dirty = false
			changed = append(changed, a.AP)
		}
	}
	return changed
}

// Unstored takes back what could not be stored.
func (f *Fleet) Unstored(aps []AP) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for i := range aps {
		f.get(aps[i].ID).dirty = true
	}
}

// Merge takes APs from the store: all at the start, later those that other replicas serve.
func (f *Fleet) Merge(stored []AP) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for i := range stored {
		a := f.get(stored[i].ID)
		if a.poll != nil || a.dirty || stored[i].LastSeenUS < a.LastSeenUS {
			continue
		}
		a.AP = stored[i]
		if a.Replica == f.replica {
			a.Connected = false // its connection ended with the process that had it
		}
		f.settle(a)
	}
}
