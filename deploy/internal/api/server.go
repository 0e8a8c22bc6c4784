// Package api is what APs talk to: a long poll for the bundle that they should have, their reports, and their neighbours' statistics.
// Mutual TLS only.
package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/neighbour"
)

// Limits of what an AP may ask; the zero value stands for the defaults.
type Limits struct {
	RequestsPerS float64 `yaml:"requests_per_s"` // of one AP, lasting; default 10
	Burst        int     `yaml:"burst"`          // of one AP, at once; default 30
	MaxConns     int     `yaml:"max_connections"`
}

const (
	maxWait         = 300 * time.Second
	headerTimeout   = 10 * time.Second
	bodyTimeout     = 10 * time.Second
	sendTimeout     = 30 * time.Second // a bundle to a slow AP: 256 KiB at 9 KB/s
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 8 << 10
	maxStatusBytes  = 4 << 10
	defaultRate     = 10
	defaultBurst    = 30
	defaultMaxConns = 100000
)

// Server serves APs.
type Server struct {
	fleet   *fleet.Fleet
	metrics *metric.Set
	logger  *slog.Logger
	now     func() time.Time
	limiter *limiter

	neighbourTable   *neighbour.Table
	neighbourLimiter *limiter

	ready  func() bool
	denied func(certificate, reason, path string)
	limits Limits

	http     *http.Server
	conns    atomic.Int64
	draining chan struct{} // closed when the service stops: polls are sent away
	drain    sync.Once
}

// New is an inert server; tlsConfig must ask for client certificates. ready says whether the desired state is complete;
// denied is told of requests with a certificate that does not entitle to them.
func New(f *fleet.Fleet, n *neighbour.Table, m *metric.Set, tlsConfig *tls.Config, limits Limits, ready func() bool, denied func(certificate, reason, path string),
	now func() time.Time, logger *slog.Logger) *Server {
	if limits.RequestsPerS == 0 {
		limits.RequestsPerS = defaultRate
	}
	if limits.Burst == 0 {
		limits.Burst = defaultBurst
	}
	if limits.MaxConns == 0 {
		limits.MaxConns = defaultMaxConns
	}
	s := &Server{fleet: f, metrics: m, logger: logger, now: now, ready: ready, denied: denied, limits: limits,
		limiter: newLimiter(limits.RequestsPerS, limits.Burst, now), neighbourTable: n,
		neighbourLimiter: newLimiter(neighbourRate, neighbourBurst, now), draining: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/aps/{id}/bundle", s.ap(s.bundle))
	mux.HandleFunc("GET /v1/aps/{id}/neighbours", s.ap(s.neighbours))
	mux.HandleFunc("POST /v1/aps/{id}/status", s.ap(s.status))
	// An AP has a long poll and now and then one request beside it: HTTP/2 would add its buffers and goroutines to each connection and save nothing.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	s.http = &http.Server{Handler: mux, TLSConfig: tlsConfig, Protocols: protocols, ReadHeaderTimeout: headerTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ConnState: s.connState,
		ErrorLog: slog.NewLogLogger(&handshakes{m, logger.Handler()}, slog.LevelDebug)}
	return s
}

// Start begins to listen; the address has the port that was chosen when 0 was asked for.
func (s *Server) Start(address string) (net.Addr, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("ap_listen: %w", err)
	}
	go func() {
		if err := s.http.ServeTLS(&bounded{listener, s}, "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("the AP listener ended", "error", err)
		}
	}()
	return listener.Addr(), nil
}

// Stop sends waiting APs away, each with its own time to come back, and closes what does not end by itself.
func (s *Server) Stop(ctx context.Context) {
	s.drain.Do(func() { close(s.draining) })
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close()
	}
}

func (s *Server) connState(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.metrics.OpenConns.Set(float64(s.conns.Add(1)))
	case http.StateClosed, http.StateHijacked:
		s.metrics.OpenConns.Set(float64(s.conns.Add(-1)))
	}
}

// bounded closes connections beyond the limit at once: memory is bounded whoever knocks.
type bounded struct {
	net.Listener
	s *Server
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil || b.s.conns.Load() < int64(b.s.limits.MaxConns) {
			return conn, err
		}
		b.s.metrics.Denied.WithLabelValues("too_many_connections").Inc()
		_ = conn.Close()
	}
}

// ap checks who asks before what: the certificate must be an AP's, and that of the AP in the path.
func (s *Server) ap(handle func(http.ResponseWriter, *http.Request, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := identity(r.TLS)
		if wait := s.limiter.take(id); wait > 0 {
			s.metrics.Denied.WithLabelValues("rate_limit").Inc()
			retryAfter(w, wait)
			http.Error(w, fmt.Sprintf("more than %g requests a second; come back later", s.limits.RequestsPerS), http.StatusTooManyRequests)
			return
		}
		if err == nil && id != r.PathValue("id") {
			err = &denial{"other_ap", fmt.Sprintf("the certificate is of %q", id)}
		}
		var denied *denial
		if errors.As(err, &denied) {
			s.metrics.Denied.WithLabelValues(denied.reason).Inc()
			s.denied(clip(id, 64), denied.reason, clip(r.URL.Path, 200))
			http.Error(w, denied.reason+": "+denied.detail+"; an AP may only ask for itself, with a certificate CN=AP_ID, OU=ap", http.StatusForbidden)
			return
		}
		if !s.ready() {
			s.away(w, "the service is starting and does not know the desired state yet")
			return
		}
		handle(w, r, id)
	}
}

// handshakes counts failed TLS handshakes, which net/http only logs.
type handshakes struct {
	metrics *metric.Set
	slog.Handler
}

func (h *handshakes) Enabled(context.Context, slog.Level) bool { return true }

func (h *handshakes) Handle(ctx context.Context, record slog.Record) error {
	if strings.Contains(record.Message, "TLS handshake error") && !strings.HasSuffix(record.Message, io.EOF.Error()) {
		h.metrics.Denied.WithLabelValues("tls_handshake").Inc()
	}
	if h.Handler.Enabled(ctx, record.Level) {
		return h.Handler.Handle(ctx, record)
	}
	return nil
}
