// Package storetest is what every store must do. The embedded store is tested where it is, PostgreSQL beside the other
// real servers in e2e.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/store"
)

var ctx = context.Background()

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Open opens the same store each time; what was written is there again.
type Open func(t *testing.T) store.Store

// Contract is what each store does.
func Contract(t *testing.T, open Open) {
	s := open(t)
	r := &rollout.Rollout{ID: "r", Slot: "champion", Scope: "fleet", Hash: "h", Threshold: 1<<64 - 1,
		Step: rollout.Started, Revision: 1}
	row := json.RawMessage(`{"step": "started"}`)
	must(t, s.Step(ctx, r, []store.Entry{{TSUS: 1, Kind: "rollout", Key: "champion/fleet", Detail: "one", Row: row}}))
	if err := s.Step(ctx, r, nil); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the same step twice: %v", err)
	}
	r.Revision, r.Step = 3, rollout.Aborted
	if err := s.Step(ctx, r, []store.Entry{{Kind: "rollout", Row: row}}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a step that leaves one out: %v", err)
	}
	must(t, s.Log(ctx, store.Entry{TSUS: 2, Kind: "refused", Key: "x", Detail: "two"}))
	must(t, s.SaveRelease(ctx, "h", "champion/fleet", []byte("raw")))
	must(t, s.SaveRelease(ctx, "old", "champion/fleet", []byte("raw")))
	must(t, s.KeepReleases(ctx, map[string]bool{"h": true}))
	must(t, s.SaveAPs(ctx, []fleet.AP{{ID: "a", Site: "lab", LastSeenUS: 5, BootID: "18446744073709551615"},
		{ID: "b"}}))
	must(t, s.SaveAPs(ctx, []fleet.AP{{ID: "a", Site: "lab2", LastSeenUS: 6}}))
	must(t, s.SetKill(ctx, fleet.Kill{Target: fleet.Target{Scope: "site/lab"}, Who: "ann", Reason: "one", SinceUS: 3},
		store.Entry{TSUS: 3, Kind: "kill", Key: "site/lab", Detail: "three"}))
	must(t, s.SetKill(ctx, fleet.Kill{Target: fleet.Target{Scope: "fleet"}, Who: "ann", Reason: "all", SinceUS: 4},
		store.Entry{TSUS: 4, Kind: "kill"}))
	must(t, s.SetKill(ctx, fleet.Kill{Target: fleet.Target{Scope: "site/lab"}, Who: "bob", Reason: "two", SinceUS: 3},
		store.Entry{TSUS: 5, Kind: "kill"}))
	must(t, s.ClearKill(ctx, fleet.Target{Scope: "fleet"}, store.Entry{TSUS: 6, Kind: "kill", Key: "fleet",
		Detail: "four"}))
	must(t, s.AddTicket(ctx, store.Ticket{Hash: "lapsed", APID: "c", CreatedUS: 1, ExpiresUS: 10},
		store.Entry{Kind: "ticket"}))
	must(t, s.AddTicket(ctx, store.Ticket{Hash: "open", APID: "b", CreatedUS: 10, ExpiresUS: 99},
		store.Entry{Kind: "ticket"}))
	must(t, s.AddTicket(ctx, store.Ticket{Hash: "used", APID: "a", Site: "lab", CreatedUS: 10, ExpiresUS: 99},
		store.Entry{Kind: "ticket"}))
	used := store.Ticket{Hash: "used", APID: "a", Site: "lab", CreatedUS: 10, ExpiresUS: 99, UsedUS: 11, Key: "k",
		Certificate: "c"}
	must(t, s.UseTicket(ctx, used, store.Entry{Kind: "enrolled"}))
	for _, hash := range []string{"used", "lapsed", "none"} {
		if err := s.UseTicket(ctx, store.Ticket{Hash: hash, UsedUS: 12}, store.Entry{Kind: "wrong"}); !errors.Is(err,
			store.ErrConflict) {
			t.Errorf("ticket %s was used: %v", hash, err)
		}
	}
	if err := s.RemoveTicket(ctx, "none", store.Entry{Kind: "wrong"}); !errors.Is(err, store.ErrConflict) {
		t.Error(err)
	}
	must(t, s.SetAccess(ctx, store.Access{APID: "b", Revoked: true, ChangedUS: 1, Who: "ann", Reason: "one"},
		store.Entry{Kind: "access"}))
	must(t, s.SetAccess(ctx, store.Access{APID: "a", Revoked: true, ChangedUS: 2, Who: "ann"},
		store.Entry{Kind: "access"}))
	must(t, s.SetAccess(ctx, store.Access{APID: "b", ChangedUS: 3, Who: "bob", Reason: "two"},
		store.Entry{Kind: "access"}))
	must(t, s.AccessSent(ctx, []store.Access{{APID: "a", ChangedUS: 2}, {APID: "b", ChangedUS: 1},
		{APID: "none", ChangedUS: 1}}))
	for i := range 3 {
		must(t, s.LogAudit(ctx, store.Audit{TSUS: int64(i), User: "ann", Action: "kill", Code: 200}))
	}
	must(t, s.Close())

	s = open(t) // all of it is there after a restart
	defer s.Close()
	must(t, s.Ping(ctx))
	rollouts, err := s.Rollouts(ctx)
	must(t, err)
	if len(rollouts) != 1 || rollouts[0].Step != rollout.Started || rollouts[0].Threshold != 1<<64-1 {
		t.Errorf("rollouts %+v", rollouts)
	}
	pending, err := s.Pending(ctx, 10)
	must(t, err)
	if len(pending) != 1 || !strings.Contains(string(pending[0].Row), "started") {
		t.Fatalf("pending %+v: the row of a refused step must not be sent", pending)
	}
	must(t, s.Acknowledged(ctx, []int64{pending[0].Seq}))
	if pending, _ = s.Pending(ctx, 10); len(pending) != 0 {
		t.Errorf("pending after acknowledgement: %+v", pending)
	}
	history, err := s.History(ctx, 0, 100)
	must(t, err)
	kinds := ""
	for len(history) > 6 && history[0].Kind != "kill" {
		kinds, history = history[0].Kind+" "+kinds, history[1:]
	}
	if kinds != "ticket ticket ticket enrolled access access access " {
		t.Errorf("history of access: %s", kinds)
	}
	if len(history) != 6 || history[0].Detail != "four" || history[3].Detail != "three" || history[4].Detail != "two" ||
		history[5].Detail != "one" || history[5].Row == nil {
		t.Fatalf("history %+v", history)
	}
	kills, err := s.Kills(ctx)
	must(t, err)
	site := fleet.Kill{Target: fleet.Target{Scope: "site/lab"}, Who: "bob", Reason: "two", SinceUS: 3}
	if len(kills) != 1 || kills[0] != site {
		t.Errorf("kills %+v", kills)
	}
	mark := fleet.Kill{Target: fleet.Target{Scope: "site/lab", Policy: "mark"}, Who: "ann", Reason: "x", SinceUS: 5}
	must(t, s.SetKill(ctx, mark, store.Entry{Kind: "kill"}))
	if kills, err = s.Kills(ctx); err != nil || len(kills) != 2 || kills[0] != site || kills[1] != mark {
		t.Errorf("of a policy beside all of them: %+v %v", kills, err)
	}
	must(t, s.ClearKill(ctx, mark.Target, store.Entry{Kind: "kill"}))
	if kills, err = s.Kills(ctx); err != nil || len(kills) != 1 || kills[0] != site {
		t.Errorf("that of all policies stays: %+v %v", kills, err)
	}
	older, err := s.History(ctx, history[4].Seq, 10)
	must(t, err)
	if len(older) != 1 || older[0].Detail != "one" {
		t.Errorf("history before the newest %+v", older)
	}
	tickets, err := s.Tickets(ctx)
	must(t, err)
	if len(tickets) != 2 || tickets[0] != used || tickets[1].Hash != "open" {
		t.Errorf("tickets %+v", tickets)
	}
	must(t, s.RemoveTicket(ctx, "open", store.Entry{Kind: "ticket"}))
	if one, err := s.Ticket(ctx, "open"); err != nil || one != nil {
		t.Errorf("a removed ticket: %+v %v", one, err)
	}
	if one, err := s.Ticket(ctx, "used"); err != nil || one == nil || *one != used {
		t.Errorf("a used ticket: %+v %v", one, err)
	}
	access, err := s.Access(ctx)
	must(t, err)
	if len(access) != 2 || access[0] != (store.Access{APID: "a", Revoked: true, ChangedUS: 2, Who: "ann",
		Sent: true}) ||
		access[1] != (store.Access{APID: "b", ChangedUS: 3, Who: "bob", Reason: "two"}) {
		t.Errorf("access %+v: what changed after it was sent is not sent", access)
	}
	audit, err := s.AuditLog(ctx, 0, 2)
	must(t, err)
	if len(audit) != 2 || audit[0].TSUS != 2 || audit[1].TSUS != 1 {
		t.Fatalf("audit log %+v", audit)
	}
	if audit, err = s.AuditLog(ctx, audit[1].Seq, 9); err != nil || len(audit) != 1 || audit[0].User != "ann" {
		t.Errorf("audit log before the newest %+v %v", audit, err)
	}
	key, raw, err := s.Release(ctx, "h")
	if err != nil || key != "champion/fleet" || string(raw) != "raw" {
		t.Errorf("release %s %s %v", key, raw, err)
	}
	if _, raw, err = s.Release(ctx, "old"); err != nil || raw != nil {
		t.Errorf("a release that was not kept: %s %v", raw, err)
	}
	aps, err := s.APs(ctx, time.Time{})
	must(t, err)
	if len(aps) != 2 || aps[0].Site+aps[1].Site != "lab2" {
		t.Errorf("APs %+v", aps)
	}
	must(t, s.Forget(ctx, []string{"r"}))
	if rollouts, _ = s.Rollouts(ctx); len(rollouts) != 0 {
		t.Errorf("forgotten rollouts %+v", rollouts)
	}
}

