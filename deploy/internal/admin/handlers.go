package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/rollouts"
	"oal/deploy/internal/store"
)

const (
	defaultPage = 100  // rows of a page: more than a screen
	maxPage     = 1000 // rows: some 500 KB of JSON
)

// summary of the fleet: how many APs have what.
type summary struct {
	Known     int            `json:"known"`
	Connected int            `json:"connected"`
	Current   int            `json:"current"` // have what they should have
	Rejecting int            `json:"rejecting"`
	Killed    int            `json:"killed"`  // the kill switch is on for them
	Unheard   int            `json:"unheard"` // of these, connected and not yet said to have heard
	Leading   bool           `json:"leading"`
	StoreAway int64          `json:"store_away_since_us"` // 0: the store answers
	Versions  []versionCount `json:"versions"`
}

type versionCount struct {
	Slot    string `json:"slot"`
	Scope   string `json:"scope"`
	Policy  string `json:"policy,omitempty"` // empty: rwnd-fair
	Model   string `json:"model"`
	Version uint32 `json:"version"`
	Desired int    `json:"desired"`
	Applied int    `json:"applied"`
}

func (a *Server) summary(w http.ResponseWriter, _ *http.Request) {
	s := summary{Leading: a.Rollouts.Leading(), Versions: []versionCount{}}
	if since := a.StoreAway(); !since.IsZero() {
		s.StoreAway = since.UnixMicro()
	}
	s.Killed, s.Unheard = a.Fleet.CountKilled()
	index := map[string]int{}
	a.Fleet.List("", 1<<30, func(v *fleet.View) bool {
		s.Known++
		if v.Connected {
			s.Connected++
		}
		if v.Current() {
			s.Current++
		}
		if v.Rejecting() {
			s.Rejecting++
		}
		s.count("", v.Held, v.Wanted, index)
		for _, p := range v.Policies {
			s.count(p.Policy, p.Held, p.Wanted, index)
		}
		return false
	})
	reply(w, s)
}

// count adds what an AP has, and should have, of a policy to the line of its version.
func (s *summary) count(policy string, held fleet.Held, wanted fleet.Wanted, index map[string]int) {
	scope, version := wanted.Scope, wanted.Version
	if wanted.Slot == "online" { // a tree of its own for each: one line
		scope, version = "ap/*", 0
	}
	key := fmt.Sprint(wanted.Slot, " ", scope, " ", wanted.Model, " ", version, " ", policy)
	at, known := index[key]
	if !known {
		at = len(s.Versions)
		index[key] = at
		s.Versions = append(s.Versions, versionCount{Slot: wanted.Slot, Scope: scope, Policy: policy,
			Model: wanted.Model, Version: version})
	}
	s.Versions[at].Desired++
	if wanted.Desired == held.Applied && wanted.Desired != "" {
		s.Versions[at].Applied++
	}
}

func (a *Server) listFleet(w http.ResponseWriter, r *http.Request) {
	limit, err := number(r, "limit", defaultPage, 1, maxPage)
	if err != nil {
		failure(w, http.StatusBadRequest, err.Error())
		return
	}
	query := r.URL.Query()
	site, state := query.Get("site"), query.Get("state")
	page, more := a.Fleet.List(query.Get("after"), int(limit), func(v *fleet.View) bool {
		return (site == "" || v.Site == site) && (state == "" || v.Has(state))
	})
	answer := struct {
		APs  []fleet.View `json:"aps"`
		Next string       `json:"next"` // give it as `after`; empty at the end
	}{APs: append([]fleet.View{}, page...)}
	if more {
		answer.Next = page[len(page)-1].ID
	}
	reply(w, answer)
}

func (a *Server) getAP(w http.ResponseWriter, r *http.Request) {
	v, known := a.Fleet.Get(r.PathValue("id"))
	if !known {
		failure(w, http.StatusNotFound, "no AP of this id has ever asked")
		return
	}
	reply(w, v)
}

func (a *Server) listRollouts(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string][]rollout.Rollout{"rollouts": a.Rollouts.All()})
}

func (a *Server) abort(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Reason string `json:"reason"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBodyBytes)).Decode(&body)
	if err != nil && !errors.Is(err, io.EOF) || len(body.Reason) > store.MaxReason {
		failure(w, http.StatusBadRequest,
			fmt.Sprintf(`the body is {"reason": TEXT} with at most %d bytes of text, or empty`, store.MaxReason))
		return
	}
	if body.Reason == "" {
		body.Reason = "by hand"
	}
	a.stepped(w)(a.Rollouts.Abort(r.Context(), r.PathValue("id"), body.Reason))
}

func (a *Server) expand(w http.ResponseWriter, r *http.Request) {
	a.stepped(w)(a.Rollouts.Expand(r.Context(), r.PathValue("id")))
}

func (a *Server) stepped(w http.ResponseWriter) func(*rollout.Rollout, error) {
	return func(r *rollout.Rollout, err error) {
		switch {
		case errors.Is(err, rollouts.ErrNoRollout):
			failure(w, http.StatusNotFound, err.Error())
		case errors.Is(err, rollouts.ErrEnded), errors.Is(err, rollouts.ErrApproved),
			errors.Is(err, rollouts.ErrUnapproved):
			failure(w, http.StatusConflict, err.Error())
		case errors.Is(err, rollouts.ErrOwn):
			failure(w, http.StatusForbidden, err.Error())
		case err != nil:
			a.Logger.Error("a step by hand failed", "error", err)
			failure(w, http.StatusServiceUnavailable, "the step could not be stored; try again")
		default:
			reply(w, r)
		}
	}
}

func (a *Server) history(w http.ResponseWriter, r *http.Request) {
	newest(a, w, r, "entries", a.Store.History, func(e store.Entry) int64 { return e.Seq })
}

func (a *Server) audit(w http.ResponseWriter, r *http.Request) {
	newest(a, w, r, "lines", a.Store.AuditLog, func(l store.Audit) int64 { return l.Seq })
}

// newest answers with a page of numbered rows, the newest first. `next` is what to give as `before` for those that
// follow; 0: there are none.
func newest[T any](a *Server, w http.ResponseWriter, r *http.Request, name string, read func(ctx context.Context,
	before int64, limit int) ([]T, error), seq func(T) int64) {
	before, err := number(r, "before", 0, 0, 1<<62)
	limit, err2 := number(r, "limit", defaultPage, 1, maxPage)
	if err := errors.Join(err, err2); err != nil {
		failure(w, http.StatusBadRequest, err.Error())
		return
	}
	rows, err := read(r.Context(), before, int(limit))
	if err != nil {
		a.Logger.Error("a page cannot be read", "of", name, "error", err)
		failure(w, http.StatusServiceUnavailable, "the store does not answer; try again")
		return
	}
	next := int64(0)
	if len(rows) == int(limit) {
		next = seq(rows[len(rows)-1])
	}
	reply(w, map[string]any{name: append([]T{}, rows...), "next": next})
}

func number(r *http.Request, name string, otherwise, lowest, highest int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < lowest || n > highest {
		return 0, fmt.Errorf("%s must be a whole number from %d to %d", name, lowest, highest)
	}
	return n, nil
}
