package service

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/store"
)

const (
	// firstAnswer is how long a start waits for a PostgreSQL that does not answer yet: on a cluster everything begins
	// at once. The chart's startup probe allows a minute more.
	firstAnswer = 4 * time.Minute
	askEvery    = time.Second
)

// NewPatient is New for a start: it waits for a store that is away.
func NewPatient(ctx context.Context, c *config.Config, logger *slog.Logger) (*Service, error) {
	limit, end := context.WithTimeout(ctx, firstAnswer)
	defer end()
	for said := false; ; said = true {
		s, err := New(ctx, c, logger)
		if !errors.Is(err, store.ErrAway) {
			return s, err
		}
		if !said {
			logger.Warn("the store does not answer; waiting for it", "for", firstAnswer, "error", err)
		}
		select {
		case <-limit.Done():
			return nil, err
		case <-time.After(askEvery):
		}
	}
}