// Shared is what a store does beyond that which several replicas share.
func Shared(t *testing.T, open Open) {
	leads(t, open)
	replicas(t, open)
}

// One of two leads; when it goes, the other does.
func leads(t *testing.T, open Open) {
	a, b := open(t), open(t)
	defer b.Close()
	own, end := context.WithCancel(ctx)
	_, err := a.Lead(own)
	must(t, err)
	other := make(chan error, 1)
	go func() {
		_, err := b.Lead(ctx)
		other <- err
	}()
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := b.Lead(short); err == nil {
		t.Error("two lead")
	}
	end()
	a.Close()
	select {
	case err := <-other:
		must(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("nobody leads within 20 s")
	}
}

func replicas(t *testing.T, open Open) {
	s := open(t)
	defer s.Close()
	_, err := s.Alive(ctx, "one")
	must(t, err)
	alive, err := s.Alive(ctx, "two")
	must(t, err)
	if !alive["one"] || !alive["two"] || len(alive) != 2 {
		t.Errorf("alive %v", alive)
	}
	// What an older replica saw does not replace what a newer one did.
	must(t, s.SaveAPs(ctx, []fleet.AP{{ID: "c", Site: "new", LastSeenUS: 9}}))
	must(t, s.SaveAPs(ctx, []fleet.AP{{ID: "c", Site: "old", LastSeenUS: 3}}))
	aps, err := s.APs(ctx, time.Now())
	must(t, err)
	for _, a := range aps {
		if a.ID == "c" && a.Site != "new" {
			t.Errorf("%+v", a)
		}
	}
}
