package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/killswitch"
	"oal/deploy/internal/mirror"
	"oal/deploy/internal/store"
)

// Switch is what the admin interface needs of the kill switch.
type Switch interface {
	Kills() []fleet.Kill
	Kill(ctx context.Context, t fleet.Target, who, note, reason string) (k fleet.Kill, stored bool, err error)
	Unkill(ctx context.Context, t fleet.Target, who, note, reason string) (fleet.Kill, error)
	State() mirror.State
}

var _ Switch = (*killswitch.Switch)(nil)

// note is who someone says they act for; the user of the token needs none.
func note(r *http.Request, who string) string {
	if who == user(r).Name {
		return ""
	}
	return who
}

// killView is a target with what the kill switch says to it.
type killView struct {
	fleet.Kill
	Killed bool `json:"killed"`
	Stored bool `json:"stored"` // false: in force at this replica alone, and gone with its process
	fleet.KillCounts
}

func (a *Server) viewKill(k fleet.Kill, killed, stored bool) killView {
	return killView{k, killed, stored, a.Fleet.CountKill(k.Target)}
}

func (a *Server) listKills(w http.ResponseWriter, _ *http.Request) {
	views, state := []killView{}, a.Kills.State()
	for _, k := range a.Kills.Kills() {
		views = append(views, a.viewKill(k, true, !state.Unstored[k.Target.String()]))
	}
	reply(w, map[string]any{"kills": views, "stale_since_us": staleUS(state)})
}

// staleUS is since when a table may be behind the store; 0: it is not.
func staleUS(state mirror.State) int64 {
	if state.StaleSince.IsZero() {
		return 0
	}
	return state.StaleSince.UnixMicro()
}

// target is what a request is about: the scope of its path, and of all policies the one of its query.
func target(r *http.Request) fleet.Target {
	return fleet.Target{Scope: r.PathValue("scope"), Policy: r.URL.Query().Get("policy")}
}

func (a *Server) getKill(w http.ResponseWriter, r *http.Request) {
	t := target(r)
	if err := t.Check(); err != nil {
		failure(w, http.StatusBadRequest, err.Error())
		return
	}
	for _, k := range a.Kills.Kills() {
		if k.Target == t {
			reply(w, a.viewKill(k, true, !a.Kills.State().Unstored[t.String()]))
			return
		}
	}
	reply(w, a.viewKill(fleet.Kill{Target: t}, false, true))
}

func (a *Server) putKill(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Who    string `json:"who"`
		Reason string `json:"reason"`
	}
	if err := body(w, r, &in); err != nil {
		failure(w, http.StatusBadRequest,
			`the body is {"reason": TEXT, "who": TEXT}; who only for someone else than the user of the token`)
		return
	}
	k, stored, err := a.Kills.Kill(r.Context(), target(r), user(r).Name, note(r, in.Who), in.Reason)
	a.turned(w, k, true, stored, err)
}

func (a *Server) deleteKill(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	k, err := a.Kills.Unkill(r.Context(), target(r), user(r).Name, note(r, query.Get("who")),
		query.Get("reason"))
	a.turned(w, k, false, true, err)
}

func (a *Server) turned(w http.ResponseWriter, k fleet.Kill, killed, stored bool, err error) {
	switch {
	case errors.Is(err, killswitch.ErrBad):
		failure(w, http.StatusBadRequest, err.Error())
	case errors.Is(err, killswitch.ErrUnknown):
		failure(w, http.StatusNotFound, err.Error())
	case errors.Is(err, killswitch.ErrNotOff), errors.Is(err, store.ErrConflict):
		failure(w, http.StatusConflict, err.Error())
	case err != nil:
		a.Logger.Error("the kill switch was not turned", "error", err)
		failure(w, http.StatusServiceUnavailable,
			fmt.Sprintf("control stays off here: what lets APs clamp again must be stored, and the store did not say "+
				"that it was (%v)", err))
	default:
		reply(w, a.viewKill(k, killed, stored))
	}
}
