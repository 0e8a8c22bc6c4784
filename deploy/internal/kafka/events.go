package kafka

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/store"
)

// EventsTopic takes rows of the platform's own tables.
const EventsTopic = "platform.events.v1"

const (
	eventsEvery  = time.Second // how soon what Kafka did not acknowledge is sent again
	eventsAtOnce = 100         // rows of a request: 50 KB
)

// Events sends stored rows until they are acknowledged: a row may come twice after a crash, never not at all.
type Events struct {
	*Producer
	store   store.Store
	metrics *metric.Set
	logger  *slog.Logger
}

// NewEvents is inert; Run sends.
func NewEvents(c config.Kafka, s store.Store, m *metric.Set, logger *slog.Logger) (*Events, error) {
	producer, err := NewProducer(c, EventsTopic)
	if err != nil {
		return nil, err
	}
	return &Events{producer, s, m, logger}, nil
}

// Run sends what is pending, at each wake and once a second, while the context lives.
func (e *Events) Run(ctx context.Context, wake <-chan struct{}) {
	for {
		if err := e.send(ctx); err != nil && ctx.Err() == nil {
			e.metrics.Errors.WithLabelValues("kafka").Inc()
			e.logger.Error("sending rollout steps failed; they are kept and tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-time.After(eventsEvery):
		}
	}
}

func (e *Events) send(ctx context.Context) error {
	for {
		events, err := e.store.Pending(ctx, eventsAtOnce)
		e.metrics.EventsPending.Set(float64(len(events)))
		if err != nil || len(events) == 0 {
			return err
		}
		records, seqs := make([]Record, len(events)), make([]int64, len(events))
		for i, event := range events {
			value, err := json.Marshal(map[string]any{"table": "rollout", "rows": []json.RawMessage{event.Row}})
			if err != nil {
				return err
			}
			var row struct{ Rollout string }
			if err := json.Unmarshal(event.Row, &row); err != nil {
				return err
			}
			// The key keeps a rollout's steps in one partition, so in order.
			records[i], seqs[i] = Record{Key: row.Rollout, Value: value}, event.Seq
		}
		if err := e.Produce(ctx, records); err != nil {
			return err
		}
		if err := e.store.Acknowledged(ctx, seqs); err != nil {
			return err
		}
	}
}
