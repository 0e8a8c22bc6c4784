package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
)

const other = "example"

// of makes a release one of a policy.
func of(policy string, r *release.Release) *release.Release {
	r.Bundle.OfPolicy = policy
	r.Bundle.Hash = fmt.Sprintf("%s%048x", policy[:1]+strings.Repeat("0", 15), r.Bundle.Serial)
	return r
}

// has is what an AP that knows of several policies says: the bundles in force.
func has(inForce ...*release.Release) Ask {
	ask := Ask{Site: "lab", Others: map[string]string{}}
	for _, rel := range inForce {
		if policy := rel.Policy(); policy == "rwnd-fair" {
			ask.InForce = rel.Bundle.Hash
		} else {
			ask.Others[policy] = rel.Bundle.Hash
		}
	}
	return ask
}

// wants is what an AP should have after a poll, by policy.
func wants(f *Fleet, id string, inForce ...*release.Release) map[string]int64 {
	f.End(f.Begin(id, has(inForce...)))
	serials := map[string]int64{}
	v, _ := f.Get(id)
	if v.Desired != "" {
		serials["rwnd-fair"] = v.DesiredSerial
	}
	for _, p := range v.Policies {
		if p.Desired != "" {
			serials[p.Policy] = p.DesiredSerial
		}
	}
	return serials
}

func is(t *testing.T, what string, got map[string]int64, want map[string]int64) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestEachPolicyHasItsOwnSlots(t *testing.T) {
	f, _ := fixture()
	fair, example := made(release.Champion, "fleet", 50), of(other, made(release.Champion, "fleet", 10))
	site, canary := of(other, made(release.Champion, "site/lab", 20)), of(other, made(release.Canary, "fleet", 30))
	offer(f, all(fair), all(example), all(of("a", made(release.Challenger, "ap/a", 7))))
	is(t, "a champion each", wants(f, "a"), map[string]int64{"rwnd-fair": 50, other: 10, "a": 7})
	is(t, "a policy for one AP", wants(f, "b"), map[string]int64{"rwnd-fair": 50, other: 10})
	offer(f, all(fair), all(example), all(site))
	is(t, "one for the site", wants(f, "a"), map[string]int64{"rwnd-fair": 50, other: 20})
	offer(f, all(fair), all(example), all(site), all(canary))
	is(t, "a canary", wants(f, "a"), map[string]int64{"rwnd-fair": 50, other: 30})
	f.SetOnline("a", made(release.Online, "ap/a", 60))
	is(t, "an online tree is of rwnd-fair", wants(f, "a"), map[string]int64{"rwnd-fair": 60, other: 30})
	offer(f, all(example))
	is(t, "nothing of rwnd-fair but the tree", wants(f, "b"), map[string]int64{other: 10})
}

func TestACanaryOfOnePolicyLeavesTheOthersAlone(t *testing.T) {
	f, _ := fixture()
	fair, example := made(release.Champion, "fleet", 50), of(other, made(release.Champion, "fleet", 10))
	canary := of(other, made(release.Canary, "fleet", 60))
	half := &rollout.Offer{Slot: release.Canary, Scope: "fleet", Release: canary, Rollout: "c", Threshold: 1 << 63}
	offer(f, all(fair), all(example), half)
	members := 0
	for i := range 100 {
		id := fmt.Sprintf("ap-%d", i)
		got := wants(f, id, fair, example)
		if rollout.Position("c", id) <= 1<<63 {
			members++
			is(t, id, got, map[string]int64{"rwnd-fair": 50, other: 60})
		} else {
			is(t, id, got, map[string]int64{"rwnd-fair": 50, other: 10})
		}
	}
	if n := f.Count(canary.Bundle.Hash, "fleet"); n.APs != members || members == 0 || n.InScope != 100 {
		t.Errorf("%d members, counted %+v", members, n)
	}
	if n := f.Count(fair.Bundle.Hash, "fleet"); n.APs != 100 || n.Applied != 100 {
		t.Errorf("rwnd-fair: %+v", n)
	}
}

func TestPinnedAndVariantsArePerPolicy(t *testing.T) {
	f, _ := fixture()
	fair, example := made(release.Champion, "fleet", 10), of(other, made(release.Champion, "fleet", 40))
	example.Pinned = true
	there := of(other, variant(example, "site/lab", 41))
	f.SetOnline("a", made(release.Online, "ap/a", 30))
	offer(f, all(fair), all(example), all(there))
	is(t, "another policy's champion is pinned, and has a variant", wants(f, "a"),
		map[string]int64{"rwnd-fair": 30, other: 41})
	fair.Pinned = true
	offer(f, all(fair), all(example), all(there))
	is(t, "its own is pinned", wants(f, "a"), map[string]int64{"rwnd-fair": 10, other: 41})
	newer := of(other, made(release.Champion, "fleet", 50))
	offer(f, all(fair), all(newer), all(there))
	is(t, "a newer release waits for its variant", wants(f, "a"), map[string]int64{"rwnd-fair": 10, other: 41})
}

