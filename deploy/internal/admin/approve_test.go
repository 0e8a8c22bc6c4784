package admin

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
)

// Nobody has a champion before somebody approved it who did not promote it; who, when and why is written down.
func TestApprovals(t *testing.T) {
	x := startIn(t, filepath.Join(t.TempDir(), "state.db"), rollout.Gate{Required: true, Share: 0.1})
	id := map[release.Slot]string{}
	for _, r := range x.rollouts.All() {
		id[r.Slot] = r.ID
	}
	has := func(hash string, want int) {
		t.Helper()
		if list, _ := x.fleet.List("", 9, func(v *fleet.View) bool { return v.Desired == hash }); len(list) != want {
			t.Errorf("%d APs should have it, %d do", want, len(list))
		}
	}
	champion := x.rollouts.All()[1]
	has(champion.Hash, 0)
	if text := x.ask("GET", "/v1/rollouts", "", 200); !strings.Contains(text, `"step":"held"`) ||
		!strings.Contains(text, "it waits for an approval: `oal-deploy ctl approve "+champion.ID) {
		t.Error(text)
	}
	path := func(slot release.Slot, what string) string { return "/v1/rollouts/" + id[slot] + "/" + what }
	const good = `{"reason": "looked at its canary"}`
	for _, bad := range []string{"", "{}", `{"reason": ""}`, `{"reason": "x", "emergency": true}`} {
		x.askAs("dan's token", "POST", path(release.Champion, "approve"), bad, 400)
	}
	if text := x.ask("POST", path(release.Champion, "approve"), good, 403); !strings.Contains(text, "for approver") {
		t.Error(text)
	}
	if text := x.ask("POST", path(release.Canary, "expand"), "", 409); !strings.Contains(text, "needs an approval") {
		t.Error(text)
	}
	if text := x.askAs("dan's token", "POST", path(release.Champion, "approve"), good, 200); !strings.Contains(text,
		`"by":"dan","reason":"looked at its canary"`) || !strings.Contains(text, `"step":"started"`) {
		t.Error(text)
	}
	has(champion.Hash, 2) // and one the canary
	x.askAs("dan's token", "POST", path(release.Champion, "approve"), good, 409)
	if text := x.ask("GET", "/v1/audit", "", 200); !strings.Contains(text, `"user":"dan","role":"approver",`+
		`"address":"192.0.2.1","action":"approve","target":"POST `+path(release.Champion, "approve")+
		`","code":200,"note":"looked at its canary"`) {
		t.Error(text)
	}
	if text := x.ask("GET", "/v1/history", "", 200); !strings.Contains(text, `"step":"approved"`) ||
		!strings.Contains(text, "approved by dan: looked at its canary") {
		t.Error(text)
	}

	key, value, hash := x.signer.Release(release.Champion, "fleet", 3, time.Now().UnixMicro(),
		func(record map[string]any) { record["promoted_by"] = "dan" })
	x.rollouts.Handle([]kafka.Record{{Key: key, Value: value}})
	x.until(func() bool { return len(x.rollouts.All()) == 3 })
	own := "/v1/rollouts/" + x.rollouts.All()[0].ID
	if text := x.askAs("dan's token", "POST", own+"/approve", good, 403); !strings.Contains(text, "promoted a ver") {
		t.Error(text)
	}
	has(hash, 0)
	x.askAs("dan's token", "POST", own+"/approve-in-emergency", good, 403)
	if text := x.ask("POST", own+"/approve-in-emergency", good, 200); !strings.Contains(text, `"emergency":true`) ||
		!strings.Contains(text, "in an emergency approved by admin") {
		t.Error(text)
	}
	has(hash, 2)
	if n := testutil.ToFloat64(x.metrics.Approvals.WithLabelValues("emergency")); n != 1 {
		t.Errorf("%g approvals in an emergency", n)
	}
}
