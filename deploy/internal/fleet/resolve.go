package fleet

import (
	"sort"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/release"
)

// desire is what an AP should have of one policy.
type desire struct {
	release    *release.Release // nil: nothing
	activateUS int64
}

func (d desire) hash() string {
	if d.release == nil {
		return ""
	}
	return d.release.Bundle.Hash
}

func inScope(a *AP, scope string) bool {
	return scope == "fleet" || scope == "site/"+a.Site && a.Site != "" || scope == "ap/"+a.ID
}

// reaches says whether an AP is inside the scope of the key that signed a release: only here is it known at which site
// it is. An AP that is not, or whose site is not known, is offered nothing that it would refuse.
func reaches(a *AP, rel *release.Release) bool { return rel.Bundle.Reaches(a.ID, a.Site) }

// resolve says what an AP should have of a policy. Policies know nothing of each other: each has slots, shares, pinned
// champions and variants of its own, and an AP compares serials among the bundles of one policy.
//
// A canary goes before a challenger, and that before the rest: of the champions of fleet, site and AP and the AP's
// online tree the one with the greatest rank, without online trees where a champion is pinned (there are none of other
// policies than rwnd-fair). An AP takes no bundle
// older than the one in force unless that one allows it (rollback_to); so the first of the list that it takes is
// desired. That leads an AP back from an aborted release in two steps where needed: first to the bundle before, then to
// its newer online tree.
func (f *Fleet) resolve(a *AP, policy string) desire {
	var list []desire
	for _, slot := range []release.Slot{release.Canary, release.Challenger} {
		list = append(list, f.pick(slot, policy, a, nil)...)
	}
	var pinnedSince int64 // online trees with a greater serial are out
	base := f.pick(release.Champion, policy, a, func(rel *release.Release, waiting bool) {
		if rel.Pinned && !waiting {
			pinnedSince = -1
		} else if rel.Pinned && pinnedSince == 0 {
			pinnedSince = rel.Bundle.Serial // it comes to this AP later, which would refuse it after a newer tree
		}
	})
	rel := f.online[a.ID]
	if rel != nil && rel.Policy() == policy && reaches(a, rel) &&
		(pinnedSince == 0 || rel.Bundle.Serial < pinnedSince) {
		base = append(base, desire{release: rel})
	}
	sort.SliceStable(base, func(i, j int) bool { return base[i].release.Order() > base[j].release.Order() })
	list = append(list, base...)
	if len(list) == 0 {
		return desire{}
	}
	for _, d := range list {
		if f.takes(a, d.release) {
			return d
		}
	}
	return list[0]
}

// pick is what a slot offers an AP of a policy, the greatest rank first. Where a site or an AP has a variant of the
// fleet's release, with numbers of its own, nothing is offered from the fleet's: it has other numbers. seen is told of
// each release in the slot.
func (f *Fleet) pick(slot release.Slot, policy string, a *AP, seen func(rel *release.Release, waiting bool)) []desire {
	var out []desire
	variant, most := false, bundle.Enforce
	for _, scope := range []string{"ap/" + a.ID, "site/" + a.Site, "fleet"} {
		offer := f.offers[release.Key(slot, scope, policy)]
		if offer == nil || variant && (scope == "fleet" || offer.Release.VariantOf != "") {
			continue
		}
		if scope == "fleet" && offer.Release.Bundle.Mode > most {
			continue // the place is to do less
		}
		if offer.Held && offer.Fallback == nil { // nobody has it yet
			if offer.Release.VariantOf != "" && reaches(a, offer.Release) {
				most = min(most, offer.Release.Bundle.Mode)
			}
			continue
		}
		variant = variant || offer.Release.VariantOf != "" && reaches(a, offer.Release)
		rel, activateUS, waiting := offer.Pick(a.ID)
		if rel != nil && reaches(a, rel) {
			out = append(out, desire{rel, activateUS})
			if seen != nil {
				seen(rel, false)
			}
		}
		if waiting && seen != nil && reaches(a, offer.Release) {
			seen(offer.Release, true)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].release.Order() > out[j].release.Order() })
	return out
}

// takes says whether an AP accepts a bundle by its serial, as far as is known.
func (f *Fleet) takes(a *AP, rel *release.Release) bool {
	h := a.held(rel.Policy())
	if h.Applied == "" || h.Applied == rel.Bundle.Hash {
		return true
	}
	serial := h.AppliedSerial
	if now := f.find(a.ID, h.Applied); now != nil {
		serial = now.Bundle.Serial
		for _, hash := range now.Bundle.RollbackTo {
			if hash == rel.Bundle.Hash {
				return true
			}
		}
	}
	return rel.Bundle.Serial > serial
}
