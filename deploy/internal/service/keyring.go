package service

import (
	"log/slog"
	"os"
	"sync"
	"time"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/metric"
)

// keyring is the file of trusted keys, read again when it changed: keys are rotated without a restart.
type keyring struct {
	path    string
	metrics *metric.Set
	logger  *slog.Logger

	lock    sync.Mutex // guards what follows
	keys    bundle.Keys
	changed time.Time
}

func newKeyring(path string, m *metric.Set, logger *slog.Logger) (*keyring, error) {
	k := &keyring{path: path, metrics: m, logger: logger, changed: modified(path)}
	var err error
	k.keys, err = bundle.ReadKeys(path)
	return k, err
}

func modified(path string) time.Time {
	if info, err := os.Stat(path); err == nil {
		return info.ModTime()
	}
	return time.Time{}
}

// current are the keys of now. A file that cannot be read leaves those before in force.
func (k *keyring) current() bundle.Keys {
	k.lock.Lock()
	defer k.lock.Unlock()
	if changed := modified(k.path); !changed.Equal(k.changed) {
		k.changed = changed
		keys, err := bundle.ReadKeys(k.path)
		if err != nil {
			k.metrics.Errors.WithLabelValues("keys").Inc()
			k.logger.Error("the trusted keys cannot be read; those before stay in force", "error", err)
		} else {
			k.keys = keys
			k.logger.Info("trusted keys read", "keys", len(keys))
		}
	}
	return k.keys
}
