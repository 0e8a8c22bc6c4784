package store_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/store"
	"oal/deploy/internal/store/storetest"
)

var ctx = context.Background()

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheEmbeddedStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "state.db")
	storetest.Contract(t, func(t *testing.T) store.Store {
		s, err := store.OpenBolt(path)
		must(t, err)
		return s
	})
}

func TestAnEmbeddedStoreHasOneProcess(t *testing.T) {
	store.WaitForLock(t, 10*time.Millisecond)
	path := filepath.Join(t.TempDir(), "state.db")
	s, err := store.OpenBolt(path)
	must(t, err)
	defer s.Close()
	if _, err := store.OpenBolt(path); err == nil || !strings.Contains(err.Error(), "another process has it open") {
		t.Errorf("%v", err)
	}
}
