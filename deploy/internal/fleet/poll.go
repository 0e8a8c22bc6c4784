package fleet

import (
	"oal/deploy/internal/bundle"
	"oal/deploy/internal/release"
)

// Poll is one long poll of an AP.
type Poll struct {
	a        *ap
	ask      Ask
	switched Switched      // what it has of the kill switch; of an AP that does not say, what was so when it asked
	wake     chan struct{} // holds one signal: look again
	gone     chan struct{} // closed when the AP's newer poll takes its place
	first    string        // hash of what it was to be sent as it began: no release that came while it waited
}

// Wake is signalled when there may be something to tell.
func (p *Poll) Wake() <-chan struct{} { return p.wake }

// Gone is closed when another poll of the same AP began.
func (p *Poll) Gone() <-chan struct{} { return p.gone }

// Several says whether the exporter knows of several policies.
func (p *Poll) Several() bool { return p.ask.Others != nil }

func (p *Poll) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Ask is what an AP says when it polls.
type Ask struct {
	Site    string
	Agent   string // version of its exporter; empty: it does not say
	InForce string // hash of the bundle of rwnd-fair in force; empty: none
	// Others are the hashes of the bundles of other policies in force, by policy. nil: an exporter that knows of none
	// but rwnd-fair.
	Others map[string]string
	Switched
	// CertificateUS is when its certificate ends.
	CertificateUS int64
}

// inForce is the hash of the bundle in force of a policy; empty: none.
func (a *Ask) inForce(policy string) string {
	if policy == bundle.RwndFair {
		return a.InForce
	}
	return a.Others[policy]
}

// Begin registers an AP's poll. An earlier one of the same AP ends: an AP has one, and what was left of a broken
// connection must not hold a place.
func (f *Fleet) Begin(id string, ask Ask) *Poll {
	f.lock.Lock()
	defer f.lock.Unlock()
	a := f.get(id)
	if a.poll != nil {
		close(a.poll.gone)
	}
	p := &Poll{a: a, ask: ask, switched: ask.Switched, wake: make(chan struct{}, 1),
		gone: make(chan struct{})}
	a.poll = p
	a.dirty = a.dirty || !a.Connected || a.Site != ask.Site || a.Switched != ask.Switched ||
		a.CertificateUS != ask.CertificateUS || a.Replica != f.replica || f.us()-a.LastSeenUS > saveSeenAfterUS
	a.Site, a.Switched, a.LastSeenUS, a.Connected, a.Replica = ask.Site, ask.Switched, f.us(), true, f.replica
	a.CertificateUS = ask.CertificateUS
	if p.switched.Control == "" {
		p.switched = f.switched(&a.AP)
	}
	if ask.Agent != "" {
		a.Agent = ask.Agent
	}
	if several := ask.Others != nil; several != a.Several {
		a.Several, a.dirty = several, true
	}
	f.compare(a, bundle.RwndFair, ask.InForce)
	for policy := range ask.Others {
		f.compare(a, policy, ask.Others[policy])
	}
	for policy := range a.Policies {
		f.compare(a, policy, ask.Others[policy])
	}
	f.settle(a)
	for policy, h := range a.Policies { // of what it neither has nor should have nothing is kept
		if h.Applied == "" && a.desire(policy).release == nil {
			a.dirty = a.hold(policy, Held{}) || a.dirty
		}
	}
	if d, send := f.due(a, p); send {
		p.first = d.hash()
	}
	return p
}

// compare takes what an AP says it has of a policy. Its report may have been lost with a replica; the tag says the
// same, unless it is of a bundle that waits or was rejected.
func (f *Fleet) compare(a *ap, policy, inForce string) {
	h := a.held(policy)
	if inForce != "" && inForce != h.Applied &&
		!(h.Reported == inForce && (h.State == Waiting || h.State == Rejected)) {
		h.Applied, h.AppliedUS, h.AppliedSerial = inForce, f.us(), 0
		if rel := f.find(a.ID, inForce); rel != nil {
			h.AppliedSerial = rel.Bundle.Serial
		}
	}
	if inForce == "" && h.Applied != "" {
		h.Applied, h.AppliedSerial = "", 0 // it lost its flash, or gave the policy up; it takes anything
	}
	a.dirty = a.hold(policy, h) || a.dirty
}

// End forgets a poll.
func (f *Fleet) End(p *Poll) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if p.a.poll == p {
		p.a.poll = nil
	}
	p.a.LastSeenUS = f.us()
}

// Desired is what the AP should have, and whether it is to be sent now: of several policies, the first of which it has
// something else. Nothing desired of any policy is nil.
func (f *Fleet) Desired(p *Poll) (rel *release.Release, activateUS int64, send bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if p.a.poll != p {
		return nil, 0, false
	}
	f.settle(p.a)
	d, send := f.due(p.a, p)
	if send && d.hash() != p.first {
		p.a.pushed = d.hash()
	}
	if !send && len(p.a.desires) > 0 {
		d = p.a.desires[0]
	}
	return d.release, d.activateUS, send
}

// Policies are those that the AP should have, and whether it has one that it should not have.
func (f *Fleet) Policies(p *Poll) (names []string, surplus bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, d := range p.a.desires {
		names = append(names, d.release.Policy())
	}
	return names, p.surplus()
}

// surplus says whether the AP has a policy that it should not have. One of rwnd-fair stays until it is replaced.
func (p *Poll) surplus() bool {
	for policy := range p.ask.Others {
		if p.a.desire(policy).release == nil {
			return true
		}
	}
	return false
}

// due is the first of an AP's desired bundles that is news to it. One that it rejected, or that waits for its
// activation time, is not.
func (f *Fleet) due(a *ap, p *Poll) (desire, bool) {
	for _, d := range a.desires {
		hash, policy := d.hash(), d.release.Policy()
		h := a.held(policy)
		switch {
		case hash == p.ask.inForce(policy):
			continue
		case h.Reported == hash && h.State == Rejected && f.us()-h.ReportedUS <= retryRejected.Microseconds():
			continue
		case h.Reported == hash && h.State == Waiting &&
			(d.activateUS == 0 || f.us() <= d.activateUS+activationGraceUS):
			continue
		}
		return d, true
	}
	return desire{}, false
}