// An abort leads back in the policy concerned, and serials are compared among the bundles of one policy.
func TestAbortAndRankArePerPolicy(t *testing.T) {
	f, _ := fixture()
	fair := made(release.Champion, "fleet", 90)
	before := of(other, made(release.Champion, "fleet", 10))
	bad := of(other, made(release.Champion, "fleet", 20, before))
	aborted := &rollout.Offer{Slot: release.Champion, Scope: "fleet", Release: bad, Rollout: "r", All: true, Off: true,
		Fallback: all(before)}
	offer(f, all(fair), aborted)
	is(t, "the bundle before", wants(f, "a", fair, bad), map[string]int64{"rwnd-fair": 90, other: 10})
	ranked := of(other, made(release.Champion, "site/lab", 95))
	ranked.Rank = 5
	offer(f, all(fair), all(before), all(ranked))
	is(t, "the greater rank", wants(f, "a"), map[string]int64{"rwnd-fair": 90, other: 10})
	p := f.Begin("a", has(fair))
	if rel, _, send := f.Desired(p); !send || rel != before {
		t.Errorf("a bundle with a smaller serial than rwnd-fair's is sent: %v %t", rel, send)
	}
}

func TestOnePolicyAfterTheOther(t *testing.T) {
	f, c := fixture()
	fair := made(release.Champion, "fleet", 10)
	one, two := of("one", made(release.Champion, "fleet", 20)), of("two", made(release.Champion, "fleet", 30))
	offer(f, all(two), all(one), all(fair))
	sent := func(what string, want *release.Release, inForce ...*release.Release) {
		t.Helper()
		p := f.Begin("a", has(inForce...))
		defer f.End(p)
		rel, _, send := f.Desired(p)
		if send != (want != nil) || send && rel != want {
			t.Errorf("%s: %v is sent: %t", what, rel, send)
		}
		if names, surplus := f.Policies(p); !slices.Equal(names, []string{"rwnd-fair", "one", "two"}) || surplus {
			t.Errorf("%s: %v, one too many %t", what, names, surplus)
		}
	}
	sent("rwnd-fair is first", fair)
	sent("then by name", one, fair)
	f.Report("a", Status{Bundle: one.Bundle.Hash, State: Rejected, Reason: "no_memory"})
	sent("what it rejected is passed over", two, fair)
	sent("and keeps nothing else from it", fair, two)
	f.Report("a", Status{Bundle: two.Bundle.Hash, Serial: 30, State: Applied})
	sent("it has all that it takes", nil, fair, two)
	if n := f.Count(one.Bundle.Hash, "fleet"); n.Rejected != 1 || n.Applied != 0 {
		t.Errorf("%+v", n)
	}
	v, _ := f.Get("a")
	if v.State != "" || !v.Has(Rejected) || v.Has(Waiting) || v.Current() || !v.Rejecting() {
		t.Errorf("%+v", v)
	}
	c.at = c.at.Add(retryRejected + time.Second)
	sent("after a while it is asked again", one, fair, two)
	f.Report("a", Status{Bundle: one.Bundle.Hash, Serial: 20, State: Applied})
	sent("one of three is not of the newest serial", nil, fair, one, two)
	if v, _ := f.Get("a"); !v.Current() || v.Policies[0].AppliedSerial != 20 || v.Policies[1].AppliedSerial != 30 {
		t.Errorf("%+v", v)
	}
}

func TestWithdrawnPolicyIsOneTooMany(t *testing.T) {
	f, _ := fixture()
	fair, example := made(release.Champion, "fleet", 10), of(other, made(release.Champion, "fleet", 20))
	offer(f, all(fair), all(example))
	p := f.Begin("a", has(fair, example))
	offer(f, all(fair), all(example))
	if woken(p) {
		t.Error("nothing has changed")
	}
	offer(f, all(fair))
	names, surplus := f.Policies(p)
	if _, _, send := f.Desired(p); !woken(p) || !surplus || !slices.Equal(names, []string{"rwnd-fair"}) || send {
		t.Errorf("%v, one too many %t, sent %t", names, surplus, send)
	}
	if v, _ := f.Get("a"); v.Current() || len(v.Policies) != 1 {
		t.Errorf("until it says that it gave it up it has it: %+v", v)
	}
	p = f.Begin("a", has(fair))
	if _, surplus := f.Policies(p); surplus {
		t.Error("it gave it up")
	}
	if v, _ := f.Get("a"); !v.Current() || v.Policies != nil {
		t.Errorf("nothing is left of it: %+v", v)
	}
	offer(f)
	if _, surplus := f.Policies(p); surplus || woken(p) {
		t.Error("rwnd-fair stays until it is replaced")
	}
	older := of(other, made(release.Champion, "fleet", 15))
	offer(f, all(older))
	if rel, _, send := f.Desired(p); !send || rel != older {
		t.Error("who gave a policy up takes any bundle of it")
	}
}

