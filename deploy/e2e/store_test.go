package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/store"
	"oal/deploy/internal/store/storetest"
)

// PostgreSQL does what the embedded store does, and lets replicas share it.
func TestPostgresIsAStore(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	open := func(t *testing.T) store.Store {
		t.Helper()
		s, err := store.OpenPostgres(context.Background(), dsn, 3*time.Second)
		must(t, err)
		return s
	}
	storetest.Contract(t, open)
	storetest.Shared(t, open)
	s := open(t)
	defer s.Close()
	err := s.Snapshot(context.Background(), nil)
	if !errors.Is(err, store.ErrNoSnapshot) || !strings.Contains(err.Error(), "pg_dump") {
		t.Errorf("a snapshot of PostgreSQL: %v", err)
	}
}
