// Package api is what APs talk to: a long poll for the bundle that they should have, their reports, and their
// neighbours' statistics. Mutual TLS only.
package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/fleet"
	"oal/deploy/internal/issue"
	"oal/deploy/internal/limit"
	"oal/deploy/internal/listen"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/neighbour"
	"oal/deploy/internal/store"
)

const (
	maxWait         = 300 * time.Second // of a poll: many NATs forget a connection that is silent for longer
	headerTimeout   = 10 * time.Second  // a request's head is one packet; more is a stuck or hostile sender
	bodyTimeout     = 10 * time.Second  // likewise of a report or a certificate request
	sendTimeout     = 30 * time.Second  // an answer to a slow AP: a bundle of 256 KiB at 9 KB/s
	idleTimeout     = 2 * time.Minute   // between two requests: an AP polls again at once, or has gone
	maxHeaderBytes  = 8 << 10           // twenty times what an exporter sends
	maxStatusBytes  = 4 << 10           // ten times a report
	defaultRate     = 10                // requests of an AP a second, lasting
	defaultBurst    = 30                // requests of an AP at once: after a restart of either side
	defaultMaxConns = 100000            // connections of 65 KiB each: 6.5 GB
)

// Parts are what the listener needs.
type Parts struct {
	Fleet      *fleet.Fleet
	Neighbours *neighbour.Table
	Metrics    *metric.Set
	TLS        *tls.Config // must ask for client certificates
	Limits     config.Limits
	Ready      func() bool // the desired state is complete
	// is called for requests with a certificate that does not entitle to them
	Denied  func(certificate, reason, path string)
	Revoked func(id string) *store.Access // nil: the AP is not
	Issuer  *issue.Issuer                 // nil: no certificates are issued here
	Now     func() time.Time
	Logger  *slog.Logger
}

// Server serves APs.
type Server struct {
	Parts
	limiter          *limit.Limiter
	neighbourLimiter *limit.Limiter
	renewalLimiter   *limit.Limiter

	bodyTimeout time.Duration // only a test changes it

	http     *http.Server
	conns    *listen.Conns
	draining chan struct{} // closed when the service stops: polls are sent away
	drain    sync.Once
}

// New is an inert server.
func New(p Parts) *Server {
	if p.Limits.RequestsPerS == 0 {
		p.Limits.RequestsPerS = defaultRate
	}
	if p.Limits.Burst == 0 {
		p.Limits.Burst = defaultBurst
	}
	if p.Limits.MaxConns == 0 {
		p.Limits.MaxConns = defaultMaxConns
	}
	s := &Server{
		Parts:            p,
		bodyTimeout:      bodyTimeout,
		limiter:          limit.New(p.Limits.RequestsPerS, p.Limits.Burst, p.Now),
		neighbourLimiter: limit.New(neighbourRate, neighbourBurst, p.Now),
		renewalLimiter:   limit.New(renewalRate, renewalBurst, p.Now),
		draining:         make(chan struct{}),
	}
	s.conns = &listen.Conns{
		Max:     int64(p.Limits.MaxConns),
		Refused: p.Metrics.Denied.WithLabelValues("too_many_connections").Inc,
		Changed: func(open int64) { p.Metrics.OpenConns.Set(float64(open)) },
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/aps/{id}/bundle", s.ap(s.bundle))
	mux.HandleFunc("GET /v1/aps/{id}/neighbours", s.ap(s.neighbours))
	mux.HandleFunc("POST /v1/aps/{id}/status", s.ap(s.status))
	mux.HandleFunc("POST /v1/aps/{id}/certificate", s.ap(s.certificate))
	// An AP has a long poll and now and then one request beside it: HTTP/2 would add its buffers and goroutines to each
	// connection and save nothing.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	failures := &handshakes{Handler: p.Logger.Handler(), metrics: p.Metrics, logger: p.Logger,
		limit: limit.New(handshakeLogRate, handshakeLogBurst, p.Now)}
	s.http = &http.Server{
		Handler: mux, TLSConfig: p.TLS, Protocols: protocols, ConnState: s.conns.State, MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, WriteTimeout: maxWait + sendTimeout,
		ErrorLog: slog.NewLogLogger(failures, slog.LevelDebug),
	}
	return s
}

// Start begins to listen; the address has the port that was chosen when 0 was asked for.
func (s *Server) Start(address string) (net.Addr, error) {
	return listen.Start(s.http, "ap_listen", address, s.conns, s.Logger)
}

// Stop sends waiting APs away, each with its own time to come back, and closes what does not end by itself.
func (s *Server) Stop(ctx context.Context) {
	s.drain.Do(func() { close(s.draining) })
	listen.Stop(ctx, s.http)
}

// handler answers an AP that is who it says it is.
type handler func(w http.ResponseWriter, r *http.Request, ap Identity)

// ap checks who asks before what: the certificate must be an AP's, that of the AP in the path, and not revoked.
func (s *Server) ap(handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// Until the end of the request, as what is left of a body is read after the answer. A poll, which may wait
			// for longer, has none.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.bodyTimeout))
		}
		ap, err := identity(r.TLS, s.Now())
		if wait := s.limiter.Take(ap.ID); wait > 0 {
			s.Metrics.Denied.WithLabelValues("rate_limit").Inc()
			limit.RetryAfter(w, wait)
			http.Error(w, fmt.Sprintf("more than %g requests a second; come back later", s.Limits.RequestsPerS),
				http.StatusTooManyRequests)
			return
		}
		if err == nil && ap.ID != r.PathValue("id") {
			err = &denial{"other_ap", fmt.Sprintf("the certificate is of %q", ap.ID)}
		}
		if err == nil {
			err = s.revoked(ap.ID)
		}
		if err != nil {
			s.deny(w, r, ap, err)
			return
		}
		if !s.Ready() {
			s.away(w, "the service is starting and does not know the desired state yet")
			return
		}
		if r.Method == http.MethodGet && r.ContentLength != 0 {
			s.Metrics.Denied.WithLabelValues("bad_request").Inc()
			w.Header().Set("Connection", "close")
			http.Error(w, "a GET has no body", http.StatusBadRequest)
			return
		}
		handle(w, r, ap)
	}
}

// revoked is the denial of an AP that is kept out.
func (s *Server) revoked(id string) error {
	if a := s.Revoked(id); a != nil {
		return &denial{"revoked", fmt.Sprintf("%s was revoked (%s); the platform's operator can restore it", id,
			a.Reason)}
	}
	return nil
}

// deny refuses for who asks: counted, and in the history.
func (s *Server) deny(w http.ResponseWriter, r *http.Request, ap Identity, err error) {
	denied := &denial{"denied", err.Error()}
	errors.As(err, &denied)
	s.Metrics.Denied.WithLabelValues(denied.reason).Inc()
	s.Denied(clip(ap.ID, 64), denied.reason, clip(r.URL.Path, 200))
	w.Header().Set("Connection", "close")
	http.Error(w, denied.Error()+"; an AP may only ask for itself, with a certificate CN=AP_ID, OU=ap",
		http.StatusForbidden)
}
