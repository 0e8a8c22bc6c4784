package e2e

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/store"
	"oal/deploy/internal/store/storetest"
)

// A replica that is started before PostgreSQL waits for it: on a cluster everything begins at once.
func TestAStartWaitsForThePostgreSQL(t *testing.T) {
	t.Parallel()
	_, far, proxy := databaseBehind(t)
	resume := proxy.Stall()
	t.Cleanup(resume)
	r, err := broker.NewReplica(t.TempDir(), keysFile, config.Store{PostgresDSNFile: far, Timeout: time.Second}, nil)
	must(t, err)
	ready := make(chan error, 1)
	go func() { ready <- r.Start() }()
	eventually(t, says("it says that it waits"), func() bool {
		log, err := os.ReadFile(r.Log)
		return err == nil && strings.Contains(string(log), "waiting for it")
	})
	resume()
	must(t, <-ready)
	r.Kill()
}

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
