package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/release"
	"oal/deploy/internal/sim"
)

func sendOf(t *testing.T, policy string, slot release.Slot, scope string, version uint32,
	change func(map[string]any), rollbackTo ...string) string {
	t.Helper()
	key, value, hash := signer.ReleaseOf(policy, slot, scope, version, time.Now().UnixMicro(), change, rollbackTo...)
	must(t, releaser.Send(kafka.Record{Key: key, Value: value}))
	return hash
}

// APs hold two policies. A canary of one leaves the other alone, its abort leads back, and a withdrawn one is given up;
// an AP with an older exporter has rwnd-fair all the while. All of it holds after a restart.
func TestTwoPolicies(t *testing.T) {
	t.Parallel()
	r := start(t, config.Store{Path: filepath.Join(t.TempDir(), "state.db")})
	f := &sim.Fleet{Address: r.Config.APListen, Roots: authority.Pool(), Keys: signer.Keys(), WaitS: 60, Several: true}
	must(t, f.Add(authority, "pol", "pol", 4))
	f.Start()
	t.Cleanup(f.Stop)
	old := connect(t, r.Config.APListen, "pol-old", "pol", 1)
	defer withdraw(t, "champion/site/pol", "champion/site/pol/example", "canary/site/pol/example")

	fair := send(t, release.Champion, "site/pol", 1, nil)
	example := sendOf(t, "example", release.Champion, "site/pol", 1, nil)
	holds := func(fairAt, exampleAt int) func() bool {
		return func() bool {
			return f.Have(fair)+old.Have(fair) == fairAt && f.Have(example) == exampleAt && old.Have(example) == 0
		}
	}
	eventually(t, says("both policies at four APs, rwnd-fair at the old one"), holds(5, 4))
	var view struct {
		Applied  string
		Policies []struct{ Policy, Applied, Desired, State string }
	}
	eventually(t, says("what an AP holds is shown"), func() bool {
		must(t, r.Get("/v1/aps/pol-0001", &view))
		return view.Applied == fair && len(view.Policies) == 1 && view.Policies[0].Policy == "example" &&
			view.Policies[0].Applied == example && view.Policies[0].State == "applied"
	})
	eventually(t, says("both rollouts completed"), func() bool {
		return rolloutOf(t, r, fair).Step == "completed" && rolloutOf(t, r, example).Step == "completed"
	})

	canary := sendOf(t, "example", release.Canary, "site/pol", 2, func(record map[string]any) {
		record["rollout"] = map[string]any{"share": 0.25}
	}, example)
	eventually(t, says("a canary of one policy at one AP"), func() bool {
		return f.Have(canary) == 1 && holds(5, 3)() && rolloutOf(t, r, canary).Step == "soaking"
	})
	r.Kill()
	must(t, r.Start())
	newer := send(t, release.Champion, "site/pol", 2, nil, fair)
	eventually(t, says("a release of rwnd-fair after a restart"), func() bool {
		return f.Have(newer)+old.Have(newer) == 5
	})
	if f.Have(canary) != 1 || f.Have(example) != 3 {
		t.Errorf("the canary is at %d APs, the champion of its policy at %d", f.Have(canary), f.Have(example))
	}
	var answer struct{ Step string }
	must(t, r.Post("/v1/rollouts/"+rolloutOf(t, r, canary).ID+"/abort", &answer))
	eventually(t, says("the canary's APs are led back"), func() bool {
		return f.Have(canary) == 0 && f.Have(example) == 4
	})

	withdraw(t, "champion/site/pol/example", "canary/site/pol/example")
	eventually(t, says("the withdrawn policy is given up"), func() bool { return f.Have(example) == 0 })
	if n := f.Have(newer) + old.Have(newer); n != 5 {
		t.Errorf("rwnd-fair is at %d APs", n)
	}
	eventually(t, says("nothing of it is shown"), func() bool {
		view.Policies = nil
		must(t, r.Get("/v1/aps/pol-0001", &view))
		return view.Policies == nil && view.Applied == newer
	})
	eventually(t, says("the canary's slot is empty"), func() bool {
		return rolloutOf(t, r, canary).Step == "superseded"
	})
	steps(t, r, rolloutOf(t, r, canary).ID, "started", "soaking", "aborted", "superseded")
}