func TestOlderExportersHaveRwndFairAlone(t *testing.T) {
	f, _ := fixture()
	fair, example := made(release.Champion, "fleet", 10), of(other, made(release.Champion, "fleet", 20))
	offer(f, all(fair), all(example))
	p := f.Begin("old", Ask{Site: "lab", InForce: fair.Bundle.Hash})
	offer(f, all(fair), all(of(other, made(release.Champion, "fleet", 30))))
	if _, _, send := f.Desired(p); send || woken(p) {
		t.Error("it is told of a policy that it does not know")
	}
	offer(f, all(example))
	if rel, _, _ := f.Desired(p); rel != nil {
		t.Errorf("nothing is desired of rwnd-fair: %v", rel)
	}
	wants(f, "new", fair, example)
	if ids := f.IDs("fleet", other); !slices.Equal(ids, []string{"new"}) || len(f.IDs("fleet", "rwnd-fair")) != 2 {
		t.Errorf("%v can have it", ids)
	}
	if n := f.Count(example.Bundle.Hash, "fleet"); n.InScope != 1 || n.APs != 1 || n.Applied != 1 {
		t.Errorf("%+v", n)
	}
	f.End(f.Begin("new", Ask{Site: "lab", InForce: fair.Bundle.Hash})) // its exporter was replaced by an older one
	if v, _ := f.Get("new"); v.Several || v.Policies != nil || len(f.IDs("fleet", other)) != 0 {
		t.Errorf("%+v", v)
	}
}

// A report is about the policy of its bundle; of a bundle that nobody knows any more, of the policy that the AP names.
func TestReportsArePerPolicy(t *testing.T) {
	f, _ := fixture()
	fair, example := made(release.Champion, "fleet", 10), of(other, made(release.Champion, "fleet", 20))
	offer(f, all(fair), all(example))
	f.End(f.Begin("a", has(fair)))
	f.Report("a", Status{Bundle: example.Bundle.Hash, Policy: "nonsense", State: Waiting})
	v, _ := f.Get("a")
	if v.Applied != fair.Bundle.Hash || v.State != "" || v.Policies[0].State != Waiting {
		t.Errorf("%+v", v)
	}
	gone, lost := strings.Repeat("c", 64), strings.Repeat("d", 64)
	f.Report("a", Status{Bundle: gone, Policy: other, Serial: 5, State: Restored})
	f.Report("a", Status{Bundle: gone, Serial: 5, State: Applied})
	f.Report("a", Status{Bundle: lost, Serial: 6, State: Restored})
	v, _ = f.Get("a")
	if v.Applied != lost || v.AppliedSerial != 6 || v.Policies[0].Applied != gone || v.Policies[0].AppliedSerial != 5 {
		t.Errorf("%+v", v)
	}
	for i := range 100 {
		f.Report("a", Status{Bundle: lost[:60] + fmt.Sprintf("%04d", i), Policy: fmt.Sprintf("p%d", i), State: Waiting})
	}
	if v, _ = f.Get("a"); len(v.Policies) > MaxPolicies {
		t.Errorf("%d policies of one AP are remembered", len(v.Policies))
	}
}

// What was stored before there were several policies is of rwnd-fair, and stays as it is where there are none.
func TestStoredAPs(t *testing.T) {
	const row = `{"ap_id":"a","site":"lab","agent":"0.3","boot_id":"7","applied":"h","applied_serial":10,` +
		`"applied_us":5,"state":"applied","reason":"none","reported":"h","reported_us":5,"last_seen_us":6,` +
		`"connected":true,"replica":"here","control":"on","certificate_not_after_us":9}`
	var stored AP
	if err := json.Unmarshal([]byte(row), &stored); err != nil {
		t.Fatal(err)
	}
	if stored.Applied != "h" || stored.AppliedSerial != 10 || stored.held("rwnd-fair").State != Applied ||
		stored.Several {
		t.Errorf("%+v", stored)
	}
	if again, _ := json.Marshal(stored); string(again) != row {
		t.Errorf("%s", again)
	}
	f, c := fixture()
	f.Merge([]AP{stored})
	f.End(f.Begin("a", Ask{InForce: "h", Others: map[string]string{other: "o"}}))
	text, err := json.Marshal(f.Dirty())
	var back []AP
	if err != nil || json.Unmarshal(text, &back) != nil {
		t.Fatal(err, string(text))
	}
	there := New("there", c.now, nil)
	there.Merge(back)
	if v, _ := there.Get("a"); !v.Several || v.AppliedSerial != 10 || len(v.Policies) != 1 ||
		v.Policies[0].Applied != "o" {
		t.Errorf("%s became %+v", text, v)
	}
}

func TestKillsAreOfAllPolicies(t *testing.T) {
	f, _ := fixture()
	fair, example := made(release.Champion, "fleet", 10), of(other, made(release.Champion, "fleet", 20))
	offer(f, all(fair), all(example))
	ask := has(fair, example)
	ask.Control = On
	p := f.Begin("a", ask)
	f.SetKills([]Kill{{Target: Target{Scope: "ap/a"}}})
	if now, news := f.Switched(p); now.Control != Off || !news || !woken(p) {
		t.Errorf("%+v, news %t", now, news)
	}
	if names, surplus := f.Policies(p); len(names) != 2 || surplus {
		t.Errorf("it keeps its bundles: %v", names)
	}
}
