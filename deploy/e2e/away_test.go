package e2e

import (
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/platform"
	"oal/deploy/internal/sim"
)

// awaySites have awayAPs each; one of them is switched off in each tenth of the outage.
const awaySites, awayAPs = 10, 20

// While PostgreSQL answers nobody for minutes, each of a row of kills is heard, and all of them are stored when it is
// back. `make soak` asks for it; the service's clock cannot be set, so the minutes are real.
func TestAStoreAwayForMinutes(t *testing.T) {
	away, err := time.ParseDuration(os.Getenv("OAL_STORE_AWAY"))
	if err != nil {
		t.Skip("set OAL_STORE_AWAY=3m")
	}
	dsn, far, proxy := databaseBehind(t)
	one := start(t, config.Store{PostgresDSNFile: far, Timeout: time.Second})
	two := start(t, config.Store{PostgresDSNFile: dsn})
	heard := &told{at: map[string]time.Time{}}
	var failures atomic.Int64
	aps := &sim.Fleet{Address: one.Config.APListen, Roots: authority.Pool(), Keys: signer.Keys(), WaitS: 20,
		OnTurned: heard.hear, OnFailed: func(string, error) { failures.Add(1) }}
	for i := range awaySites {
		must(t, aps.Add(authority, fmt.Sprintf("away%d", i), site(i), awayAPs))
	}
	aps.Start()
	t.Cleanup(aps.Stop)
	var counts struct{ Connected int }
	eventually(t, func() string { return fmt.Sprintf("all are connected: %+v", counts) }, func() bool {
		must(t, one.Get("/v1/control/kill/fleet", &counts))
		return counts.Connected == awaySites*awayAPs
	})

	resume := proxy.Stall()
	t.Cleanup(resume)
	begun, worst, ready := time.Now(), time.Duration(0), 0
	for i := range awaySites {
		time.Sleep(time.Until(begun.Add(away * time.Duration(i+1) / awaySites)))
		asked := time.Now()
		if out, err := one.Ctl("kill", "site/"+site(i), "--reason", "users complain"); err != nil {
			t.Errorf("%v %s", err, out)
		}
		killed(t, aps, (i+1)*awayAPs)
		late := heard.after(asked)
		worst = max(worst, late[len(late)-1])
		ready += readiness(t, one)
	}
	resume()
	back := time.Now()
	for i := range awaySites {
		eventually(t, says("kill "+site(i)+" is stored, and known at the other replica"), func() bool {
			return killOf(t, one, "site/"+site(i)).Stored && killOf(t, two, "site/"+site(i)).Killed
		})
	}
	t.Logf("the store was away for %s: %d kills were heard by %d of %d APs, the last after %s; ready at %d of %d "+
		"looks; %d polls failed; stored %s after it was back", away, awaySites, aps.Killed(), awaySites*awayAPs, worst,
		ready, awaySites, failures.Load(), time.Since(back))
}

func site(i int) string { return fmt.Sprintf("away-%d", i) }

// readiness is 1 when a replica says that it is ready.
func readiness(t *testing.T, r *platform.Replica) int {
	t.Helper()
	response, err := http.Get("http://" + r.Config.AdminListen + "/readyz")
	must(t, err)
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0
	}
	return 1
}
