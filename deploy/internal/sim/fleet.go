package sim

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/pki"
)

// Fleet is many simulated APs.
type Fleet struct {
	Address string // of the push service
	Roots   *x509.CertPool
	Keys    bundle.Keys
	WaitS   int  // of each long poll
	Rate    int  // APs that connect per second; 0 = all at once
	Several bool // they know of several policies, as exporters have since bundles of format 2
	// ByPolicy says that they know kills of one policy, too.
	ByPolicy bool
	// Rejects, if set, makes an AP reject a bundle for the reason that it returns.
	Rejects   func(id string, b *bundle.Bundle) string
	OnApplied func(id string, b *bundle.Bundle, at time.Time)
	OnTurned  func(id string, killed bool, at time.Time) // the kill switch was turned
	OnFailed  func(id string, err error)

	aps    []*AP
	cancel context.CancelFunc
	done   sync.WaitGroup

	lock   sync.Mutex      // guards all below
	force  map[held]string // hashes
	killed map[string]bool
	// killedPolicies are those that are off by themselves, by AP
	killedPolicies map[string][]string
}

// held is a policy at an AP.
type held struct{ id, policy string }

// Add makes n APs NAME-0001, NAME-0002, … of a site, with certificates of the authority.
func (f *Fleet) Add(authority *pki.Authority, name, site string, n int) error {
	for i := range n {
		id := fmt.Sprintf("%s-%04d", name, i+1)
		cert, err := authority.Issue(id, "ap")
		if err != nil {
			return err
		}
		a := &AP{ID: id, Site: site, Fleet: f, cert: cert}
		if n > 20000 {
			a.source = net.IPv4(127, 0, 1, byte(1+i/20000))
		}
		f.aps = append(f.aps, a)
	}
	return nil
}

// AddAP adds one with a certificate that it has.
func (f *Fleet) AddAP(id, site string, cert tls.Certificate) {
	f.aps = append(f.aps, &AP{ID: id, Site: site, Fleet: f, cert: cert})
}

// Start connects all APs.
func (f *Fleet) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	for i, a := range f.aps {
		f.done.Add(1)
		go func() {
			defer f.done.Done()
			if f.Rate > 0 {
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(i) * time.Second / time.Duration(f.Rate)):
				}
			}
			a.run(ctx)
		}()
	}
}

// Stop disconnects all APs; they keep what they have, and Start brings them back.
func (f *Fleet) Stop() {
	f.cancel()
	f.done.Wait()
}

// InForce is the hash of what an AP has of rwnd-fair; empty for nothing.
func (f *Fleet) InForce(id string) string { return f.InForceOf(id, bundle.RwndFair) }

// InForceOf is the hash of what an AP has of a policy; empty for nothing.
func (f *Fleet) InForceOf(id, policy string) string {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.force[held{id, policy}]
}

// Have is how many APs have a bundle.
func (f *Fleet) Have(hash string) (n int) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, other := range f.force {
		if other == hash {
			n++
		}
	}
	return n
}

func (f *Fleet) applied(id string, b *bundle.Bundle) {
	at := time.Now()
	f.lock.Lock()
	if f.force == nil {
		f.force = map[held]string{}
	}
	f.force[held{id, b.OfPolicy}] = b.Hash
	f.lock.Unlock()
	if f.OnApplied != nil {
		f.OnApplied(id, b, at)
	}
}

func (f *Fleet) gaveUp(id, policy string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	delete(f.force, held{id, policy})
}

// Killed is how many APs have control off.
func (f *Fleet) Killed() (n int) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, off := range f.killed {
		if off {
			n++
		}
	}
	return n
}

// KilledPolicies is how many APs have a policy off by itself.
func (f *Fleet) KilledPolicies(policy string) (n int) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, killed := range f.killedPolicies {
		if slices.Contains(killed, policy) {
			n++
		}
	}
	return n
}

func (f *Fleet) turnedPolicies(id string, killed []string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.killedPolicies == nil {
		f.killedPolicies = map[string][]string{}
	}
	f.killedPolicies[id] = killed
}

func (f *Fleet) turned(id string, killed bool) {
	at := time.Now()
	f.lock.Lock()
	if f.killed == nil {
		f.killed = map[string]bool{}
	}
	f.killed[id] = killed
	f.lock.Unlock()
	if f.OnTurned != nil {
		f.OnTurned(id, killed, at)
	}
}

func (f *Fleet) failed(id string, err error) {
	if f.OnFailed != nil {
		f.OnFailed(id, err)
	}
}
