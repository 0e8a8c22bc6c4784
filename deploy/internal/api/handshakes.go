package api

import (
	"context"
	"io"
	"log/slog"
	"strings"

	"oal/deploy/internal/limit"
	"oal/deploy/internal/metric"
)

const (
	handshakeLogRate  = 1.0 / 60 // warnings of one reason a second: an AP that is refused comes back every few seconds
	handshakeLogBurst = 1        // at once
)

// handshakes counts failed TLS handshakes by reason. net/http only logs them; of each reason one line a minute is a
// warning.
type handshakes struct {
	slog.Handler
	metrics *metric.Set
	logger  *slog.Logger
	limit   *limit.Limiter
}

func (h *handshakes) Enabled(context.Context, slog.Level) bool { return true }

func (h *handshakes) Handle(ctx context.Context, record slog.Record) error {
	if strings.Contains(record.Message, "TLS handshake error") && !strings.HasSuffix(record.Message, io.EOF.Error()) {
		reason := handshakeReason(record.Message)
		h.metrics.Denied.WithLabelValues(reason).Inc()
		if h.limit.Take(reason) == 0 {
			h.logger.Warn("an AP's connection is refused; further ones of this reason are only counted for a minute",
				"reason", reason, "error", record.Message)
			return nil
		}
	}
	if h.Handler.Enabled(ctx, record.Level) {
		return h.Handler.Handle(ctx, record)
	}
	return nil
}

// handshakeReason is what Go's TLS says, in a word.
func handshakeReason(message string) string {
	for _, c := range []struct{ says, reason string }{
		{"certificate has expired or is not yet valid", "expired_certificate"},
		{"signed by unknown authority", "foreign_certificate"},
		{"client didn't provide a certificate", "no_certificate"},
	} {
		if strings.Contains(message, c.says) {
			return c.reason
		}
	}
	return "tls_handshake"
}
