package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/platform"
	"oal/deploy/internal/sim"
)

func killed(t *testing.T, f *sim.Fleet, n int) {
	t.Helper()
	eventually(t, func() string { return fmt.Sprintf("%d APs with control off, there are %d", n, f.Killed()) },
		func() bool { return f.Killed() == n })
}

// Two replicas agree on what is switched off, whichever was told, and both know it after a power cut.
func TestKillSwitch(t *testing.T) {
	t.Parallel()
	shared := config.Store{PostgresDSNFile: database(t)}
	one, two := start(t, shared), start(t, shared)
	lab, hall := connect(t, one.Config.APListen, "kill-lab", "kill-lab", 5), connect(t, two.Config.APListen,
		"kill-hall", "kill-hall", 3)
	knowsAll := func(r *platform.Replica) bool {
		var s struct{ Connected int }
		must(t, r.Get("/v1/summary", &s))
		return s.Connected == 8
	}
	eventually(t, says("both know all"), func() bool { return knowsAll(one) && knowsAll(two) })

	for _, scope := range []string{"site/kill-la", "ap/kill-lab", "ap/kill-hall-0009"} {
		if err := one.SetKill(scope, true, "ann", "typing error"); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("%s: %v", scope, err)
		}
	}
	must(t, two.SetKill("site/kill-lab", true, "ann", "users complain"))
	killed(t, lab, 5)
	must(t, two.SetKill("ap/kill-hall-0002", true, "ann", "this one too"))
	killed(t, hall, 1)
	if out, err := one.Ctl("kill", "fleet", "--who", "bob", "--reason", "everything"); err != nil ||
		!strings.Contains(out, `"killed": true`) {
		t.Errorf("%v %s", err, out)
	}
	killed(t, hall, 3)
	heard := func() bool {
		var answer struct {
			Kills []struct {
				Scope, Who, Note string
				Heard            int
			}
		}
		must(t, two.Get("/v1/control/kill", &answer))
		return len(answer.Kills) == 3 && answer.Kills[0].Scope == "fleet" && answer.Kills[0].Who == "admin" &&
			answer.Kills[0].Note == "bob" && answer.Kills[0].Heard == 8
	}
	eventually(t, says("everyone said so, seen from the other replica"), heard)

	one.Kill()
	two.Kill()
	must(t, one.Start())
	must(t, two.Start())
	late := connect(t, one.Config.APListen, "kill-late", "kill-lab", 2)
	killed(t, late, 2)
	if lab.Killed() != 5 || hall.Killed() != 3 {
		t.Error("a service that was away changed something")
	}
	if out, err := two.Ctl("unkill", "fleet", "--who", "bob", "--reason", "over"); err != nil ||
		!strings.Contains(out, `"killed": false`) {
		t.Errorf("%v %s", err, out)
	}
	killed(t, hall, 1)
	must(t, one.SetKill("ap/kill-hall-0002", false, "ann", "over"))
	killed(t, hall, 0)
	if lab.Killed() != 5 || late.Killed() != 2 {
		t.Error("the site was switched on with the fleet")
	}
	if out, err := one.Ctl("kills"); err != nil || !strings.Contains(out, "site/kill-lab") ||
		!strings.Contains(out, "users complain") || strings.Contains(out, "fleet") {
		t.Errorf("%v %s", err, out)
	}
	must(t, two.SetKill("site/kill-lab", false, "ann", "over"))
	killed(t, lab, 0)
	killed(t, late, 0)
	byPolicy(t, one, two, hall)
	var lines []string
	for _, e := range history(t, one, "kill") {
		lines = append(lines, e.Key+" "+e.Detail)
	}
	want := []string{"site/kill-hall, policy rwnd-fair control on by admin for bob: over",
		"site/kill-hall, policy rwnd-fair control off by admin for ann: windows alone",
		"site/kill-lab control on by admin for ann: over",
		"ap/kill-hall-0002 control on by admin for ann: over", "fleet control on by admin for bob: over",
		"fleet control off by admin for bob: everything",
		"ap/kill-hall-0002 control off by admin for ann: this one too",
		"site/kill-lab control off by admin for ann: users complain"}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("history\n%s", strings.Join(lines, "\n"))
	}
}

// byPolicy kills one policy at a site, and takes it back at the other replica.
func byPolicy(t *testing.T, one, two *platform.Replica, hall *sim.Fleet) {
	t.Helper()
	off := func(n int) {
		t.Helper()
		eventually(t, func() string {
			return fmt.Sprintf("%d APs with rwnd-fair off, not %d",
				hall.KilledPolicies("rwnd-fair"), n)
		}, func() bool { return hall.KilledPolicies("rwnd-fair") == n })
	}
	if out, err := one.Ctl("kill", "fleet", "--policy", "marks", "--reason", "a typing error"); err == nil ||
		!strings.Contains(out, "known are") {
		t.Errorf("%v %s", err, out)
	}
	must(t, one.SetKillOf("rwnd-fair", "site/kill-hall", true, "ann", "windows alone"))
	off(3)
	if hall.Killed() != 0 {
		t.Error("other policies went off too")
	}
	if out, err := two.Ctl("kills"); err != nil || !strings.Contains(out, "site/kill-hall, policy rwnd-fair") {
		t.Errorf("%v %s", err, out)
	}
	if out, err := two.Ctl("unkill", "site/kill-hall", "--policy", "rwnd-fair", "--who", "bob", "--reason",
		"over"); err != nil || !strings.Contains(out, `"killed": false`) {
		t.Errorf("%v %s", err, out)
	}
	off(0)
}

