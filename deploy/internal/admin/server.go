// Package admin is what operators talk to: fleet, rollouts, kill switch, enrolment, revocation, history, metrics and a
// status page. Every user has a bearer token and a role. Plain HTTP for loopback or a cluster-internal address, or TLS.
package admin

import (
	"context"
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"oal/deploy/internal/access"
	"oal/deploy/internal/account"
	"oal/deploy/internal/enrol"
	"oal/deploy/internal/fleet"
	"oal/deploy/internal/limit"
	"oal/deploy/internal/listen"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/rollouts"
	"oal/deploy/internal/store"
)

//go:embed openapi.yaml
var openAPI []byte

//go:embed page.html
var page []byte

const (
	guessRate      = 1                // bad tokens of an address a second, lasting
	guessBurst     = 20               // at once: a person with an old token, not a list of guesses
	strangerRate   = 1.0 / 60         // lines a second about those without a token, lasting; the service's log has all
	strangerBurst  = 30               // lines at once
	headerTimeout  = 10 * time.Second // a request's head is one packet
	readTimeout    = 20 * time.Second // of a whole request: at most maxBodyBytes
	writeTimeout   = 30 * time.Second // of an answer, but for a copy of the state
	idleTimeout    = time.Minute      // between two requests of a browser
	maxHeaderBytes = 16 << 10         // browsers send cookies of other services on the same host
	maxBodyBytes   = 4 << 10          // eight times the longest reason
	auditTimeout   = 5 * time.Second  // to store a line; the service's log has it anyway
)

// Rollouts is what the admin interface needs of package rollouts.
type Rollouts interface {
	All() []rollout.Rollout
	Abort(ctx context.Context, id, reason string) (*rollout.Rollout, error)
	Expand(ctx context.Context, id string) (*rollout.Rollout, error)
	Approve(ctx context.Context, id string, a rollout.Approval) (*rollout.Rollout, error)
	Leading() bool
}

// Parts are what the interface shows and does.
type Parts struct {
	Fleet    *fleet.Fleet
	Rollouts Rollouts
	Kills    Switch
	Access   *access.List
	Tickets  *enrol.Tickets // nil: there is no enrolment
	Store    store.Store
	// StoreAway is since when the store does not answer; the zero time: it does
	StoreAway func() time.Time
	Metrics   *metric.Set
	Users     *account.Users
	Scraper   *account.Token // of /metrics; nil: that needs none
	TLS       *tls.Config    // nil: plain HTTP
	Ready     func() error   // what is still missing
	Now       func() time.Time
	Logger    *slog.Logger
	Audit     *slog.Logger // a line for each line of the audit log
}

// Server serves operators.
type Server struct {
	Parts
	guesses   *limit.Limiter // of bad tokens, by address
	strangers *limit.Limiter // of lines about them in the store
	http      *http.Server
}

// New is an inert server.
func New(p Parts) *Server {
	a := &Server{Parts: p, guesses: limit.New(guessRate, guessBurst, p.Now),
		strangers: limit.New(strangerRate, strangerBurst, p.Now)}
	a.http = &http.Server{
		Handler: a.routes(), TLSConfig: p.TLS, MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(p.Logger.Handler(), slog.LevelDebug),
	}
	return a
}

func (a *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", a.page)
	mux.HandleFunc("GET /openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openAPI)
	})
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /readyz", a.readyz)
	mux.HandleFunc("GET /metrics", a.scraped(promhttp.HandlerFor(a.Metrics.Registry, promhttp.HandlerOpts{})))
	see := func(pattern string, handle http.HandlerFunc) {
		mux.HandleFunc(pattern, a.as(account.Viewer, "", handle))
	}
	see("GET /v1/whoami", a.whoami)
	see("GET /v1/summary", a.summary)
	see("GET /v1/fleet", a.listFleet)
	see("GET /v1/aps/{id}", a.getAP)
	see("GET /v1/rollouts", a.listRollouts)
	see("GET /v1/control/kill", a.listKills)
	see("GET /v1/control/kill/{scope...}", a.getKill)
	see("GET /v1/access", a.listRevoked)
	see("GET /v1/history", a.history)
	do := func(role account.Role, action, pattern string, handle http.HandlerFunc) {
		mux.HandleFunc(pattern, a.as(role, action, handle))
	}
	do(account.Operator, "abort", "POST /v1/rollouts/{id}/abort", a.abort)
	do(account.Operator, "expand", "POST /v1/rollouts/{id}/expand", a.expand)
	do(account.Approver, "approve", "POST /v1/rollouts/{id}/approve", a.approve)
	do(account.Admin, "approve-in-emergency", "POST /v1/rollouts/{id}/approve-in-emergency", a.approveInEmergency)
	do(account.Operator, "kill", "PUT /v1/control/kill/{scope...}", a.putKill)
	do(account.Operator, "unkill", "DELETE /v1/control/kill/{scope...}", a.deleteKill)
	do(account.Operator, "revoke", "POST /v1/aps/{id}/revoke", a.revoke)
	do(account.Admin, "restore", "POST /v1/aps/{id}/restore", a.restore)
	do(account.Admin, "ticket", "POST /v1/tickets", a.addTicket)
	do(account.Admin, "withdraw", "DELETE /v1/tickets/{id}", a.withdrawTicket)
	do(account.Admin, "state", "GET /v1/state", a.state)
	mux.HandleFunc("GET /v1/tickets", a.as(account.Admin, "", a.listTickets))
	mux.HandleFunc("GET /v1/audit", a.as(account.Operator, "", a.audit))
	return mux
}

// Start begins to listen.
func (a *Server) Start(address string) (net.Addr, error) {
	return listen.Start(a.http, "admin_listen", address, nil, a.Logger)
}

// Stop waits for requests that run.
func (a *Server) Stop(ctx context.Context) {
	listen.Stop(ctx, a.http)
}

func (a *Server) page(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; base-uri "+
			"'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write(page)
}

func (a *Server) healthz(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }

func (a *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	if err := a.Ready(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ready\n"))
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(value)
}

func failure(w http.ResponseWriter, code int, why string) {
	if recorded, is := w.(*recorder); is {
		recorded.why = why
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": why})
}

// body reads a JSON object without fields that are not known; an empty body is an empty object.
func body(w http.ResponseWriter, r *http.Request, into any) error {
	if r.ContentLength == 0 {
		return nil
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

var _ Rollouts = (*rollouts.Runner)(nil)
