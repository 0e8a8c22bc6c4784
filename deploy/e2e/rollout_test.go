package e2e

import (
	"path/filepath"
	"testing"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/config"
	"oal/deploy/internal/platform"
	"oal/deploy/internal/release"
	"oal/deploy/internal/sim"
)

func staged(share, soakS float64) func(map[string]any) {
	return func(record map[string]any) {
		record["rollout"] = map[string]any{"share": share, "soak_s": soakS, "activate_in_s": 0,
			"metric": "rejected_share", "limit": 0.5}
	}
}

// A rollout whose replica is killed in the middle ends as it would have: the same members, then everyone.
func TestKilledMidRollout(t *testing.T) {
	t.Parallel()
	r := start(t, config.Store{Path: filepath.Join(t.TempDir(), "state.db")})
	f := connect(t, r.Config.APListen, "killed", "k", 10)
	defer withdraw(t, "champion/site/k")
	first := send(t, release.Champion, "site/k", 1, nil)
	eventually(t, says("version 1 everywhere"), func() bool { return f.Have(first) == 10 })

	second := send(t, release.Champion, "site/k", 2, staged(0.3, 3), first)
	eventually(t, says("soaking at its members"), func() bool {
		return rolloutOf(t, r, second).Step == "soaking" && f.Have(second) == 3
	})
	r.Kill()
	if f.Have(second) != 3 || f.Have(first) != 7 {
		t.Fatalf("%d have version 2 in the soak", f.Have(second))
	}
	must(t, r.Start())
	id := rolloutOf(t, r, second).ID
	eventually(t, says("version 2 everywhere"), func() bool { return f.Have(second) == 10 })
	eventually(t, says("completed"), func() bool { return rolloutOf(t, r, second).Step == "completed" })
	steps(t, r, id, "started", "soaking", "expanded", "completed")
}

// Members that reject it abort a rollout; those that applied it go back to what they had.
func TestAbort(t *testing.T) {
	t.Parallel()
	r := start(t, config.Store{Path: filepath.Join(t.TempDir(), "state.db")})
	f := &sim.Fleet{Address: r.Config.APListen, Roots: authority.Pool(), Keys: signer.Keys(), WaitS: 60}
	must(t, f.Add(authority, "abort", "a", 4))
	f.Rejects = func(id string, b *bundle.Bundle) string {
		if b.Version == 2 && id != "abort-0001" {
			return "golden_mismatch"
		}
		return ""
	}
	f.Start()
	t.Cleanup(f.Stop)
	defer withdraw(t, "champion/site/a")
	first := send(t, release.Champion, "site/a", 1, nil)
	eventually(t, says("version 1 everywhere"), func() bool { return f.Have(first) == 4 })
	second := send(t, release.Champion, "site/a", 2, staged(1, 60), first)
	eventually(t, says("aborted"), func() bool { return rolloutOf(t, r, second).Step == "aborted" })
	eventually(t, says("version 1 everywhere again"), func() bool { return f.Have(first) == 4 })
	r.Kill()
	must(t, r.Start())
	late := connect(t, r.Config.APListen, "abort-late", "a", 1)
	eventually(t, says("a new AP gets version 1"), func() bool { return late.Have(first) == 1 })

	// A share is of the APs that are known; those of the first second were not yet stored when the replica was killed.
	var summary struct{ Known int }
	eventually(t, says("all APs are back"), func() bool {
		return r.Get("/v1/summary", &summary) == nil && summary.Known == 5
	})
	third := send(t, release.Champion, "site/a", 3, staged(0.25, 0), second, first)
	eventually(t, says("version 3 at a member"), func() bool { return f.Have(third)+late.Have(third) == 1 })
	var answer struct{ Step string }
	must(t, r.Post("/v1/rollouts/"+rolloutOf(t, r, third).ID+"/abort", &answer))
	eventually(t, says("version 1 after an abort by hand"), func() bool { return f.Have(first)+late.Have(first) == 5 })
}

// Two replicas on one PostgreSQL serve an AP each; when the leader is killed in a soak, the other ends the rollout.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()
	shared := config.Store{PostgresDSNFile: database(t)}
	a, b := start(t, shared), start(t, shared)
	defer withdraw(t, "champion/site/two")
	fa, fb := connect(t, a.Config.APListen, "two-a", "two", 5), connect(t, b.Config.APListen, "two-b", "two", 5)
	first := send(t, release.Champion, "site/two", 1, nil)
	eventually(t, says("version 1 everywhere"), func() bool { return fa.Have(first) == 5 && fb.Have(first) == 5 })
	known := func(r *platform.Replica) int {
		var summary struct{ Known int }
		_ = r.Get("/v1/summary", &summary)
		return summary.Known
	}
	eventually(t, says("both replicas know all APs"), func() bool { return known(a) == 10 && known(b) == 10 })

	leads := func(r *platform.Replica) bool {
		var summary struct{ Leading bool }
		_ = r.Get("/v1/summary", &summary)
		return summary.Leading
	}
	eventually(t, says("one leads"), func() bool { return leads(a) != leads(b) })
	leader, other, left := a, b, fb
	if leads(b) {
		leader, other, left = b, a, fa
	}
	second := send(t, release.Champion, "site/two", 2, staged(0.2, 10), first)
	// What an AP said to the leader alone dies with it. A real AP says it again in its next poll, to the other replica;
	// those of the simulator know one address.
	eventually(t, says("soaking at its members, as the other knows"), func() bool {
		return rolloutOf(t, other, second).Step == "soaking" && applied(t, other, second, "two-a", "two-b") == 2
	})
	id := rolloutOf(t, other, second).ID
	leader.Kill()
	eventually(t, says("the other leads"), func() bool { return leads(other) })
	eventually(t, func() string {
		return "version 2 at all APs that are left; it " + rolloutOf(t, other, second).Detail
	}, func() bool { return left.Have(second) == 5 })
	eventually(t, says("completed"), func() bool {
		step := rolloutOf(t, other, second).Step
		return step == "completed"
	})
	must(t, leader.Start())
	eventually(t, says("version 2 at the APs that come back"), func() bool {
		return fa.Have(second) == 5 && fb.Have(second) == 5
	})
	steps(t, other, id, "started", "soaking", "expanded", "completed")
}
