package enrol

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"oal/deploy/internal/issue"
	"oal/deploy/internal/limit"
	"oal/deploy/internal/listen"
	"oal/deploy/internal/metric"
)

// A token cannot be guessed; the limits are for the CPU time of signatures. Behind a load balancer a whole fleet has
// one address.
const (
	addressRate    = 1                     // requests of an address a second, lasting
	addressBurst   = 30                    // at once: a rack of APs behind one address
	totalRate      = 50                    // requests a second of all: each takes two signatures
	totalBurst     = 200                   // at once of all
	timeout        = 10 * time.Second      // to read a request; twice that to answer it
	maxConns       = 1000                  // connections: 65 MB
	maxHeaderBytes = 8 << 10               // likewise of the AP listener
	maxBody        = 2*issue.MaxCSR + 1024 // bytes: in JSON a byte may take two, and there is the token
)

// Server is the listener on which APs without a certificate enrol.
type Server struct {
	tickets *Tickets
	metrics *metric.Set
	logger  *slog.Logger
	denied  func(who, reason, path string)
	address *limit.Limiter
	total   *limit.Limiter
	conns   *listen.Conns
	http    *http.Server
}

// NewServer is inert. denied is called for tokens that cannot be used.
func NewServer(t *Tickets, m *metric.Set, tlsConfig *tls.Config, denied func(who, reason, path string),
	now func() time.Time, logger *slog.Logger) *Server {
	s := &Server{tickets: t, metrics: m, logger: logger, denied: denied,
		address: limit.New(addressRate, addressBurst, now), total: limit.New(totalRate, totalBurst, now)}
	s.conns = &listen.Conns{Max: maxConns, Refused: m.Enrolments.WithLabelValues("too_many_connections").Inc}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/enrol", s.enrol)
	s.http = &http.Server{
		Handler: mux, TLSConfig: tlsConfig, ConnState: s.conns.State, MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: timeout, ReadTimeout: timeout, WriteTimeout: 2 * timeout, IdleTimeout: timeout,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	return s
}

// Start begins to listen.
func (s *Server) Start(address string) (net.Addr, error) {
	return listen.Start(s.http, "enrol_listen", address, s.conns, s.logger)
}

// Stop waits for requests that run.
func (s *Server) Stop(ctx context.Context) {
	listen.Stop(ctx, s.http)
}

func (s *Server) enrol(w http.ResponseWriter, r *http.Request) {
	result := "issued"
	defer func() { s.metrics.Enrolments.WithLabelValues(result).Inc() }()
	refuse := func(as string, code int, why string) {
		result = as
		http.Error(w, why, code)
	}
	from := network(r.RemoteAddr)
	wait := s.address.Take(from)
	if wait == 0 {
		wait = s.total.Take("")
	}
	if wait > 0 {
		limit.RetryAfter(w, wait)
		refuse("rate_limit", http.StatusTooManyRequests, "too many requests; come back later")
		return
	}
	var body struct{ Token, CSR string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&body); err != nil || body.Token == "" {
		refuse("bad_request", http.StatusBadRequest, `the body is {"token": TEXT, "csr": PEM}`)
		return
	}
	request, err := issue.Parse(body.CSR)
	if err != nil {
		refuse("bad_request", http.StatusBadRequest, err.Error())
		return
	}
	grant, repeated, err := s.tickets.Redeem(r.Context(), body.Token, request)
	switch {
	case errors.Is(err, ErrToken):
		s.denied(from, "bad_token", r.URL.Path)
		refuse("refused", http.StatusUnauthorized, err.Error())
	case errors.Is(err, ErrRevoked): // answered to a good token only
		refuse("revoked", http.StatusForbidden, err.Error())
	case err != nil:
		s.logger.Error("an AP could not be enrolled", "error", err)
		w.Header().Set("Retry-After", "5")
		refuse("failed", http.StatusServiceUnavailable,
			"the ticket is as it was: the service cannot store or sign now; come back later")
	default:
		if repeated {
			result = "repeated"
		}
		s.logger.Info("AP enrolled", "ap", grant.APID, "site", grant.Site, "from", from, "repeated", repeated)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(grant) // an AP that does not get it asks again
	}
}

// network is who asks, as far as limits go: an IPv4 address, or the /64 of an IPv6 address, which one device has whole.
func network(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	ip := net.ParseIP(host)
	if err != nil || ip == nil {
		return remote
	}
	if ip.To4() == nil {
		return ip.Mask(net.CIDRMask(64, 128)).String()
	}
	return ip.String()
}
