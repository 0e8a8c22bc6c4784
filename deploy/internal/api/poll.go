package api

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/fleet"
	"oal/deploy/internal/limit"
	"oal/deploy/internal/release"
)

var tag = regexp.MustCompile(`^(?:W/)?"([0-9a-f]{64})"$`)

// bundle answers with a bundle that the AP should have as soon as that is not the one it has, with what the kill switch
// says as soon as it is turned, and with the policies that the AP should have as soon as it has one too many.
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
	for {
		if err := s.revoked(ap.ID); err != nil {
			s.deny(w, r, ap, err)
			return
		}
		rel, activateUS, send := s.Fleet.Desired(poll)
		news := s.tell(w, poll)
		if send {
			s.send(w, poll, rel, activateUS)
			return
		}
		if news {
			s.unchanged(w, rel == nil)
			return
		}
		select {
		case <-poll.Wake():
		case <-timer.C:
			s.tell(w, poll)
			s.unchanged(w, rel == nil)
			return
		case <-poll.Gone():
			s.unchanged(w, false)
			return
		case <-r.Context().Done(): // the AP has gone
			return
		case <-s.draining:
			s.tell(w, poll)
			s.away(w, "the service is stopping")
			return
		}
	}
}

// tell puts what the kill switch says into the answer, and which policies the AP should have; true when one of them is
// news to it.
func (s *Server) tell(w http.ResponseWriter, poll *fleet.Poll) bool {
	switched, turned := s.Fleet.Switched(poll)
	w.Header().Set("OAL-Control", string(switched.Control))
	if switched.ByPolicy {
		w.Header().Set("OAL-Killed", switched.Killed)
	}
	policies, surplus := s.Fleet.Policies(poll)
	if poll.Several() {
		w.Header().Set("OAL-Policies", strings.Join(policies, " "))
	}
	return turned || surplus
}

func (s *Server) send(w http.ResponseWriter, poll *fleet.Poll, rel *release.Release, activateUS int64) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTimeout))
	h := w.Header()
	h.Set("Content-Type", "application/vnd.oal.bundle")
	h.Set("ETag", `"`+rel.Bundle.Hash+`"`)
	if poll.Several() {
		h.Set("OAL-Policy", rel.Policy())
	}
	h.Set("Content-Length", strconv.Itoa(len(rel.Signed)))
	if activateUS > s.Now().UnixMicro() {
		h.Set("OAL-Activate-At", strconv.FormatInt(activateUS, 10))
	}
	s.Metrics.Polls.WithLabelValues("200").Inc()
	s.Metrics.Pushed.WithLabelValues(string(rel.Slot)).Inc()
	s.Metrics.PushedBytes.Add(float64(len(rel.Signed)))
	_, _ = w.Write(rel.Signed) // an AP that does not get it asks again
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
	if err := inForce(h, &ask); err != nil {
		return ask, 0, err
	}
	if ask.Site = h.Get("OAL-Site"); ask.Site != "" && !release.Name.MatchString(ask.Site) {
		return ask, 0, fmt.Errorf("OAL-Site must be 1 to 64 letters, digits, dots, dashes and underscores")
	}
	if ask.Switched, err = switched(h); err != nil {
		return ask, 0, err
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

// switched reads what the AP has of the kill switch. An exporter that knows that policies can be off one by one has the
// header OAL-Killed, with their names or empty.
func switched(h http.Header) (s fleet.Switched, err error) {
	switch s.Control = fleet.Control(h.Get("OAL-Control")); s.Control {
	case "", fleet.On, fleet.Off:
	default:
		return s, fmt.Errorf("OAL-Control must be on or off, as the AP has it")
	}
	named, known := h["Oal-Killed"]
	s.ByPolicy = known && s.Control != ""
	if !s.ByPolicy {
		return s, nil
	}
	policies := strings.Fields(strings.Join(named, " "))
	if len(policies) > fleet.MaxKilled {
		return s, fmt.Errorf("OAL-Killed has %d names; at most %d", len(policies), fleet.MaxKilled)
	}
	for _, policy := range policies {
		if !bundle.PolicyName.MatchString(policy) {
			return s, fmt.Errorf("OAL-Killed must have names of policies with a space between them")
		}
	}
	slices.Sort(policies)
	s.Killed = strings.Join(slices.Compact(policies), " ")
	return s, nil
}

// inForce reads which bundles the AP has. An exporter that knows of several policies names them in OAL-Policies, with
// the hashes of their bundles in the same order in If-None-Match; an older one has one hash at most, of rwnd-fair.
func inForce(h http.Header, ask *fleet.Ask) error {
	named, known := h["Oal-Policies"]
	tags := h.Values("If-None-Match")
	if !known {
		if len(tags) == 0 || tags[0] == "" {
			return nil
		}
		m := tag.FindStringSubmatch(tags[0])
		if m == nil {
			return fmt.Errorf(`If-None-Match must be "HEX", the SHA-256 of the payload of the bundle in ` +
				`force in 64 lower-case digits`)
		}
		ask.InForce = m[1]
		return nil
	}
	policies := strings.Fields(strings.Join(named, " "))
	var hashes []string
	if list := strings.Join(tags, ","); strings.TrimSpace(list) != "" {
		hashes = strings.Split(list, ",")
	}
	if len(policies) > fleet.MaxPolicies || len(policies) != len(hashes) {
		return fmt.Errorf("OAL-Policies has %d names and If-None-Match %d tags: they are the policies of which the AP "+
			"has a bundle, at most %d, and the bundles' hashes in the same order", len(policies), len(hashes),
			fleet.MaxPolicies)
	}
	ask.Others = map[string]string{}
	came := map[string]bool{}
	for i, policy := range policies {
		m := tag.FindStringSubmatch(strings.TrimSpace(hashes[i]))
		if m == nil || !bundle.PolicyName.MatchString(policy) || came[policy] {
			return fmt.Errorf(`OAL-Policies has the names of different policies, and If-None-Match for each "HEX", ` +
				`the SHA-256 of the payload of the bundle in force in 64 lower-case digits`)
		}
		came[policy] = true
		if policy == bundle.RwndFair {
			ask.InForce = m[1]
		} else {
			ask.Others[policy] = m[1]
		}
	}
	return nil
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
