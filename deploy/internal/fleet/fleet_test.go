package fleet

import (
	"fmt"
	"math"
	"testing"
	"time"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
)

type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func fixture() (*Fleet, *clock) {
	c := &clock{time.UnixMicro(1790000000000000)}
	return New("here", c.now, func(release.Slot, time.Duration) {}), c
}

func made(slot release.Slot, scope string, serial int64, rollbackTo ...*release.Release) *release.Release {
	r := &release.Release{Slot: slot, Scope: scope, CreatedUS: serial,
		Bundle: bundle.Bundle{Hash: fmt.Sprintf("%064x", serial), Serial: serial, RollbackTo: nil,
			KeyScope: bundle.Fleet}}
	for _, older := range rollbackTo {
		r.Bundle.RollbackTo = append(r.Bundle.RollbackTo, older.Bundle.Hash)
	}
	return r
}

func all(rel *release.Release) *rollout.Offer {
	return &rollout.Offer{Slot: rel.Slot, Scope: rel.Scope, Release: rel, Rollout: rel.ID(), All: true}
}

func offer(f *Fleet, offers ...*rollout.Offer) {
	var known []*release.Release
	for _, o := range offers {
		for ; o != nil; o = o.Fallback {
			known = append(known, o.Release)
		}
	}
	f.SetOffers(offers, known)
}

// desired of an AP that has the given bundle in force.
func desired(f *Fleet, id string, inForce *release.Release) int64 {
	hash := ""
	if inForce != nil {
		hash = inForce.Bundle.Hash
	}
	p := f.Begin(id, Ask{Site: "lab", InForce: hash})
	defer f.End(p)
	rel, _, _ := f.Desired(p)
	if rel == nil {
		return 0
	}
	return rel.Bundle.Serial
}

func TestResolution(t *testing.T) {
	f, _ := fixture()
	fleetWide, site := made(release.Champion, "fleet", 10), made(release.Champion, "site/lab", 20)
	if got := desired(f, "a", nil); got != 0 {
		t.Errorf("nothing released: %d", got)
	}
	offer(f, all(fleetWide), all(site), all(made(release.Champion, "site/other", 99)))
	if got := desired(f, "a", nil); got != 20 {
		t.Errorf("the greater serial of fleet and site: %d", got)
	}
	f.SetOnline("a", made(release.Online, "ap/a", 30))
	if a, b := desired(f, "a", nil), desired(f, "b", nil); a != 30 || b != 20 {
		t.Errorf("an online tree is for its AP: %d, %d", a, b)
	}
	f.SetOnline("a", made(release.Online, "ap/a", 15))
	if got := desired(f, "a", nil); got != 20 {
		t.Errorf("a champion after the online tree: %d", got)
	}
	canary := made(release.Canary, "fleet", 40)
	challenger := made(release.Challenger, "fleet", 50)
	offer(f, all(fleetWide), all(canary), all(challenger))
	if got := desired(f, "a", nil); got != 40 {
		t.Errorf("a canary goes before a challenger: %d", got)
	}
	offer(f, all(fleetWide), all(challenger))
	if got := desired(f, "a", nil); got != 50 {
		t.Errorf("a challenger goes before the rest: %d", got)
	}
}

func TestPinnedChampionForbidsOnlineTrees(t *testing.T) {
	f, _ := fixture()
	pinned := made(release.Champion, "fleet", 10)
	pinned.Pinned = true
	f.SetOnline("a", made(release.Online, "ap/a", 30))
	offer(f, all(pinned))
	if got := desired(f, "a", nil); got != 10 {
		t.Errorf("pinned: %d", got)
	}
	// While it is on its way, an AP outside its share gets no tree after which it would refuse the pinned release.
	before := made(release.Champion, "fleet", 5)
	staged := &rollout.Offer{Slot: release.Champion, Scope: "fleet", Release: pinned, Rollout: "r",
		Fallback: all(before)}
	offer(f, staged)
	if got := desired(f, "a", nil); got != 5 {
		t.Errorf("a newer tree before the pinned release: %d", got)
	}
	f.SetOnline("a", made(release.Online, "ap/a", 7))
	if got := desired(f, "a", nil); got != 7 {
		t.Errorf("an older tree may stay: %d", got)
	}
}

func TestShareOfAChampionAndOfACanary(t *testing.T) {
	f, _ := fixture()
	before, next := made(release.Champion, "fleet", 10), made(release.Champion, "fleet", 20)
	canary := made(release.Canary, "fleet", 30)
	half := uint64(math.MaxUint64 / 2)
	offer(f, &rollout.Offer{Slot: release.Champion, Scope: "fleet", Release: next, Rollout: "r", Threshold: half,
		Fallback: all(before)},
		&rollout.Offer{Slot: release.Canary, Scope: "fleet", Release: canary, Rollout: "c", Threshold: half})
	count := map[int64]int{}
	for i := range 400 {
		id := fmt.Sprintf("ap-%d", i)
		got := desired(f, id, nil)
		count[got]++
		if want := rollout.Position("c", id) <= half; want != (got == 30) {
			t.Fatalf("%s has %d", id, got)
		}
	}
	if count[10] == 0 || count[20] == 0 || count[10]+count[20]+count[30] != 400 {
		t.Errorf("%v", count)
	}
}

