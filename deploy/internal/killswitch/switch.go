// Package killswitch turns control off, for the fleet, a site or an AP: stored before anything follows from it, and told to every AP
// concerned with the answer of its long poll. It can only take power away, so it needs no signature.
package killswitch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"sync"
	"time"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/release"
	"oal/deploy/internal/store"
)

// Errors of what people ask for.
var (
	ErrBad     = errors.New("this cannot be done")
	ErrUnknown = errors.New("nobody is there")
	ErrNotOff  = errors.New("it is not switched off")
)

const (
	// lookEvery is how late a replica sees what another one was told.
	lookEvery  = 250 * time.Millisecond
	countEvery = time.Second
	MaxNote    = 100
	MaxReason  = 500
)

// Switch is one replica's sight of what is switched off.
type Switch struct {
	fleet   *fleet.Fleet
	store   store.Store
	metrics *metric.Set
	now     func() time.Time
	logger  *slog.Logger

	// lock guards kills, and is held while the store is written to: turns are rare, and the next sees the one before.
	lock  sync.Mutex
	kills map[string]fleet.Kill // by scope
}

// New is inert.
func New(f *fleet.Fleet, s store.Store, m *metric.Set, now func() time.Time, logger *slog.Logger) *Switch {
	return &Switch{fleet: f, store: s, metrics: m, now: now, logger: logger, kills: map[string]fleet.Kill{}}
}

// Load reads what was stored; call it before an AP is answered.
func (s *Switch) Load(ctx context.Context) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.reload(ctx)
}

// Run sees what other replicas were told, until the context ends.
func (s *Switch) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var counted time.Time
	for {
		var now time.Time
		select {
		case <-ctx.Done():
			return
		case now = <-ticker.C:
		}
		if s.store.Shared() {
			if err := s.Load(ctx); err != nil && ctx.Err() == nil {
				s.metrics.Errors.WithLabelValues("store").Inc()
				s.logger.Error("the kill switch cannot be read; what was known stays", "error", err)
			}
		}
		if now.Sub(counted) >= countEvery {
			counted = now
			killed, unheard := s.fleet.Controls()
			s.metrics.KilledAPs.Set(float64(killed))
			s.metrics.UnheardAPs.Set(float64(unheard))
		}
	}
}

// Kills is what is switched off, the fleet first.
func (s *Switch) Kills() []fleet.Kill {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.sorted()
}

// Kill switches a scope off. Again for the same scope keeps since when, and takes who and why.
func (s *Switch) Kill(ctx context.Context, scope, who, note, reason string) (fleet.Kill, error) {
	k := fleet.Kill{Scope: scope, Who: who, Note: strings.TrimSpace(note), Reason: strings.TrimSpace(reason), SinceUS: s.now().UnixMicro()}
	if err := check(scope, k.Note, k.Reason); err != nil {
		return k, err
	}
	if !s.fleet.Knows(scope) {
		return k, fmt.Errorf("%w: no AP of %s has ever asked; `fleet` switches everything off", ErrUnknown, scope)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if err := s.reload(ctx); err != nil {
		return k, err
	}
	if old, is := s.kills[scope]; is {
		k.SinceUS = old.SinceUS
	}
	if err := s.store.SetKill(ctx, k, s.entry(scope, "off", k.Who, k.Note, k.Reason)); err != nil {
		return k, err
	}
	s.kills[scope] = k
	s.turned(scope, "off", k.Who, k.Note, k.Reason)
	return k, nil
}

// Unkill takes a kill back. Those of wider or narrower scopes stay.
func (s *Switch) Unkill(ctx context.Context, scope, who, note, reason string) (fleet.Kill, error) {
	note, reason = strings.TrimSpace(note), strings.TrimSpace(reason)
	if err := check(scope, note, reason); err != nil {
		return fleet.Kill{}, err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if err := s.reload(ctx); err != nil {
		return fleet.Kill{}, err
	}
	k, is := s.kills[scope]
	if !is {
		return k, fmt.Errorf("%w: %s; ctl kills shows what is", ErrNotOff, scope)
	}
	if err := s.store.ClearKill(ctx, scope, s.entry(scope, "on", who, note, reason)); err != nil {
		return k, err
	}
	delete(s.kills, scope)
	s.turned(scope, "on", who, note, reason)
	return k, nil
}

func check(scope, note, reason string) error {
	if err := fleet.CheckScope(scope); err != nil {
		return fmt.Errorf("%w: %w", ErrBad, err)
	}
	if reason == "" || len(reason) > MaxReason || len(note) > MaxNote {
		return fmt.Errorf("%w: say the reason (at most %d bytes), and who if that is someone else (at most %d)", ErrBad, MaxReason, MaxNote)
	}
	return nil
}

func (s *Switch) entry(scope, to, who, note, reason string) store.Entry {
	if note != "" {
		who += " for " + note
	}
	return store.Entry{TSUS: s.now().UnixMicro(), Kind: "kill", Key: scope, Detail: fmt.Sprintf("control %s by %s: %s", to, who, reason)}
}

// turned makes it so. The caller holds the lock.
func (s *Switch) turned(scope, to, who, note, reason string) {
	s.publish()
	s.metrics.Turns.WithLabelValues(release.ScopeKind(scope), to).Inc()
	s.logger.Warn("kill switch", "scope", scope, "control", to, "who", who, "for", note, "reason", reason)
}

// reload takes what is stored. The caller holds the lock.
func (s *Switch) reload(ctx context.Context) error {
	stored, err := s.store.Kills(ctx)
	if err != nil {
		return err
	}
	next := make(map[string]fleet.Kill, len(stored))
	same := len(stored) == len(s.kills)
	for _, k := range stored {
		next[k.Scope] = k
		same = same && s.kills[k.Scope] == k
	}
	if !same {
		s.kills = next
		s.publish()
	}
	return nil
}

// publish gives the fleet what is switched off. The caller holds the lock.
func (s *Switch) publish() {
	s.metrics.Kills.Set(float64(len(s.kills)))
	s.fleet.SetKills(s.sorted())
}

func (s *Switch) sorted() []fleet.Kill {
	kills := make([]fleet.Kill, 0, len(s.kills))
	for _, k := range s.kills {
		kills = append(kills, k)
	}
	order := func(k fleet.Kill) string { return strings.Replace(k.Scope, "fleet", "", 1) }
	sort.Slice(kills, func(i, j int) bool { return order(kills[i]) < order(kills[j]) })
	return kills
}
