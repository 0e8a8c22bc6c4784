package service

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"oal/deploy/internal/store"
)

// denials puts refused APs into the history: each certificate and reason once an hour, whatever it tries.
type denials struct {
	store  store.Store
	now    func() time.Time
	logger *slog.Logger
	queue  chan store.Entry

	lock sync.Mutex // guards seen
	seen map[string]time.Time
}

const (
	denialEvery = time.Hour // a line of history for each certificate and reason
	maxSeen     = 10000     // certificates and reasons remembered: 1 MB; then all are forgotten
	maxQueued   = 100       // lines that wait for the store; what does not fit is only counted
)

func newDenials(s store.Store, now func() time.Time, logger *slog.Logger) *denials {
	return &denials{store: s, now: now, logger: logger,
		queue: make(chan store.Entry, maxQueued), seen: map[string]time.Time{}}
}

// note never blocks; what does not fit is still counted by the API.
func (d *denials) note(certificate, reason, path string) {
	d.lock.Lock()
	key, now := reason+" "+certificate, d.now()
	fresh := now.Sub(d.seen[key]) >= denialEvery
	if fresh {
		if len(d.seen) >= maxSeen {
			clear(d.seen)
		}
		d.seen[key] = now
	}
	d.lock.Unlock()
	if !fresh {
		return
	}
	select {
	case d.queue <- store.Entry{TSUS: now.UnixMicro(), Kind: "denied", Key: certificate, Detail: reason + " for " +
		path}:
	default:
	}
}

func (d *denials) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-d.queue:
			if err := d.store.Log(ctx, e); err != nil {
				d.logger.Error("history cannot be stored", "error", err)
			}
		}
	}
}
