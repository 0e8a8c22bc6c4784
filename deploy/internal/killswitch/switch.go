// Package killswitch turns control off, of all policies or of one, for the fleet, a site or an AP: told at once to
// every AP concerned with the answer of its long poll, and stored as soon as the store takes it. It can only take power
// away, so it needs no signature. Taking a kill back is stored before anything follows from it.
package killswitch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/mirror"
	"oal/deploy/internal/release"
	"oal/deploy/internal/store"
)

// Errors of what people ask for.
var (
	ErrBad     = errors.New("this cannot be done")
	ErrUnknown = errors.New("nothing is known that this would turn off")
	ErrNotOff  = errors.New("it is not switched off")
)

const (
	// MaxNote bounds, in bytes, for whom a person says that they act: a name.
	MaxNote = 100
	// answerLimit is how long the answer to a kill, which is in force before, waits to say that it is stored.
	answerLimit = 4 * time.Second
)

// Switch is one replica's sight of what is switched off.
type Switch struct {
	fleet   *fleet.Fleet
	store   store.Store
	metrics *metric.Set
	now     func() time.Time
	logger  *slog.Logger
	table   *mirror.Table[fleet.Kill] // by target
}

// New is inert.
func New(f *fleet.Fleet, s store.Store, m *metric.Set, now func() time.Time, logger *slog.Logger) *Switch {
	k := &Switch{fleet: f, store: s, metrics: m, now: now, logger: logger}
	k.table = mirror.New(mirror.Options[fleet.Kill]{
		Read:    s.Kills,
		Key:     func(k fleet.Kill) string { return k.Target.String() },
		Shared:  s.Shared(),
		Put:     k.put,
		Publish: k.publish,
		Failed: func(err error, again bool) {
			m.Errors.WithLabelValues("store").Inc()
			if !again {
				logger.Error("the kill switch cannot be read or stored; what was known stays", "error", err)
			}
		},
		Now: now,
	})
	return k
}

// Load reads what was stored; call it before an AP is answered.
func (s *Switch) Load(ctx context.Context) error { return s.table.Load(ctx) }

// Run reads what other replicas changed and stores what is not stored, until the context ends.
func (s *Switch) Run(ctx context.Context) { s.table.Run(ctx) }

// State says how far this replica knows what is switched off, and what is not stored yet.
func (s *Switch) State() mirror.State { return s.table.State() }

// Kills is what is switched off, the fleet first.
func (s *Switch) Kills() []fleet.Kill {
	kills := s.table.All()
	order := func(k fleet.Kill) string { return strings.Replace(k.Target.String(), "fleet", "", 1) }
	sort.Slice(kills, func(i, j int) bool { return order(kills[i]) < order(kills[j]) })
	return kills
}

// Kill switches a target off, at this replica at once. stored says whether the store has it too, and so the other
// replicas; if not, that is tried until it is. Again for the same target keeps since when, and takes who and why.
func (s *Switch) Kill(
	ctx context.Context, t fleet.Target, who, note, reason string,
) (k fleet.Kill, stored bool, err error) {
	k = fleet.Kill{Target: t, Who: who, Note: strings.TrimSpace(note), Reason: strings.TrimSpace(reason),
		SinceUS: s.now().UnixMicro()}
	if err := check(t, k.Note, k.Reason); err != nil {
		return k, false, err
	}
	if !s.fleet.Knows(t.Scope) {
		return k, false, fmt.Errorf("%w: no AP of %s has ever asked; `fleet` switches everything off", ErrUnknown,
			t.Scope)
	}
	if known := s.fleet.KnownPolicies(); t.Policy != "" && !slices.Contains(known, t.Policy) {
		return k, false, fmt.Errorf("%w: no bundle of policy %s was ever released; known are %s; without a policy "+
			"everything is switched off", ErrUnknown, t.Policy, strings.Join(known, ", "))
	}
	if old, is := s.table.Get(t.String()); is {
		k.SinceUS = old.SinceUS
	}
	s.table.Assert(k)
	s.count(t, "off", k.Who, k.Note, k.Reason)
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if err := s.table.Flush(limited); err != nil {
		s.metrics.Errors.WithLabelValues("store").Inc()
		s.logger.Error("a kill is in force here and not stored yet; it is tried again", "target", t.String(),
			"error", err)
	}
	if now, is := s.table.Get(t.String()); is {
		k = now
	}
	return k, !s.table.State().Unstored[t.String()], nil
}

// put stores a kill.
func (s *Switch) put(ctx context.Context, old fleet.Kill, known bool, k fleet.Kill) (fleet.Kill, error) {
	if known {
		k.SinceUS = min(k.SinceUS, old.SinceUS)
	}
	return k, s.store.SetKill(ctx, k, s.entry(k.Target, "off", k.Who, k.Note, k.Reason))
}

// Unkill takes a kill back. Those of wider or narrower scopes stay.
func (s *Switch) Unkill(ctx context.Context, t fleet.Target, who, note, reason string) (fleet.Kill, error) {
	note, reason = strings.TrimSpace(note), strings.TrimSpace(reason)
	if err := check(t, note, reason); err != nil {
		return fleet.Kill{}, err
	}
	var k fleet.Kill
	err := s.table.Change(ctx, func(kills map[string]fleet.Kill) error {
		var is bool
		if k, is = kills[t.String()]; !is {
			return fmt.Errorf("%w: %s; ctl kills shows what is", ErrNotOff, t)
		}
		if err := s.store.ClearKill(ctx, t, s.entry(t, "on", who, note, reason)); err != nil {
			return err
		}
		delete(kills, t.String())
		return nil
	})
	if err == nil {
		s.count(t, "on", who, note, reason)
	}
	return k, err
}

func check(t fleet.Target, note, reason string) error {
	if err := t.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrBad, err)
	}
	if reason == "" || len(reason) > store.MaxReason || len(note) > MaxNote {
		return fmt.Errorf("%w: say the reason (at most %d bytes), and who if that is someone else (at most %d)", ErrBad,
			store.MaxReason, MaxNote)
	}
	return nil
}

func (s *Switch) entry(t fleet.Target, to, who, note, reason string) store.Entry {
	if note != "" {
		who += " for " + note
	}
	return store.Entry{TSUS: s.now().UnixMicro(), Kind: "kill", Key: t.String(),
		Detail: fmt.Sprintf("control %s by %s: %s", to, who, reason)}
}

// count counts and logs a change of the switch.
func (s *Switch) count(t fleet.Target, to, who, note, reason string) {
	s.metrics.KillChanges.WithLabelValues(release.ScopeKind(t.Scope), to).Inc()
	s.logger.Warn("kill switch", "scope", t.Scope, "policy", t.Policy, "control", to, "who", who, "for", note,
		"reason", reason)
}

// publish gives the fleet what is switched off.
func (s *Switch) publish(kills map[string]fleet.Kill) {
	s.metrics.Kills.Set(float64(len(kills)))
	s.fleet.SetKills(slices.Collect(maps.Values(kills)))
}
