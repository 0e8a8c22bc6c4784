package release_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/release"
)

func TestKeys(t *testing.T) {
	for key, want := range map[string][3]string{
		"champion/fleet":                {"champion", "fleet", "rwnd-fair"},
		"canary/site/hall-1":            {"canary", "site/hall-1", "rwnd-fair"},
		"challenger/ap/ap-7":            {"challenger", "ap/ap-7", "rwnd-fair"},
		"online/ap/ap-7":                {"online", "ap/ap-7", "rwnd-fair"},
		"champion/fleet/example":        {"champion", "fleet", "example"},
		"canary/site/hall-1/uplink-cap": {"canary", "site/hall-1", "uplink-cap"},
		"challenger/ap/ap-7/p4":         {"challenger", "ap/ap-7", "p4"},
		"champion/site/fleet/fleet":     {"champion", "site/fleet", "fleet"},
	} {
		slot, scope, policy, err := release.ParseKey(key)
		if err != nil || [3]string{string(slot), scope, policy} != want {
			t.Errorf("%s: %s, %s, %s, %v", key, slot, scope, policy, err)
		}
		if again := release.Key(slot, scope, policy); again != key {
			t.Errorf("%s became %s", key, again)
		}
	}
	for _, key := range []string{"", "champion", "champion/", "champion/site", "champion/site/", "champion/fleet/",
		"champion/fleet/rwnd-fair", "champion/site/lab/rwnd-fair", "champion/fleet/Example", "champion/fleet/a/b",
		"champion/fleet/1a", "champion/site/lab/", "champion/site/lab/a/b", "champion/site//example",
		"champion/fleet/" + strings.Repeat("a", 32), "online/ap/ap-7/example", "online/ap/ap-7/rwnd-fair",
		"other/fleet"} {
		if slot, scope, policy, err := release.ParseKey(key); err == nil {
			t.Errorf("%q was taken: %s, %s, %s", key, slot, scope, policy)
		}
	}
}

// The name of a rollout stays what it was before there were several policies: rollouts that are under way go on.
func TestIDs(t *testing.T) {
	rel := &release.Release{Slot: release.Champion, Scope: "fleet", CreatedUS: 7,
		Bundle: bundle.Bundle{Hash: strings.Repeat("0f", 32)}}
	before := rel.ID()
	if before != "7068a87a4ea8" {
		t.Error(before)
	}
	for policy, same := range map[string]bool{"rwnd-fair": true, "example": false} {
		if rel.Bundle.OfPolicy = policy; (rel.ID() == before) != same {
			t.Errorf("%s: %s", policy, rel.ID())
		}
	}
}

func TestParseOfAPolicy(t *testing.T) {
	s := signer(t)
	key, value, hash := s.ReleaseOf("example", release.Canary, "site/lab", 4, 1790000000000000, nil)
	rel, err := release.Parse(key, value, s.Keys())
	if err != nil {
		t.Fatal(err)
	}
	if key != "canary/site/lab/example" || rel.Key() != key || rel.Policy() != "example" || rel.Bundle.Hash != hash ||
		rel.Scope != "site/lab" || rel.Plan.Share != release.DefaultShare {
		t.Errorf("read %+v of %s", rel, key)
	}
}

func TestKeyRecordAndBundleNameOnePolicy(t *testing.T) {
	s := signer(t)
	change := func(value []byte, policy any) []byte {
		var record map[string]any
		if err := json.Unmarshal(value, &record); err != nil {
			t.Fatal(err)
		}
		if record["policy"] = policy; policy == nil {
			delete(record, "policy")
		}
		value, _ = json.Marshal(record)
		return value
	}
	_, fair, _ := s.Release(release.Champion, "fleet", 1, 1, nil)
	_, other, _ := s.ReleaseOf("example", release.Champion, "fleet", 1, 1, nil)
	for name, c := range map[string]struct {
		key   string
		value []byte
		taken bool
	}{
		"rwnd-fair, spelled out":           {"champion/fleet", change(fair, "rwnd-fair"), true},
		"a policy":                         {"champion/fleet/example", other, true},
		"the key names another":            {"champion/fleet/x", other, false},
		"the key names none":               {"champion/fleet", other, false},
		"the record names another":         {"champion/fleet/example", change(other, "x"), false},
		"the record names none":            {"champion/fleet/example", change(other, nil), false},
		"key and record, not the bundle":   {"champion/fleet/x", change(other, "x"), false},
		"key and record name none":         {"champion/fleet", change(other, nil), false},
		"the bundle is of rwnd-fair":       {"champion/fleet/x", change(fair, "x"), false},
		"rwnd-fair, spelled out in a key":  {"champion/fleet/rwnd-fair", fair, false},
		"a policy that is not text":        {"champion/fleet", change(fair, 1), false},
		"a policy whose case is different": {"champion/fleet/example", change(other, "Example"), false},
	} {
		_, err := release.Parse(c.key, c.value, s.Keys())
		var refused *release.Error
		if c.taken != (err == nil) || err != nil && (!errors.As(err, &refused) || refused.Reason != "bad_record") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
