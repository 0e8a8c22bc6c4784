package api

import (
	"encoding/json"
	"net/http"
	"time"

	"oal/deploy/internal/issue"
	"oal/deploy/internal/limit"
)

const (
	renewalRate  = 1.0 / 60 // renewals of an AP a second, lasting: a certificate lasts weeks
	renewalBurst = 3        // at once: for an AP that could not write the first
)

// certificate gives an AP a new certificate for the name and the site of the one that it has.
func (s *Server) certificate(w http.ResponseWriter, r *http.Request, ap Identity) {
	count := func(result string) { s.Metrics.Renewals.WithLabelValues(result).Inc() }
	if s.Issuer == nil {
		http.Error(w, "no certificates are issued here; ask the platform's operator for this AP's files",
			http.StatusNotFound)
		return
	}
	if wait := s.renewalLimiter.Take(ap.ID); wait > 0 {
		count("rate_limit")
		limit.RetryAfter(w, wait)
		http.Error(w, "certificates are renewed once a minute", http.StatusTooManyRequests)
		return
	}
	var body struct {
		CSR string `json:"csr"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 2*issue.MaxCSR)).Decode(&body)
	if err != nil {
		count("bad_request")
		http.Error(w, `the body is {"csr": PEM}`, http.StatusBadRequest)
		return
	}
	request, err := issue.Parse(body.CSR)
	if err != nil {
		count("bad_request")
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	grant, err := s.Issuer.Issue(ap.ID, ap.Site, request)
	if err != nil {
		count("failed")
		s.Logger.Error("a certificate cannot be renewed", "ap", ap.ID, "error", err)
		w.Header().Set("Retry-After", "60")
		http.Error(w, "the certificate cannot be issued now; come back later", http.StatusServiceUnavailable)
		return
	}
	count("issued")
	s.Logger.Info("certificate renewed", "ap", ap.ID, "site", ap.Site, "not_after",
		time.UnixMicro(grant.NotAfterUS).UTC())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(grant) // an AP that does not get it asks again
}
