package admin

import (
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/release"
)

// What is of another policy than rwnd-fair is shown with its name, and is an answer of the document.
func TestPoliciesAreShown(t *testing.T) {
	x := start(t)
	for _, path := range []string{"/v1/summary", "/v1/fleet", "/v1/aps/ap-1", "/v1/rollouts"} {
		text := x.ask("GET", path, "", 200)
		if strings.Contains(text, `"polic`) || strings.Contains(text, `"several"`) {
			t.Errorf("%s names policies where there is none but rwnd-fair: %s", path, text)
		}
	}
	key, value, hash := x.signer.ReleaseOf("example", release.Champion, "fleet", 7, time.Now().UnixMicro(), nil)
	x.rollouts.Handle([]kafka.Record{{Key: key, Value: value}})
	x.until(func() bool { return len(x.rollouts.All()) == 3 })
	v, _ := x.fleet.Get("ap-1")
	x.fleet.End(x.fleet.Begin("ap-1", fleet.Ask{Site: "lab", InForce: v.Applied, Others: map[string]string{}}))
	x.fleet.Report("ap-1", fleet.Status{Bundle: hash, State: fleet.Rejected, Reason: "no_memory"})
	for path, want := range map[string]string{
		"/v1/summary": `"slot":"champion","scope":"fleet","policy":"example","model":"example","version":7,` +
			`"desired":1,"applied":0`,
		"/v1/aps/ap-1":             `"policies":[{"policy":"example","applied":"",`,
		"/v1/fleet?state=rejected": `"ap_id":"ap-1"`,
		"/v1/rollouts":             `"scope":"fleet","policy":"example","hash":"` + hash,
		"/v1/history":              `"key":"champion/fleet/example"`,
	} {
		if text := x.ask("GET", path, "", 200); !strings.Contains(text, want) {
			t.Errorf("%s: %s; want %s", path, text, want)
		}
	}
}
