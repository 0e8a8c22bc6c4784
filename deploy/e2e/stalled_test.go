package e2e

import (
	"fmt"
	"net/http"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/platform"
	"oal/deploy/internal/sim"
)

// polling is how many APs wait while the kill is sent.
const polling = 1000

// told is when each AP heard that control is off.
type told struct {
	lock sync.Mutex // guards at
	at   map[string]time.Time
}

func (h *told) hear(id string, killed bool, at time.Time) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if _, known := h.at[id]; killed && !known {
		h.at[id] = at
	}
}

// after is how long after a time each AP heard, the first first.
func (h *told) after(since time.Time) (all []time.Duration) {
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, at := range h.at {
		all = append(all, at.Sub(since))
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	return all
}

// killOf is a scope's kill as a replica has it.
func killOf(t *testing.T, r *platform.Replica, scope string) (k struct{ Killed, Stored bool }) {
	t.Helper()
	must(t, r.Get("/v1/control/kill/"+scope, &k))
	return k
}

// knownRevoked: does a replica know that an AP is? One that has not read of it yet does not.
func knownRevoked(r *platform.Replica, id string) bool {
	var ap struct{ Revoked bool }
	return r.Get("/v1/aps/"+id, &ap) == nil && ap.Revoked
}

// While PostgreSQL answers nobody, a kill reaches every AP that waits, and those that come; what opens is refused, the
// state says that it is stale, and all of it is stored when PostgreSQL is back.
func TestAStalledStoreStopsNoKill(t *testing.T) {
	t.Parallel()
	dsn, far, proxy := databaseBehind(t)
	one := start(t, config.Store{PostgresDSNFile: far, Timeout: time.Second})
	two := start(t, config.Store{PostgresDSNFile: dsn})
	heard := &told{at: map[string]time.Time{}}
	lab := &sim.Fleet{Address: one.Config.APListen, Roots: authority.Pool(), Keys: signer.Keys(), WaitS: 60,
		OnTurned: heard.hear, OnFailed: func(id string, err error) { t.Logf("%s: %v", id, err) }}
	must(t, lab.Add(authority, "stalled", "stalled-lab", polling))
	lab.Start()
	t.Cleanup(lab.Stop)
	var counts struct{ APs, Connected int }
	eventually(t, func() string { return fmt.Sprintf("all are connected: %+v", counts) }, func() bool {
		must(t, one.Get("/v1/control/kill/site/stalled-lab", &counts))
		return counts.Connected == polling
	})
	must(t, two.SetKill("fleet", true, "ann", "known before"))
	eventually(t, says("the other replica's kill is known"), func() bool { return killOf(t, one, "fleet").Killed })
	must(t, two.SetKill("fleet", false, "ann", "over"))
	killed(t, lab, 0)
	heard.lock.Lock()
	clear(heard.at)
	heard.lock.Unlock()

	resume := proxy.Stall()
	t.Cleanup(resume)
	asked := time.Now()
	out, err := one.Ctl("kill", "site/stalled-lab", "--reason", "users complain")
	if err != nil || !strings.Contains(out, `"stored": false`) || !strings.Contains(out, "not stored yet") {
		t.Errorf("%v %s", err, out)
	}
	killed(t, lab, polling)
	late := heard.after(asked)
	t.Logf("the store is away: a kill was heard by %d of %d APs; median %s, p99 %s, last %s (no bound: a figure)",
		len(late), polling, late[len(late)/2], late[len(late)*99/100], late[len(late)-1])
	if out, err := one.Ctl("revoke", "stalled-0001", "--reason", "stolen"); err != nil ||
		!strings.Contains(out, "not stored yet") {
		t.Errorf("%v %s", err, out)
	}
	newcomer := connect(t, one.Config.APListen, "stalled-new", "stalled-lab", 1)
	killed(t, newcomer, 1)
	eventually(t, says("metrics say that it is stale"), func() bool {
		return metricOf(t, one, `oal_deploy_stale_since_seconds{table="kills"}`) > 0 &&
			metricOf(t, one, `oal_deploy_stale_since_seconds{table="access"}`) > 0 &&
			metricOf(t, one, "oal_deploy_store_away_since_seconds") > 0 &&
			metricOf(t, one, `oal_deploy_unstored{table="kills"}`) == 1
	})
	if out, err := one.Ctl("kills"); err != nil || !strings.Contains(out, "stale since") {
		t.Errorf("%v %s", err, out)
	}
	for _, opens := range [][]string{{"unkill", "site/stalled-lab", "--reason", "over"}, {"restore", "stalled-0001"}} {
		if out, err := one.Ctl(opens...); err == nil || !strings.Contains(out, "503") {
			t.Errorf("%v: %v %s", opens, err, out)
		}
	}
	response, err := http.Get("http://" + one.Config.AdminListen + "/readyz")
	must(t, err)
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Error("a replica that can answer APs is not ready:", response.Status)
	}
	if !apOf(t, one, "stalled-0001").Revoked || lab.Killed() < polling-1 || killOf(t, two, "site/stalled-lab").Killed {
		t.Error("what is not stored is known elsewhere, or was taken back")
	}

	resume()
	eventually(t, says("the kill and the revocation are stored, and known at the other replica"), func() bool {
		return killOf(t, one, "site/stalled-lab").Stored && killOf(t, two, "site/stalled-lab").Killed &&
			knownRevoked(two, "stalled-0001")
	})
	eventually(t, says("metrics say that it is fresh"), func() bool {
		return metricOf(t, one, `oal_deploy_stale_since_seconds{table="kills"}`) == 0 &&
			metricOf(t, one, "oal_deploy_store_away_since_seconds") == 0 &&
			metricOf(t, one, `oal_deploy_unstored{table="access"}`) == 0
	})
	must(t, two.SetKill("site/stalled-lab", false, "ann", "over"))
	killed(t, newcomer, 0)
}
