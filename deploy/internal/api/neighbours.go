package api

import (
	"net/http"
	"strconv"
	"strings"

	"oal/deploy/internal/limit"
	"oal/deploy/internal/neighbour"
)

const (
	neighbourRate  = 1 // requests of an AP a second, lasting: a record comes every five seconds
	neighbourBurst = 4 // at once: an AP with four radios asks for all of them
)

// neighbours answers with the statistics of the other APs on one of the AP's channels.
func (s *Server) neighbours(w http.ResponseWriter, r *http.Request, ap Identity) {
	count := func(code int) { s.Metrics.NeighbourAnswers.WithLabelValues(strconv.Itoa(code)).Inc() }
	if wait := s.neighbourLimiter.Take(ap.ID); wait > 0 {
		count(http.StatusTooManyRequests)
		limit.RetryAfter(w, wait)
		http.Error(w, "neighbours may be asked for once a second", http.StatusTooManyRequests)
		return
	}
	query := r.URL.Query()
	site := query.Get("site")
	frequency, err := strconv.ParseUint(query.Get("frequency_mhz"), 10, 32)
	if err == nil {
		err = neighbour.CheckChannel(site, frequency)
	}
	if err != nil {
		count(http.StatusBadRequest)
		http.Error(w, "ask for ?site=SITE&frequency_mhz=N: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := ap.at(site); err != nil {
		count(http.StatusForbidden)
		s.deny(w, r, ap, err)
		return
	}
	tag := strings.Trim(strings.TrimPrefix(r.Header.Get("If-None-Match"), "W/"), `"`)
	body, etag, known := s.Neighbours.For(ap.ID, site, uint16(frequency), tag)
	switch {
	case !known:
		count(http.StatusNoContent)
		w.WriteHeader(http.StatusNoContent)
	case body == nil:
		count(http.StatusNotModified)
		w.Header().Set("ETag", `"`+etag+`"`)
		w.WriteHeader(http.StatusNotModified)
	default:
		count(http.StatusOK)
		w.Header().Set("ETag", `"`+etag+`"`)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // an AP that does not get it asks again
	}
}
