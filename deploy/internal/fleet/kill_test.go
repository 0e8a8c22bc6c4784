package fleet

import (
	"fmt"
	"strings"
	"testing"
)

func woken(p *Poll) bool {
	select {
	case <-p.Wake():
		return true
	default:
		return false
	}
}

func TestScopesOfKills(t *testing.T) {
	for scope, good := range map[string]bool{"fleet": true, "site/lab": true, "ap/a.1-b_2": true, "": false,
		"fleet/": false, "fleet/x": false, "site": false,
		"site/": false, "ap/": false, "ap/a/b": false, "ap/..": false, "site/a b": false, "slot/x": false,
		"FLEET": false} {
		if err := (Target{Scope: scope}).Check(); (err == nil) != good {
			t.Errorf("%q: %v", scope, err)
		}
	}
	for policy, good := range map[string]bool{"mark": true, "rwnd-fair": true, "Mark": false, "a b": false,
		"../x": false} {
		if err := (Target{"fleet", policy}).Check(); (err == nil) != good {
			t.Errorf("policy %q: %v", policy, err)
		}
	}
}

func TestKillsWakeThoseConcernedAlone(t *testing.T) {
	f, _ := fixture()
	ask := func(id, site string, control Control) *Poll {
		return f.Begin(id, Ask{Site: site, Switched: Switched{Control: control}})
	}
	a, b, c, old := ask("a", "lab", On), ask("b", "hall", On), ask("c", "", Off), ask("old", "lab", "")
	if now, news := f.Switched(c); now.Control != On || !news {
		t.Errorf("an AP that has off while nothing is killed: %+v %v", now, news)
	}
	for _, step := range []struct {
		scopes                   string
		a, b, old                bool // is switched off
		wakesA, wakesB, wakesOld bool
	}{
		{"site/lab", true, false, true, true, false, true},
		{"site/hall", false, true, false, false, true, false}, // a and old never heard: for them nothing changed
		{"ap/a", true, false, false, true, false, false},
		{"fleet", true, true, true, true, true, true},
		{"site/", false, false, false, false, false, false}, // no site is not a site
	} {
		f.SetKills([]Kill{{Target: Target{Scope: step.scopes}}})
		for _, x := range []struct {
			p          *Poll
			off, wakes bool
		}{{a, step.a, step.wakesA}, {b, step.b, step.wakesB}, {old, step.old, step.wakesOld}} {
			now, news := f.Switched(x.p)
			if (now.Control == Off) != x.off || news != x.wakes || woken(x.p) != x.wakes {
				t.Errorf("%s: %s is %+v, news %v", step.scopes, x.p.a.ID, now, news)
			}
		}
	}
}

func TestCountsOfKills(t *testing.T) {
	f, clock := fixture()
	f.Begin("a", Ask{Site: "lab", Switched: Switched{Control: On}})
	f.End(f.Begin("b", Ask{Site: "lab", Switched: Switched{Control: Off}}))
	f.End(f.Begin("c", Ask{Site: "hall", Switched: Switched{Control: On}}))
	if !f.Knows("fleet") || !f.Knows("site/lab") || !f.Knows("ap/c") || f.Knows("site/la") || f.Knows("ap/lab") ||
		f.Knows("site/") {
		t.Error("who is known")
	}
	f.SetKills([]Kill{{Target: Target{Scope: "site/lab"}}})
	if got, want := f.CountKill(Target{Scope: "site/lab"}), (KillCounts{APs: 2, Connected: 2, Heard: 1}); got != want {
		t.Errorf("%+v", got)
	}
	if killed, unheard := f.CountKilled(); killed != 2 || unheard != 1 {
		t.Errorf("%d killed, %d unheard", killed, unheard)
	}
	clock.at = clock.at.Add(2 * connectedFor)
	f.Sweep(map[string]bool{"here": true})
	if got, want := f.CountKill(Target{Scope: "fleet"}), (KillCounts{APs: 3, Connected: 1, Heard: 0}); got != want {
		t.Errorf("after b and c have gone %+v", got)
	}
	if v, _ := f.Get("b"); !v.Killed || v.Control != Off {
		t.Errorf("%+v", v)
	}
	if v, _ := f.Get("c"); v.Killed {
		t.Errorf("%+v", v)
	}
}

