package admin

import (
	"errors"
	"fmt"
	"net/http"

	"oal/deploy/internal/access"
	"oal/deploy/internal/store"
)

// revokedView is an AP that is kept out, or no longer is.
type revokedView struct {
	APID    string `json:"ap_id"`
	Revoked bool   `json:"revoked"`
	SinceUS int64  `json:"since_us"`
	Who     string `json:"who"`
	Reason  string `json:"reason"`
	Sent    bool   `json:"sent"`   // Kafka has it, so the stream jobs know
	Stored  bool   `json:"stored"` // false: in force at this replica alone, and gone with its process
}

func viewAccess(a store.Access, stored bool) revokedView {
	return revokedView{a.APID, a.Revoked, a.ChangedUS, a.Who, a.Reason, a.Sent, stored}
}

func (a *Server) listRevoked(w http.ResponseWriter, _ *http.Request) {
	views, state := []revokedView{}, a.Access.State()
	for _, one := range a.Access.All() {
		views = append(views, viewAccess(one, !state.Unstored[one.APID]))
	}
	reply(w, map[string]any{"revoked": views, "stale_since_us": staleUS(state)})
}

func (a *Server) revoke(w http.ResponseWriter, r *http.Request) {
	reason, good := reasonOf(w, r)
	if good {
		changed, stored, err := a.Access.Revoke(r.Context(), r.PathValue("id"), user(r).Name, reason)
		a.changed(w, changed, stored, err)
	}
}

func (a *Server) restore(w http.ResponseWriter, r *http.Request) {
	reason, good := reasonOf(w, r)
	if good {
		if reason == "" {
			reason = "by hand"
		}
		changed, err := a.Access.Restore(r.Context(), r.PathValue("id"), user(r).Name, reason)
		a.changed(w, changed, true, err)
	}
}

func reasonOf(w http.ResponseWriter, r *http.Request) (string, bool) {
	var in struct {
		Reason string `json:"reason"`
	}
	if err := body(w, r, &in); err != nil {
		failure(w, http.StatusBadRequest, fmt.Sprintf(`the body is {"reason": TEXT} with at most %d bytes of text`,
			store.MaxReason))
		return "", false
	}
	return in.Reason, true
}

func (a *Server) changed(w http.ResponseWriter, changed store.Access, stored bool, err error) {
	switch {
	case errors.Is(err, access.ErrBad):
		failure(w, http.StatusBadRequest, err.Error())
	case errors.Is(err, access.ErrNotRevoked):
		failure(w, http.StatusConflict, err.Error())
	case err != nil:
		a.Logger.Error("access was not changed", "error", err)
		failure(w, http.StatusServiceUnavailable, fmt.Sprintf("the AP stays out here: what lets it in must be stored, "+
			"and the store did not say that it was (%v)", err))
	default:
		reply(w, viewAccess(changed, stored))
	}
}
