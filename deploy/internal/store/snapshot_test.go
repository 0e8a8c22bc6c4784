package store_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/store"
)

func snapshot(t *testing.T, s store.Store, path string) {
	t.Helper()
	must(t, s.Snapshot(ctx, func(size int64, state io.WriterTo) error {
		file, err := os.Create(path)
		must(t, err)
		n, err := state.WriteTo(file)
		if n != size {
			t.Errorf("%d bytes of %d", n, size)
		}
		return errors.Join(err, file.Close())
	}))
}

func TestRestore(t *testing.T) {
	folder := t.TempDir()
	path, backup := filepath.Join(folder, "state.db"), filepath.Join(folder, "backup")
	s, err := store.OpenBolt(path)
	must(t, err)
	must(t, s.SetKill(ctx, fleet.Kill{Target: fleet.Target{Scope: "fleet"}, Reason: "one"}, store.Entry{Kind: "kill"}))
	snapshot(t, s, backup)
	must(t, s.SetKill(ctx, fleet.Kill{Target: fleet.Target{Scope: "fleet"}, Reason: "two"}, store.Entry{Kind: "kill"}))
	if err := store.Restore(backup, path, true); !errors.Is(err, store.ErrRunning) {
		t.Errorf("while the service runs: %v", err)
	}
	must(t, s.Close())
	if err := store.Restore(backup, path, false); !errors.Is(err, store.ErrThere) {
		t.Errorf("over a state without force: %v", err)
	}
	whole, err := os.ReadFile(backup)
	must(t, err)
	for name, text := range map[string]string{"empty": "", "text": strings.Repeat("no state ", 9999),
		"half": string(whole[:len(whole)/2])} {
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
		if err := store.Restore(filepath.Join(folder, name), path, true); err == nil {
			t.Errorf("%s was restored", name)
		}
	}
	is := func(path, reason string) {
		t.Helper()
		s, err := store.OpenBolt(path)
		must(t, err)
		defer s.Close()
		if kills, err := s.Kills(ctx); err != nil || len(kills) != 1 || kills[0].Reason != reason {
			t.Errorf("%s: %+v %v", path, kills, err)
		}
	}
	is(path, "two")
	must(t, store.Restore(backup, path, true))
	is(path, "one")
	is(path+".before", "two")
	fresh := filepath.Join(folder, "elsewhere", "state.db")
	must(t, store.Restore(backup, fresh, false))
	is(fresh, "one")
}