func TestAPolicyIsKilledByItself(t *testing.T) {
	f, _ := fixture()
	knows := Switched{Control: On, ByPolicy: true}
	a, old := f.Begin("a", Ask{Site: "lab", Switched: knows}), f.Begin("old", Ask{Site: "lab",
		Switched: Switched{Control: On}})
	for _, step := range []struct {
		what     string
		kills    []Kill
		killed   string
		a, old   Control
		unheard  int
		newsForA bool
	}{
		{"one", []Kill{{Target: Target{"fleet", "mark"}}}, "mark", On, Off, 2, true},
		{"of two scopes", []Kill{{Target: Target{"site/lab", "mark"}}, {Target: Target{"ap/a", "cap"}}}, "cap mark", On,
			Off, 2, true},
		{"twice the same", []Kill{{Target: Target{"site/lab", "mark"}}, {Target: Target{"ap/a", "mark"}}}, "mark", On,
			Off, 2, true},
		{"beside all", []Kill{{Target: Target{"fleet", "mark"}}, {Target: Target{"site/lab", ""}}}, "mark", Off, Off, 2,
			true},
		{"of another site", []Kill{{Target: Target{"site/hall", "mark"}}}, "", On, On, 0, false},
	} {
		f.SetKills(step.kills)
		now, news := f.Switched(a)
		if now != (Switched{Control: step.a, Killed: step.killed, ByPolicy: true}) || news != step.newsForA {
			t.Errorf("%s: %+v, news %v", step.what, now, news)
		}
		// It would go on with what it knows nothing of, so it stops altogether.
		if now, _ := f.Switched(old); now != (Switched{Control: step.old}) {
			t.Errorf("%s: an exporter that knows no policies' kills: %+v", step.what, now)
		}
		if _, unheard := f.CountKilled(); unheard != step.unheard {
			t.Errorf("%s: %d unheard", step.what, unheard)
		}
	}
	f.SetKills([]Kill{{Target: Target{"fleet", "mark"}}})
	f.Begin("a", Ask{Site: "lab", Switched: Switched{Control: On, Killed: "mark", ByPolicy: true}})
	f.Begin("old", Ask{Site: "lab", Switched: Switched{Control: Off}})
	for target, heard := range map[Target]int{{"fleet", "mark"}: 2, {"fleet", "cap"}: 1, {"fleet", ""}: 1} {
		if c := f.CountKill(target); c.Heard != heard {
			t.Errorf("%s: %+v", target, c)
		}
	}
	if killed, unheard := f.CountKilled(); killed != 2 || unheard != 0 {
		t.Errorf("%d killed, %d unheard", killed, unheard)
	}
	if v, _ := f.Get("a"); v.Killed || len(v.KilledPolicies) != 1 {
		t.Errorf("%+v", v)
	}
}

// It could not keep so many names, and would forget some at its next start.
func TestMorePoliciesAreKilledThanAnAPKeeps(t *testing.T) {
	f, _ := fixture()
	a := f.Begin("a", Ask{Switched: Switched{Control: On, ByPolicy: true}})
	var kills []Kill
	for i := range MaxKilled + 1 {
		f.SetKills(kills)
		if now, _ := f.Switched(a); now.Control != On || len(strings.Fields(now.Killed)) != i {
			t.Errorf("%d policies: %+v", i, now)
		}
		kills = append(kills, Kill{Target: Target{"fleet", fmt.Sprintf("p%d", i)}})
	}
	f.SetKills(kills)
	if now, _ := f.Switched(a); now != (Switched{Control: Off, ByPolicy: true}) {
		t.Errorf("%+v", now)
	}
}
