package admin

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"oal/deploy/internal/enrol"
)

// defaultTTL is how long a ticket lasts: an AP is mounted within a day.
const defaultTTL = 24 * time.Hour

// enrols says whether there is enrolment, and tells who asks when there is not.
func (a *Server) enrols(w http.ResponseWriter) bool {
	if a.Tickets == nil {
		failure(w, http.StatusNotFound, "this service does not enrol APs: its configuration has no `enrol`")
	}
	return a.Tickets != nil
}

func (a *Server) addTicket(w http.ResponseWriter, r *http.Request) {
	if !a.enrols(w) {
		return
	}
	var in struct {
		APID string `json:"ap_id"`
		Site string `json:"site"`
		TTLS int64  `json:"ttl_s"`
	}
	if err := body(w, r, &in); err != nil || in.TTLS < 0 || in.TTLS > 1<<32 {
		failure(w, http.StatusBadRequest,
			`the body is {"ap_id": TEXT, "site": TEXT, "ttl_s": SECONDS}; site and ttl_s may be left out`)
		return
	}
	ttl := time.Duration(in.TTLS) * time.Second
	if ttl == 0 {
		ttl = defaultTTL
	}
	t, text, err := a.Tickets.New(r.Context(), in.APID, in.Site, user(r).Name, ttl)
	if a.ticketed(w, err) {
		reply(w, struct {
			enrol.Ticket
			Text string `json:"text"` // what the AP is given; it is not shown again
		}{t, text})
	}
}

func (a *Server) listTickets(w http.ResponseWriter, r *http.Request) {
	if !a.enrols(w) {
		return
	}
	open, err := a.Tickets.Open(r.Context())
	if a.ticketed(w, err) {
		reply(w, map[string][]enrol.Ticket{"tickets": open})
	}
}

func (a *Server) withdrawTicket(w http.ResponseWriter, r *http.Request) {
	if !a.enrols(w) {
		return
	}
	t, err := a.Tickets.Withdraw(r.Context(), r.PathValue("id"), user(r).Name)
	if a.ticketed(w, err) {
		reply(w, t)
	}
}

func (a *Server) ticketed(w http.ResponseWriter, err error) bool {
	switch {
	case errors.Is(err, enrol.ErrBad):
		failure(w, http.StatusBadRequest, err.Error())
	case errors.Is(err, enrol.ErrUnknown):
		failure(w, http.StatusNotFound, err.Error())
	case errors.Is(err, enrol.ErrRevoked):
		failure(w, http.StatusConflict, err.Error())
	case err != nil:
		a.Logger.Error("tickets cannot be read or changed", "error", err)
		failure(w, http.StatusServiceUnavailable, fmt.Sprintf("nothing was changed: the store does not answer (%v)",
			err))
	}
	return err == nil
}
