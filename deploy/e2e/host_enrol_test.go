package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oal/deploy/internal/config"
	"oal/deploy/internal/issue"
)

// The agent of a host is to the service what that of an access point is: it enrols by a ticket, polls, takes a bundle
// and gives it up, hears the kill switch for all and for one policy, signs its batches, and renews its certificate.
func TestHostEnrolsTakesABundleHearsTheKillSwitchAndRenews(t *testing.T) {
	t.Parallel()
	r := enrolling(t, config.Store{Path: filepath.Join(t.TempDir(), "state.db")}, keysFile)
	masters, err := issue.ReadMasters(r.Config.Enrol.MACMasters)
	must(t, err)
	h := newHost(t, r, "cache-1", "dc")
	ticket := ctl(t, r, "ticket", h.id, "--site", h.site)
	if out, err := h.enrol(ticket); err != nil || !strings.Contains(out, "host cache-1 at site dc is enrolled") {
		t.Fatalf("%v %s", err, out)
	}
	for _, file := range []string{"ap.key", "mac-keys"} {
		if info, err := os.Stat(h.file(file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", file, info, err)
		}
	}
	if out, err := h.enrol(ticket); err == nil || !strings.Contains(out, "has been used or has lapsed") {
		t.Errorf("the ticket a second time: %v %s", err, out)
	}
	h.nearlyOver(t, r)
	h.start(t)
	said := func(what string) func() string {
		return func() string { return fmt.Sprintf("%s: %+v", what, h.status()) }
	}
	eventually(t, said("renewed"), func() bool {
		s := h.status()
		return len(s.Agent.APs) == 1 && s.Agent.APs[0].Certificate.Renewed == 1 &&
			s.Agent.APs[0].Certificate.DaysLeft >= 28 && s.Agent.PollErrors == 0
	})

	scope := "ap/" + h.id
	defer withdraw(t, "champion/"+scope+"/example")
	hash := sendReal(t, "example", scope)
	applied := func(want string) func() bool {
		return func() bool {
			var view struct {
				Policies []struct{ Policy, Applied string }
			}
			s := h.status()
			if len(s.Agent.APs) != 1 || r.Get("/v1/aps/"+h.id, &view) != nil {
				return false
			}
			there := ""
			for _, held := range view.Policies {
				there += held.Applied
			}
			return s.Agent.APs[0].Policies["example"].Bundle == want && there == want
		}
	}
	eventually(t, said("a bundle, and the service knows"), applied(hash))

	killed := func(all bool, policies string) func() bool {
		return func() bool {
			s := h.status()
			return len(s.Agent.APs) == 1 && s.Agent.APs[0].Killed == all && s.Agent.APs[0].KilledPolicies == policies
		}
	}
	ctl(t, r, "kill", scope, "--policy", "example", "--reason", "users complain")
	eventually(t, said("one policy is off"), killed(false, "example"))
	ctl(t, r, "kill", "site/"+h.site, "--reason", "all of it")
	eventually(t, said("all are off"), killed(true, "example"))
	ctl(t, r, "unkill", "site/"+h.site, "--reason", "over")
	ctl(t, r, "unkill", scope, "--policy", "example", "--reason", "over")
	eventually(t, said("none is off"), killed(false, ""))

	withdraw(t, "champion/"+scope+"/example")
	eventually(t, said("it gives the bundle up"), applied(""))
	// What it sends of connections are events, as it has no access point to say samples of.
	if good, bad := h.signed(t, masters, "ap.events.v1"); good < 20 || bad > 0 {
		t.Errorf("%d batches with its MAC, %d without", good, bad)
	}
	ctl(t, r, "revoke", h.id, "--reason", "sold")
	eventually(t, said("revoked, it is refused"), func() bool { return h.status().Agent.PollErrors > 0 })
}