func TestAbortLeadsBackInStepsThatTheAPTakes(t *testing.T) {
	f, _ := fixture()
	before := made(release.Champion, "fleet", 10)
	tree := made(release.Online, "ap/a", 15)
	bad := made(release.Champion, "fleet", 20, before)
	f.SetOnline("a", tree)
	offer(f, &rollout.Offer{Slot: release.Champion, Scope: "fleet", Release: bad, Rollout: "r", All: true, Off: true,
		Fallback: all(before)})
	if got := desired(f, "a", bad); got != 10 {
		t.Errorf("from the aborted release to the one it names: %d", got)
	}
	if got := desired(f, "a", before); got != 15 {
		t.Errorf("and from there to the newer online tree: %d", got)
	}
}

func TestRejectedBundleIsNotPushedAgain(t *testing.T) {
	f, c := fixture()
	before, bad := made(release.Champion, "fleet", 10), made(release.Champion, "fleet", 20)
	offer(f, all(bad))
	due := func() bool {
		p := f.Begin("a", Ask{Site: "lab", InForce: before.Bundle.Hash})
		defer f.End(p)
		_, _, send := f.Desired(p)
		return send
	}
	if !due() {
		t.Error("it is news at first")
	}
	f.Report("a", Status{Bundle: bad.Bundle.Hash, State: Rejected, Reason: "golden_mismatch"})
	if due() {
		t.Error("the AP has said no")
	}
	if n := f.Count(bad.Bundle.Hash, "fleet"); n.Rejected != 1 || n.Pending != 0 || n.Applied != 0 {
		t.Errorf("%+v", n)
	}
	c.at = c.at.Add(retryRejected + time.Second)
	if !due() {
		t.Error("after a while it is asked again: its keys or memory may have changed")
	}
}

func TestOneReleaseWakesOnlyThoseConcerned(t *testing.T) {
	f, _ := fixture()
	champion := made(release.Champion, "fleet", 10)
	offer(f, all(champion))
	a, b := f.Begin("a", Ask{Site: "lab", InForce: champion.Bundle.Hash}),
		f.Begin("b", Ask{Site: "lab", InForce: champion.Bundle.Hash})
	f.SetOnline("a", made(release.Online, "ap/a", 20))
	if !woken(a) || woken(b) {
		t.Error("an online tree wakes its AP, and no other")
	}
	a = f.Begin("a", Ask{Site: "lab", InForce: made(release.Online, "ap/a", 20).Bundle.Hash}) // it has the tree now
	f.SetOffers([]*rollout.Offer{all(made(release.Champion, "fleet", 15))}, nil)
	if woken(a) || !woken(b) {
		t.Error("an older champion is nothing for an AP with a newer tree")
	}
}

func TestNewerPollTakesThePlaceOfTheOlder(t *testing.T) {
	f, _ := fixture()
	old := f.Begin("a", Ask{Site: "lab"})
	next := f.Begin("a", Ask{Site: "lab"})
	select {
	case <-old.Gone():
	default:
		t.Error("the older poll goes on")
	}
	f.End(old)
	offer(f, all(made(release.Champion, "fleet", 10)))
	if _, _, send := f.Desired(next); !send {
		t.Error("the end of the older poll has ended the newer")
	}
}

func TestLostReportIsInTheTag(t *testing.T) {
	f, _ := fixture()
	champion := made(release.Champion, "fleet", 10)
	offer(f, all(champion))
	desired(f, "a", champion)
	if n := f.Count(champion.Bundle.Hash, "fleet"); n.Applied != 1 {
		t.Errorf("%+v", n)
	}
	if desired(f, "a", nil); f.Count(champion.Bundle.Hash, "fleet").Applied != 0 {
		t.Error("an AP without a bundle has lost it")
	}
}

func TestSweepAndStore(t *testing.T) {
	f, c := fixture()
	p := f.Begin("a", Ask{Site: "lab", Agent: "1.0"})
	if f.Sweep(nil) != 1 {
		t.Error("an AP in a poll is connected, however long")
	}
	stored := f.Dirty()
	if len(stored) != 1 || stored[0].ID != "a" || len(f.Dirty()) != 0 {
		t.Errorf("%+v", stored)
	}
	f.End(p)
	c.at = c.at.Add(connectedFor + time.Second)
	if f.Sweep(nil) != 0 || len(f.Dirty()) != 1 {
		t.Error("an AP that does not come back is not connected")
	}
	other := New("there", c.now, nil)
	other.Merge(stored)
	if other.Sweep(map[string]bool{"here": true}) != 1 || other.Sweep(map[string]bool{}) != 0 {
		t.Error("the APs of a replica are connected as long as that lives")
	}
}

func TestList(t *testing.T) {
	f, _ := fixture()
	for i := range 5 {
		desired(f, fmt.Sprintf("ap-%d", i), nil)
	}
	page, more := f.List("", 2, nil)
	if len(page) != 2 || !more || page[1].ID != "ap-1" {
		t.Errorf("%+v %t", page, more)
	}
	page, more = f.List("ap-3", 2, func(v *View) bool { return v.Site == "lab" })
	if len(page) != 1 || more {
		t.Errorf("%+v %t", page, more)
	}
}
