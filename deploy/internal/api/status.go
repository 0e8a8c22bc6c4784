package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/fleet"
	"oal/deploy/internal/release"
)

var (
	// States and Reasons are settings.bundle_states and settings.bundle_reasons; a test compares them.
	States  = []string{fleet.Applied, fleet.Rejected, fleet.Restored, fleet.Waiting}
	Reasons = []string{"none", "oversized", "malformed", "unsigned", "unknown_key", "bad_signature",
		"unsupported_format", "wrong_target",
		"replayed", "bad_program", "bad_tree", "bad_window_model", "bad_policy", "feature_mismatch", "golden_mismatch",
		"no_memory", "not_permitted"}
)

type report struct {
	Bundle string          `json:"bundle"`
	Policy string          `json:"policy"` // of the bundle; an exporter that knows of none but rwnd-fair says none
	Serial int64           `json:"serial"`
	State  string          `json:"state"`
	Reason string          `json:"reason"`
	TSUS   int64           `json:"ts_us"`
	BootID json.RawMessage `json:"boot_id"` // a string: it has 64 bits
	Agent  string          `json:"agent"`
}

func (s *Server) status(w http.ResponseWriter, r *http.Request, ap Identity) {
	status, err := readReport(http.MaxBytesReader(w, r.Body, maxStatusBytes))
	if err != nil {
		s.Metrics.Denied.WithLabelValues("bad_request").Inc()
		code := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			code = http.StatusRequestEntityTooLarge
		}
		http.Error(w, err.Error(), code)
		return
	}
	s.Metrics.Statuses.WithLabelValues(status.State, status.Reason).Inc()
	s.Fleet.Report(ap.ID, status)
	w.WriteHeader(http.StatusNoContent)
}

func readReport(body io.Reader) (fleet.Status, error) {
	var in report
	if err := json.NewDecoder(body).Decode(&in); err != nil {
		return fleet.Status{}, fmt.Errorf("the body is not a report: %w", err)
	}
	if in.Reason == "" {
		in.Reason = "none"
	}
	switch {
	case !release.Hash.MatchString(in.Bundle):
		return fleet.Status{}, errors.New("bundle must be the hash of a bundle in 64 lower-case hexadecimal digits")
	case !slices.Contains(States, in.State):
		return fleet.Status{}, fmt.Errorf("state must be one of %v", States)
	case !slices.Contains(Reasons, in.Reason):
		return fleet.Status{}, fmt.Errorf("reason must be one of %v", Reasons)
	case in.Policy != "" && !bundle.PolicyName.MatchString(in.Policy):
		return fleet.Status{}, errors.New("policy must be the name of a policy")
	}
	return fleet.Status{Bundle: in.Bundle, Policy: in.Policy, Serial: in.Serial, State: in.State, Reason: in.Reason,
		BootID: clip(trimQuotes(in.BootID), 20), Agent: clip(in.Agent, 32)}, nil
}

func trimQuotes(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
