package release_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/release"
	"oal/deploy/internal/sim"
)

func signer(t *testing.T) *sim.Signer {
	t.Helper()
	s, err := sim.NewSigner(filepath.Join(t.TempDir(), "keys"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse(t *testing.T) {
	s := signer(t)
	key, value, hash := s.Release(release.Canary, "site/lab", 4, 1790000000000000, func(record map[string]any) {
		record["rollout"] = map[string]any{"share": 0.5, "soak_s": 30, "activate_in_s": 1.5, "metric": "brier_rise",
			"limit": 0.02}
		record["pinned"], record["reason"] = true, "alias set"
		record["rank"], record["variant_of"] = int64(1780000000000000), strings.Repeat("0f", 32)
	})
	rel, err := release.Parse(key, value, s.Keys())
	if err != nil {
		t.Fatal(err)
	}
	if rel.Slot != release.Canary || rel.Scope != "site/lab" || rel.Bundle.Hash != hash || !rel.Pinned ||
		rel.Reason != "alias set" ||
		rel.Order() != 1780000000000000 || rel.VariantOf != strings.Repeat("0f", 32) ||
		rel.Plan.Share != 0.5 || rel.Plan.SoakS != 30 || rel.Plan.ActivateInS != 1.5 ||
		rel.Plan.Metric != "brier_rise" || *rel.Plan.Limit != 0.02 {
		t.Errorf("read %+v, plan %+v", rel, rel.Plan)
	}
}

func TestPlansByDefault(t *testing.T) {
	s := signer(t)
	parse := func(slot release.Slot, scope string, plan any) *release.Plan {
		key, value, _ := s.Release(slot, scope, 1, 1, func(record map[string]any) { record["rollout"] = plan })
		rel, err := release.Parse(key, value, s.Keys())
		if err != nil {
			t.Fatal(err)
		}
		return rel.Plan
	}
	if p := parse(release.Champion, "fleet", nil); p != nil {
		t.Errorf("a champion without a plan goes to everyone at once, got %+v", p)
	}
	if p := parse(release.Champion, "fleet", map[string]any{"soak_s": 5}); p == nil || p.Share != 1 {
		t.Errorf("a champion's share is everyone, got %+v", p)
	}
	if p := parse(release.Canary, "fleet", map[string]any{"share": nil, "metric": nil, "limit": nil}); p == nil ||
		p.Share != 0.1 || p.SoakS != 0 {
		t.Errorf("a canary's share is a tenth, got %+v", p)
	}
	if p := parse(release.Online, "ap/a", map[string]any{"share": 0.5}); p != nil {
		t.Errorf("an online tree has no plan, got %+v", p)
	}
}

// A canary has the guards of schema/rollout_metrics.yaml whatever its release says, and may set another limit.
func TestCanariesAreGuarded(t *testing.T) {
	s := signer(t)
	parse := func(slot release.Slot, plan any) map[string]float64 {
		key, value, _ := s.Release(slot, "fleet", 1, 1, func(record map[string]any) { record["rollout"] = plan })
		rel, err := release.Parse(key, value, s.Keys())
		if err != nil {
			t.Fatal(err)
		}
		limits := map[string]float64{}
		for _, guard := range rel.Plan.Guards {
			limits[guard.Metric] = guard.Limit
		}
		return limits
	}
	for _, plan := range []any{nil, map[string]any{"share": 0.2, "soak_s": 5},
		map[string]any{"metric": "rejected_share", "limit": 0.2}} {
		found := map[release.Of]bool{}
		for name := range parse(release.Canary, plan) {
			found[release.RolloutMetrics[name].Of] = true
		}
		if !found[release.Model] || !found[release.Users] {
			t.Errorf("plan %v: the canary has guards of %v", plan, found)
		}
	}
	asked := map[string]any{"share": 0.2, "soak_s": 5, "metric": "rtt_rise", "limit": 0.7}
	if limits := parse(release.Canary, asked); limits["rtt_rise"] != 0.7 || limits["brier_rise"] == 0 {
		t.Errorf("guards %v", limits)
	}
	if limits := parse(release.Champion, asked); len(limits) != 1 {
		t.Errorf("a champion has the guard that it names: %v", limits)
	}
}

func TestParseRefuses(t *testing.T) {
	s := signer(t)
	for name, c := range map[string]struct {
		reason string
		slot   release.Slot
		scope  string
		change func(record map[string]any)
	}{
		"another slot than the key": {"bad_record", release.Champion, "fleet",
			func(r map[string]any) { r["slot"] = "canary" }},
		"another hash":   {"bad_record", release.Champion, "fleet", func(r map[string]any) { r["hash"] = "00" }},
		"another serial": {"bad_record", release.Champion, "fleet", func(r map[string]any) { r["serial"] = 5 }},
		"another source": {"bad_record", release.Champion, "fleet",
			func(r map[string]any) { r["source"] = "online" }},
		"a share beyond one": {"bad_record", release.Canary, "fleet",
			func(r map[string]any) { r["rollout"] = map[string]any{"share": 1.5} }},
		"a negative soak": {"bad_record", release.Canary, "fleet",
			func(r map[string]any) { r["rollout"] = map[string]any{"soak_s": -1} }},
		"an unknown metric": {"bad_record", release.Canary, "fleet", func(r map[string]any) {
			r["rollout"] = map[string]any{"share": 0.1, "metric": "rejected_ratio", "limit": 0.1}
		}},
		"a metric without a limit": {"bad_record", release.Canary, "fleet",
			func(r map[string]any) { r["rollout"] = map[string]any{"share": 0.1, "metric": "brier_rise"} }},
		"steps that go back": {"bad_record", release.Canary, "fleet", func(r map[string]any) {
			r["rollout"] = map[string]any{"steps": []map[string]any{{"share": 0.5, "soak_s": 5}, {"share": 0.1}}}
		}},
		"a step without a soak before another": {"bad_record", release.Canary, "fleet", func(r map[string]any) {
			r["rollout"] = map[string]any{"steps": []map[string]any{{"share": 0.5}, {"share": 1}}}
		}},
		"text for a share": {"bad_record", release.Canary, "fleet",
			func(r map[string]any) { r["rollout"] = map[string]any{"share": "all"} }},
		"an AP that is no name": {"bad_record", release.Champion, "ap/a b", nil},
		"a rank above its serial": {"bad_record", release.Champion, "fleet",
			func(r map[string]any) { r["rank"] = int64(1 << 60) }},
		"a rank below zero": {"bad_record", release.Champion, "fleet", func(r map[string]any) { r["rank"] = -1 }},
		"a variant of no hash": {"bad_record", release.Champion, "site/a",
			func(r map[string]any) { r["variant_of"] = "abc" }},
		"a variant for the fleet": {"bad_record", release.Champion, "fleet",
			func(r map[string]any) { r["variant_of"] = r["hash"] }},
		"an online tree for the fleet": {"bad_record", release.Online, "fleet", nil},
		"a site that is no name":       {"bad_record", release.Champion, "site/../x", nil},
		"no bundle": {"malformed", release.Champion, "fleet",
			func(r map[string]any) { r["bundle"] = []byte{} }},
		"a bundle that is not base64": {"bad_record", release.Champion, "fleet",
			func(r map[string]any) { r["bundle"] = "%" }},
	} {
		t.Run(name, func(t *testing.T) {
			key, value, _ := s.Release(c.slot, c.scope, 1, 1, c.change)
			_, err := release.Parse(key, value, s.Keys())
			var refused *release.Error
			if !errors.As(err, &refused) || refused.Reason != c.reason {
				t.Errorf("want %s, got %v", c.reason, err)
			}
		})
	}
	// A good bundle of one AP, moved into the record of another.
	_, value, _ := s.Release(release.Online, "ap/a", 1, 1, nil)
	var record map[string]any
	if err := json.Unmarshal(value, &record); err != nil {
		t.Fatal(err)
	}
	record["scope"] = "ap/b"
	moved, _ := json.Marshal(record)
	_, err := release.Parse("online/ap/b", moved, s.Keys())
	var refused *release.Error
	if !errors.As(err, &refused) || refused.Reason != "wrong_target" {
		t.Errorf("a bundle of another AP: %v", err)
	}
}

// A key may sign only what it is for: a thief of the trainer's key makes no champion, one of the registry's no online
// tree, and one of a site's key nothing for the fleet.
func TestWhoMaySignWhat(t *testing.T) {
	s := signer(t)
	swapped := &sim.Signer{Key: s.Trainer, Trainer: s.Key, Size: 100}
	narrow := s.Keys()
	for id, key := range narrow {
		key.Grant.Scope, key.Grant.MaxMode = "site/lab", bundle.Shadow
		narrow[id] = key
	}
	for name, c := range map[string]struct {
		signer *sim.Signer
		keys   bundle.Keys
		slot   release.Slot
		scope  string
		want   string
	}{
		"the trainer's key for a champion":      {swapped, s.Keys(), release.Champion, "fleet", "not_permitted"},
		"the registry's key for an online tree": {swapped, s.Keys(), release.Online, "ap/a", "not_permitted"},
		"a site's key for the fleet":            {s, narrow, release.Champion, "fleet", "not_permitted"},
		"a site's key for its site":             {s, narrow, release.Champion, "site/lab", ""},
		"a site's key for an AP, of what site":  {s, narrow, release.Champion, "ap/a", ""},
		"a site's key for another site":         {s, narrow, release.Champion, "site/labs", "not_permitted"},
		"the registry's key for a champion":     {s, s.Keys(), release.Champion, "fleet", ""},
		"the trainer's key for an online tree":  {s, s.Keys(), release.Online, "ap/a", ""},
		"a key of an older line may do nothing": {s, withoutGrants(s.Keys()), release.Champion, "fleet",
			"not_permitted"},
		"a key that nobody knows, in a champion": {signer(t), s.Keys(), release.Champion, "fleet", "unknown_key"},
	} {
		key, value, _ := c.signer.Release(c.slot, c.scope, 1, 1, nil)
		_, err := release.Parse(key, value, c.keys)
		var refused *release.Error
		if got := errors.As(err, &refused); got != (c.want != "") || got && refused.Reason != c.want {
			t.Errorf("%s: want %q, got %v", name, c.want, err)
		}
	}
}

func withoutGrants(keys bundle.Keys) bundle.Keys {
	for id, key := range keys {
		key.Grant = bundle.Grant{}
		keys[id] = key
	}
	return keys
}

func TestASerialFarAheadIsNoRelease(t *testing.T) {
	s := signer(t)
	const now, bound = 1790000000000000, 300_000_000
	for serial, want := range map[int64]string{now: "", now + bound: "", now + bound + 1: "future",
		1 << 62: "future"} {
		key, value, _ := s.Release(release.Champion, "fleet", 1, serial, nil)
		rel, err := release.Parse(key, value, s.Keys())
		if err != nil {
			t.Fatal(err)
		}
		err = rel.Ahead(now)
		var refused *release.Error
		if got := errors.As(err, &refused); got != (want != "") || got && refused.Reason != want {
			t.Errorf("serial %d: want %q, got %v", serial, want, err)
		}
	}
}

// The limit is the contract's.
func TestMaxSerialAhead(t *testing.T) {
	text, err := os.ReadFile("../../../schema/settings.yaml")
	if err != nil || !strings.Contains(string(text), "max_serial_ahead_us: 300000000") {
		t.Errorf("schema/settings.yaml says otherwise: %v", err)
	}
}
