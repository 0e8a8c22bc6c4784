package fleet

import "testing"

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
		if err := CheckScope(scope); (err == nil) != good {
			t.Errorf("%q: %v", scope, err)
		}
	}
}

func TestKillsWakeThoseConcernedAlone(t *testing.T) {
	f, _ := fixture()
	ask := func(id, site string, control Control) *Poll { return f.Begin(id, Ask{Site: site, Control: control}) }
	a, b, c, old := ask("a", "lab", On), ask("b", "hall", On), ask("c", "", Off), ask("old", "lab", "")
	if now, news := f.Control(c); now != On || !news {
		t.Errorf("an AP that has off while nothing is killed: %s %v", now, news)
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
		f.SetKills([]Kill{{Scope: step.scopes}})
		for _, x := range []struct {
			p          *Poll
			off, wakes bool
		}{{a, step.a, step.wakesA}, {b, step.b, step.wakesB}, {old, step.old, step.wakesOld}} {
			now, news := f.Control(x.p)
			if (now == Off) != x.off || news != x.wakes || woken(x.p) != x.wakes {
				t.Errorf("%s: %s is %s, news %v", step.scopes, x.p.a.ID, now, news)
			}
		}
	}
}

func TestCountsOfKills(t *testing.T) {
	f, clock := fixture()
	f.Begin("a", Ask{Site: "lab", Control: On})
	f.End(f.Begin("b", Ask{Site: "lab", Control: Off}))
	f.End(f.Begin("c", Ask{Site: "hall", Control: On}))
	if !f.Knows("fleet") || !f.Knows("site/lab") || !f.Knows("ap/c") || f.Knows("site/la") || f.Knows("ap/lab") ||
		f.Knows("site/") {
		t.Error("who is known")
	}
	f.SetKills([]Kill{{Scope: "site/lab"}})
	if got, want := f.CountKill("site/lab"), (KillCounts{APs: 2, Connected: 2, Heard: 1}); got != want {
		t.Errorf("%+v", got)
	}
	if killed, unheard := f.CountKilled(); killed != 2 || unheard != 1 {
		t.Errorf("%d killed, %d unheard", killed, unheard)
	}
	clock.at = clock.at.Add(2 * connectedFor)
	f.Sweep(map[string]bool{"here": true})
	if got, want := f.CountKill("fleet"), (KillCounts{APs: 3, Connected: 1, Heard: 0}); got != want {
		t.Errorf("after b and c have gone %+v", got)
	}
	if v, _ := f.Get("b"); !v.Killed || v.Control != Off {
		t.Errorf("%+v", v)
	}
	if v, _ := f.Get("c"); v.Killed {
		t.Errorf("%+v", v)
	}
}
