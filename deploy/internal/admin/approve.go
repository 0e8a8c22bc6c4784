package admin

import (
	"fmt"
	"net/http"

	"oal/deploy/internal/rollout"
	"oal/deploy/internal/store"
)

// Kinds of approvals, for Prometheus.
const (
	ordinary  = "ordinary"
	emergency = "emergency"
)

func (a *Server) approve(w http.ResponseWriter, r *http.Request) { a.approved(w, r, ordinary) }

// approveInEmergency is for when no approver can be reached: without a second person, and said aloud.
func (a *Server) approveInEmergency(w http.ResponseWriter, r *http.Request) {
	a.approved(w, r, emergency)
}

func (a *Server) approved(w http.ResponseWriter, r *http.Request, kind string) {
	var given struct {
		Reason string `json:"reason"`
	}
	if err := body(w, r, &given); err != nil || given.Reason == "" || len(given.Reason) > store.MaxReason {
		failure(w, http.StatusBadRequest, fmt.Sprintf(`the body is {"reason": TEXT} with 1 to %d bytes of text`,
			store.MaxReason))
		return
	}
	who := user(r).Name
	step, err := a.Rollouts.Approve(r.Context(), r.PathValue("id"),
		rollout.Approval{By: who, Reason: given.Reason, Emergency: kind == emergency})
	a.stepped(w)(step, err)
	if err != nil {
		return
	}
	a.Metrics.Approvals.WithLabelValues(kind).Inc()
	if recorded, is := w.(*recorder); is {
		recorded.why = given.Reason
	}
	if step.PromotedBy == "" {
		a.Logger.Warn("who promoted the version is not known, so that it is not known whether they approved it",
			"rollout", step.ID, "by", who)
	}
}
