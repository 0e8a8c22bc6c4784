package service

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	sweepEvery = time.Second     // how late it is seen that an AP or a replica has gone
	saveEvery  = 2 * time.Second // a killed replica loses so much of the APs' reports; their next polls carry them
)

// apKeeper keeps what is known of APs in step: with the clock, with the store and with other replicas. What asks the
// store runs beside what does not.
type apKeeper struct {
	*Service
	alive atomic.Pointer[map[string]bool] // replicas, as the store said last; nil: it has not yet said
}

// sweep notices APs that have gone, and counts.
func (a *apKeeper) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if alive := a.alive.Load(); alive != nil {
			a.metrics.Connected.Set(float64(a.fleet.Sweep(*alive)))
		}
		a.metrics.KnownAPs.Set(float64(a.fleet.Known()))
		a.countKills()
		a.countCertificates()
	}
}

// keep stores APs that changed and reads those of other replicas.
func (a *apKeeper) keep(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	var saved, merged time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		alive, err := a.store.Alive(ctx, a.config.Replica)
		if err != nil {
			a.failed("whether other replicas live cannot be read", err)
			continue // the store is away: one call a round waits for it
		}
		a.alive.Store(&alive)
		now := time.Now()
		if a.store.Shared() {
			since := now.Add(-saveEvery)
			if !merged.IsZero() && merged.Before(since) {
				since = merged // the store was away meanwhile
			}
			if a.merge(ctx, since) {
				merged = now
			}
		}
		if now.Sub(saved) >= saveEvery {
			saved = now
			a.saveAPs(ctx)
		}
	}
}

// merge takes what other replicas saw since a time.
func (a *apKeeper) merge(ctx context.Context, since time.Time) bool {
	stored, err := a.store.APs(ctx, since)
	if err != nil {
		a.failed("APs of other replicas cannot be read", err)
		return false
	}
	a.fleet.Merge(stored)
	return true
}

func (a *apKeeper) countKills() {
	killed, unheard := a.fleet.CountKilled()
	a.metrics.KilledAPs.Set(float64(killed))
	a.metrics.UnheardAPs.Set(float64(unheard))
}

func (a *apKeeper) countCertificates() {
	first, ending := a.fleet.Certificates(endingSoon)
	a.metrics.CertificatesEnd.Set(float64(ending))
	if first == 0 {
		a.metrics.CertificateFirst.Reset()
		return
	}
	a.metrics.CertificateFirst.WithLabelValues().Set(float64(first) / 1e6)
}

// saveAPs stores APs that changed.
func (s *Service) saveAPs(ctx context.Context) {
	changed := s.fleet.Dirty()
	if len(changed) == 0 {
		return
	}
	if err := s.store.SaveAPs(ctx, changed); err != nil {
		s.fleet.Unstored(changed)
		s.failed("APs cannot be stored; trying again", err)
	}
}