func exporter(t *testing.T, r *platform.Replica, id, site string) *platform.Exporter {
	t.Helper()
	e, err := broker.NewExporter(t.TempDir(), authority, id, site, r.Config.APListen, keysFile)
	must(t, err)
	must(t, e.Start())
	t.Cleanup(e.Kill)
	return e
}

// The exporter hears the kill switch, keeps it over its own power cut and the service's absence, and hears when that is
// over.
func TestExporterHearsTheKillSwitch(t *testing.T) {
	t.Parallel()
	r := start(t, config.Store{Path: filepath.Join(t.TempDir(), "state.db")})
	e := exporter(t, r, "kill-ap", "kill-site")
	is := func(off bool) {
		t.Helper()
		eventually(t, func() string { return fmt.Sprintf("killed is %v at the exporter", off) }, func() bool {
			s, err := e.Status()
			return err == nil && s.Agent.Polls > 0 && len(s.Agent.APs) == 1 && s.Agent.APs[0].Killed == off
		})
	}
	is(false)
	eventually(t, says("the service knows it"), func() bool {
		return r.SetKill("site/kill-site", true, "ann", "x") == nil
	})
	is(true)
	eventually(t, says("the service knows that it heard"), func() bool {
		var k struct{ Connected, Heard int }
		must(t, r.Get("/v1/control/kill/site/kill-site", &k))
		return k.Connected == 1 && k.Heard == 1
	})
	must(t, r.SetKillOf("rwnd-fair", "fleet", true, "ann", "windows"))
	eventually(t, says("the exporter has a policy off by itself, and the service knows it"), func() bool {
		s, err := e.Status()
		var k struct{ Heard int }
		must(t, r.Get("/v1/control/kill/fleet?policy=rwnd-fair", &k))
		return err == nil && s.Agent.APs[0].KilledPolicies == "rwnd-fair" && k.Heard == 1
	})
	r.Kill()
	e.Kill()
	must(t, e.Start())
	eventually(t, says("it asks in vain"), func() bool {
		s, err := e.Status()
		return err == nil && s.Agent.PollErrors > 0
	})
	is(true)
	must(t, r.Start())
	must(t, r.SetKill("site/kill-site", false, "ann", "over"))
	is(false)
	if s, err := e.Status(); err != nil || s.Agent.APs[0].KilledPolicies != "rwnd-fair" {
		t.Errorf("%+v %v: that of the policy stays", s, err)
	}
	must(t, r.SetKillOf("rwnd-fair", "fleet", false, "ann", "over"))
	eventually(t, says("no policy is off by itself"), func() bool {
		s, err := e.Status()
		return err == nil && s.Agent.APs[0].KilledPolicies == ""
	})
}

// A record of the stream job becomes rows of the AP that shares the channel; withdrawn, they end.
func TestNeighboursBecomeRows(t *testing.T) {
	t.Parallel()
	r := start(t, config.Store{Path: filepath.Join(t.TempDir(), "state.db")})
	e := exporter(t, r, "near-ap", "near-site")
	tell := func(kbps int) {
		record := fmt.Sprintf(`{"site":"near-site","frequency_mhz":5180,"t_us":%d,"aps":[`+
			`{"ap_id":"other","stations":3,"tx_kbps":%d,"tx_airtime_permille":410,"busy_permille":700,`+
			`"loss_permille":12,"backlog_bytes":30000},{"ap_id":"near-ap","stations":1,"tx_kbps":1,`+
			`"tx_airtime_permille":1,"busy_permille":1,"loss_permille":1,`+
			`"backlog_bytes":1}]}`, time.Now().UnixMicro(), kbps)
		must(t, broker.WriteNeighbours("near-site/5180", []byte(record)))
	}
	tell(9000)
	rows := func(kbps float64) func() bool {
		return func() bool {
			rows, err := e.Rows("neighbour_ap")
			must(t, err)
			return len(rows) > 0 && rows[len(rows)-1]["tx_kbps"] == kbps
		}
	}
	eventually(t, says("rows of the neighbour"), rows(9000))
	tell(4000)
	eventually(t, says("rows of the news"), rows(4000))
	must(t, broker.WriteNeighbours("near-site/5180", nil))
	eventually(t, says("no more rows"), func() bool {
		before, err := e.Status()
		must(t, err)
		now := before
		eventually(t, says("two batches"), func() bool {
			now, err = e.Status()
			return err == nil && now.Ticks > before.Ticks+150
		})
		return now.TableRows["neighbour_ap"] == before.TableRows["neighbour_ap"]
	})
	e.Stop()
	all, err := e.Rows("neighbour_ap")
	must(t, err)
	for _, row := range all {
		// 64-bit FNV-1a of "other" without the highest bit is beyond what a JSON number in Go holds whole: its other
		// figures name it.
		if row["stations"] != 3.0 || row["frequency_mhz"] != 5180.0 || row["busy_permille"] != 700.0 ||
			row["backlog_bytes"] != 30000.0 {
			t.Fatalf("%v", row)
		}
	}
}
