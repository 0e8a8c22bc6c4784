// Package admin is what operators talk to: fleet, rollouts, history, metrics and a status page. Plain HTTP for loopback or a
// cluster-internal address, with a bearer token.
package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"oal/deploy/internal/control"
	"oal/deploy/internal/fleet"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/store"
)

//go:embed openapi.yaml
var openAPI []byte

//go:embed page.html
var page []byte

// Control is what the admin interface needs of the control.
type Control interface {
	Rollouts() []rollout.Rollout
	Abort(ctx context.Context, id, reason string) (*rollout.Rollout, error)
	Expand(ctx context.Context, id string) (*rollout.Rollout, error)
	Leading() bool
}

// Server serves operators.
type Server struct {
	fleet   *fleet.Fleet
	control Control
	kills   Switch
	store   store.Store
	token   [sha256.Size]byte
	ready   func() error
	logger  *slog.Logger
	http    *http.Server
}

// New is an inert server. ready says what is still missing.
func New(f *fleet.Fleet, c Control, k Switch, s store.Store, m *metric.Set, token string, ready func() error, logger *slog.Logger) *Server {
	a := &Server{fleet: f, control: c, kills: k, store: s, token: sha256.Sum256([]byte(token)), ready: ready, logger: logger}
	a.http = &http.Server{Handler: a.routes(m), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 20 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	return a
}

func (a *Server) routes(m *metric.Set) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", a.page)
	mux.HandleFunc("GET /openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openAPI)
	})
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /readyz", a.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /v1/summary", a.authorized(a.summary))
	mux.HandleFunc("GET /v1/fleet", a.authorized(a.listFleet))
	mux.HandleFunc("GET /v1/aps/{id}", a.authorized(a.getAP))
	mux.HandleFunc("GET /v1/rollouts", a.authorized(a.listRollouts))
	mux.HandleFunc("POST /v1/rollouts/{id}/abort", a.authorized(a.abort))
	mux.HandleFunc("POST /v1/rollouts/{id}/expand", a.authorized(a.expand))
	mux.HandleFunc("GET /v1/control/kill", a.authorized(a.listKills))
	mux.HandleFunc("GET /v1/control/kill/{scope...}", a.authorized(a.getKill))
	mux.HandleFunc("PUT /v1/control/kill/{scope...}", a.authorized(a.putKill))
	mux.HandleFunc("DELETE /v1/control/kill/{scope...}", a.authorized(a.deleteKill))
	mux.HandleFunc("GET /v1/history", a.authorized(a.history))
	return mux
}

// Start begins to listen.
func (a *Server) Start(address string) (net.Addr, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("admin_listen: %w", err)
	}
	go func() {
		if err := a.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			a.logger.Error("the admin listener ended", "error", err)
		}
	}()
	return listener.Addr(), nil
}

// Stop waits for requests that run.
func (a *Server) Stop(ctx context.Context) {
	if err := a.http.Shutdown(ctx); err != nil {
		_ = a.http.Close()
	}
}

func (a *Server) authorized(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		given := sha256.Sum256([]byte(token)) // of equal length, so the time of the comparison tells nothing
		if !bearer || subtle.ConstantTimeCompare(given[:], a.token[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="oal-deploy"`)
			failure(w, http.StatusUnauthorized, "send `Authorization: Bearer TOKEN` with the token of admin_token_file")
			return
		}
		handle(w, r)
	}
}

func (a *Server) page(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write(page)
}

func (a *Server) healthz(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }

func (a *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	if err := a.ready(); err != nil {
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
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": why})
}

var _ Control = (*control.Control)(nil)
