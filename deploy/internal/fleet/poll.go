package fleet

import "oal/deploy/internal/release"

// Poll is one long poll of an AP.
type Poll struct {
	a       *ap
	inForce string        // what the AP says it has
	control Control       // likewise of the kill switch; of an AP that does not say, what was so when it asked
	wake    chan struct{} // holds one signal: look again
	gone    chan struct{} // closed when the AP's newer poll takes its place
}

// Wake is signalled when there may be something to tell.
func (p *Poll) Wake() <-chan struct{} { return p.wake }

// Gone is closed when another poll of the same AP began.
func (p *Poll) Gone() <-chan struct{} { return p.gone }

func (p *Poll) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Ask is what an AP says when it polls.
type Ask struct {
	Site    string
	Agent   string  // version of its exporter; empty: it does not say
	InForce string  // hash of the bundle in force; empty: none
	Control Control // what it has of the kill switch; empty: it does not say
	// CertificateUS is when its certificate ends.
	CertificateUS int64
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
	p := &Poll{a: a, inForce: ask.InForce, control: ask.Control, wake: make(chan struct{}, 1),
		gone: make(chan struct{})}
	a.poll = p
	a.dirty = a.dirty || !a.Connected || a.Site != ask.Site || a.Control != ask.Control ||
		a.CertificateUS != ask.CertificateUS || a.Replica != f.replica || f.us()-a.LastSeenUS > saveSeenAfterUS
	a.Site, a.Control, a.LastSeenUS, a.Connected, a.Replica = ask.Site, ask.Control, f.us(), true, f.replica
	a.CertificateUS = ask.CertificateUS
	if p.control == "" {
		p.control = f.control(&a.AP)
	}
	if ask.Agent != "" {
		a.Agent = ask.Agent
	}
	inForce := ask.InForce
	// Its report may have been lost with a replica; the tag says the same, unless it is of a bundle that waits or was
	// rejected.
	if inForce != "" && inForce != a.Applied &&
		!(a.Reported == inForce && (a.State == Waiting || a.State == Rejected)) {
		a.Applied, a.AppliedUS, a.AppliedSerial, a.dirty = inForce, f.us(), 0, true
		if rel := f.find(id, inForce); rel != nil {
			a.AppliedSerial = rel.Bundle.Serial
		}
	}
	if inForce == "" && a.Applied != "" {
		a.Applied, a.AppliedSerial, a.dirty = "", 0, true // it lost its flash; it takes anything
	}
	a.desire = f.resolve(&a.AP, a.Applied)
	return p
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

// Desired is what the AP should have, and whether it is to be sent now. Nothing desired is nil.
func (f *Fleet) Desired(p *Poll, waited bool) (rel *release.Release, activateUS int64, send bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if p.a.poll != p {
		return nil, 0, false
	}
	p.a.desire = f.resolve(&p.a.AP, p.a.Applied)
	d := p.a.desire
	send = f.due(p.a, p)
	if send && waited {
		p.a.pushed = d.hash()
	}
	return d.release, d.activateUS, send
}

// due says whether the AP's desired bundle is news to it. One that it rejected, or that waits for its activation time,
// is not.
func (f *Fleet) due(a *ap, p *Poll) bool {
	hash := a.desire.hash()
	if hash == "" || hash == p.inForce {
		return false
	}
	if a.Reported == hash {
		switch a.State {
		case Rejected:
			return f.us()-a.ReportedUS > retryRejected.Microseconds()
		case Waiting:
			return a.desire.activateUS != 0 && f.us() > a.desire.activateUS+activationGraceUS
		}
	}
	return true
}
