package api

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/limit"
	"oal/deploy/internal/release"
)

var tag = regexp.MustCompile(`^(?:W/)?"([0-9a-f]{64})"$`)

// bundle answers with the bundle that the AP should have as soon as that is not the one it has, and with what the kill
// switch says as soon as it is turned.
func (s *Server) bundle(w http.ResponseWriter, r *http.Request, ap Identity) {
	ask, wait, err := pollHeaders(r.Header)
	if err != nil {
		s.Metrics.Denied.WithLabelValues("bad_request").Inc()
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := ap.at(ask.Site); err != nil {
		s.deny(w, r, ap, err)
		return
	}
	ask.CertificateUS = ap.NotAfter.UnixMicro()
	poll := s.Fleet.Begin(ap.ID, ask)
	defer s.Fleet.End(poll)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for waited := false; ; waited = true {
		if err := s.revoked(ap.ID); err != nil {
			s.deny(w, r, ap, err)
			return
		}
		rel, activateUS, send := s.Fleet.Desired(poll, waited)
		turned := s.control(w, poll)
		if send {
			s.send(w, rel, activateUS)
			return
		}
		if turned {
			s.unchanged(w, rel == nil)
			return
		}
		select {
		case <-poll.Wake():
		case <-timer.C:
			s.control(w, poll)
			s.unchanged(w, rel == nil)
			return
		case <-poll.Gone():
			s.unchanged(w, false)
			return
		case <-r.Context().Done(): // the AP has gone
			return
		case <-s.draining:
			s.control(w, poll)
			s.away(w, "the service is stopping")
			return
		}
	}
}

// control puts what the kill switch says into the answer; true when it is news to the AP.
func (s *Server) control(w http.ResponseWriter, poll *fleet.Poll) bool {
	now, news := s.Fleet.Control(poll)
	w.Header().Set("OAL-Control", string(now))
	return news
}

func (s *Server) send(w http.ResponseWriter, rel *release.Release, activateUS int64) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTimeout))
	h := w.Header()
	h.Set("Content-Type", "application/vnd.oal.bundle")
	h.Set("ETag", `"`+rel.Bundle.Hash+`"`)
	h.Set("Content-Length", strconv.Itoa(len(rel.Signed)))
	if activateUS > s.Now().UnixMicro() {
		h.Set("OAL-Activate-At", strconv.FormatInt(activateUS, 10))
	}
	s.Metrics.Polls.WithLabelValues("200").Inc()
	s.Metrics.Pushed.WithLabelValues(string(rel.Slot)).Inc()
	s.Metrics.PushedBytes.Add(float64(len(rel.Signed)))
	_, _ = w.Write(rel.Signed) // an AP that does not get it asks again
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
}

func (s *Server) unchanged(w http.ResponseWriter, nothing bool) {
	code := http.StatusNotModified
	if nothing {
		code = http.StatusNoContent
	}
	s.Metrics.Polls.WithLabelValues(strconv.Itoa(code)).Inc()
	w.WriteHeader(code)
}

// away sends an AP to another replica, or back in one to five seconds, so that a fleet does not come back at once.
func (s *Server) away(w http.ResponseWriter, why string) {
	s.Metrics.Polls.WithLabelValues("503").Inc()
	w.Header().Set("Connection", "close")
	limit.RetryAfter(w, time.Second+rand.N(4*time.Second))
	http.Error(w, why, http.StatusServiceUnavailable)
}

// pollHeaders are what the AP has, its site and its longest wait. Without Prefer the answer comes at once.
func pollHeaders(h http.Header) (ask fleet.Ask, wait time.Duration, err error) {
	ask.Agent = agent(h)
	if v := h.Get("If-None-Match"); v != "" {
		m := tag.FindStringSubmatch(v)
		if m == nil {
			return ask, 0, fmt.Errorf(`If-None-Match must be "HEX", the SHA-256 of the payload of the bundle in ` +
				`force in 64 lower-case digits`)
		}
		ask.InForce = m[1]
	}
	if ask.Site = h.Get("OAL-Site"); ask.Site != "" && !release.Name.MatchString(ask.Site) {
		return ask, 0, fmt.Errorf("OAL-Site must be 1 to 64 letters, digits, dots, dashes and underscores")
	}
	switch ask.Control = fleet.Control(h.Get("OAL-Control")); ask.Control {
	case "", fleet.On, fleet.Off:
	default:
		return ask, 0, fmt.Errorf("OAL-Control must be on or off, as the AP has it")
	}
	for _, preference := range strings.Split(h.Get("Prefer"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(preference), "=")
		if name != "wait" {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32)
		if err != nil {
			return ask, 0, fmt.Errorf("Prefer: wait=SECONDS, a whole number")
		}
		wait = min(time.Duration(n)*time.Second, maxWait)
	}
	return ask, wait, nil
}

func agent(h http.Header) string {
	v, _ := strings.CutPrefix(h.Get("User-Agent"), "ap-exporter/")
	return clip(v, 32)
}

func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
