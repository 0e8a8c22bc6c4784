package fleet

import (
	"testing"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
)

// variant of a fleet's release, with a policy of its own.
func variant(of *release.Release, scope string, serial int64) *release.Release {
	r := made(of.Slot, scope, serial, of)
	r.Rank, r.VariantOf = of.Order(), of.Bundle.Hash
	return r
}

func TestAVariantStandsInForTheFleetsRelease(t *testing.T) {
	f, _ := fixture()
	fleetWide := made(release.Champion, "fleet", 10)
	there := variant(fleetWide, "site/lab", 30)
	f.SetOnline("a", made(release.Online, "ap/a", 20))
	offer(f, all(fleetWide), all(there))
	if a, b := desired(f, "a", nil), desired(f, "b", nil); a != 20 || b != 30 {
		t.Errorf("its rank is the fleet's: before it go online trees made later, %d, and nothing else, %d", a, b)
	}
	newer := made(release.Champion, "fleet", 40)
	offer(f, all(newer), all(there))
	if got := desired(f, "b", there); got != 30 {
		t.Errorf("a newer release for the fleet has the fleet's policy, and waits for its variant: %d", got)
	}
	offer(f, all(newer), all(variant(newer, "site/lab", 41)))
	if got := desired(f, "b", there); got != 41 {
		t.Errorf("the newer variant: %d", got)
	}
	offer(f, all(newer))
	if got := desired(f, "b", there); got != 40 {
		t.Errorf("without a policy of its own the site has the fleet's: %d", got)
	}
}

func TestAVariantOfAnAPGoesBeforeThatOfItsSite(t *testing.T) {
	f, _ := fixture()
	fleetWide := made(release.Champion, "fleet", 10)
	offer(f, all(fleetWide), all(variant(fleetWide, "site/lab", 12)), all(variant(fleetWide, "ap/a", 11)))
	if a, b := desired(f, "a", nil), desired(f, "b", nil); a != 11 || b != 12 {
		t.Errorf("%d, %d", a, b)
	}
	// A site's own champion is another model: the later of the two is wanted.
	offer(f, all(fleetWide), all(made(release.Champion, "site/lab", 20)), all(variant(fleetWide, "ap/a", 11)))
	if a, b := desired(f, "a", nil), desired(f, "b", nil); a != 20 || b != 20 {
		t.Errorf("%d, %d", a, b)
	}
}

func TestAVariantOutsideItsShareDoesNotFallBackToTheFleets(t *testing.T) {
	f, _ := fixture()
	before, next := made(release.Champion, "fleet", 10), made(release.Champion, "fleet", 20)
	there := variant(next, "site/lab", 21)
	offer(f, all(next), &rollout.Offer{Slot: release.Champion, Scope: "site/lab", Release: there, Rollout: "r",
		Fallback: all(variant(before, "site/lab", 11))})
	if got := desired(f, "a", nil); got != 11 {
		t.Errorf("its site's earlier one: %d", got)
	}
	canary := made(release.Canary, "fleet", 30)
	offer(f, all(before), all(canary), &rollout.Offer{Slot: release.Canary, Scope: "site/lab", Release: variant(canary,
		"site/lab", 31), Rollout: "c"})
	if got := desired(f, "a", nil); got != 10 {
		t.Errorf("no member of its site's canary: %d", got)
	}
}

// A variant that nobody approved leaves its place to the fleet's, unless that lets APs do more.
func TestAVariantThatIsHeld(t *testing.T) {
	f, _ := fixture()
	fleetWide := made(release.Champion, "fleet", 10)
	there := variant(fleetWide, "site/lab", 11)
	held := &rollout.Offer{Slot: release.Champion, Scope: "site/lab", Release: there, Rollout: "r", Off: true,
		Held: true}
	for _, c := range []struct {
		fleets, its bundle.Mode
		want        int64
	}{{bundle.Shadow, bundle.Enforce, 10}, {bundle.Shadow, bundle.Shadow, 10}, {bundle.Enforce, bundle.Shadow, 0}} {
		fleetWide.Bundle.Mode, there.Bundle.Mode = c.fleets, c.its
		offer(f, all(fleetWide), held)
		if got := desired(f, "a", nil); got != c.want {
			t.Errorf("the fleet's is %s, its own %s: it should have %d, not %d", c.fleets, c.its, c.want, got)
		}
	}
	fleetWide.Bundle.Mode = bundle.Enforce
	held.Fallback = all(variant(made(release.Champion, "fleet", 5), "site/lab", 6))
	offer(f, all(fleetWide), held)
	if got := desired(f, "a", nil); got != 6 {
		t.Errorf("its earlier variant: %d", got)
	}
}

func TestANewPolicyKeepsItsPlace(t *testing.T) {
	f, _ := fixture()
	champion, site := made(release.Champion, "fleet", 10), made(release.Champion, "site/lab", 20)
	again := made(release.Champion, "fleet", 40, champion)
	again.Rank = 10
	f.SetOnline("a", made(release.Online, "ap/a", 30))
	offer(f, all(again), all(site))
	if a, b := desired(f, "a", nil), desired(f, "b", nil); a != 30 || b != 20 {
		t.Errorf("after a policy changed for the fleet: %d, %d", a, b)
	}
	offer(f, all(again))
	if got := desired(f, "b", champion); got != 40 {
		t.Errorf("who has the older bundle takes the newer: %d", got)
	}
}
