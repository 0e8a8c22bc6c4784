package access

import (
	"context"
	"encoding/json"
	"time"

	"oal/deploy/internal/kafka"
	"oal/deploy/internal/store"
)

// Producer writes records and returns when Kafka has acknowledged them.
type Producer interface {
	Produce(ctx context.Context, records []kafka.Record) error
}

// Send writes what is stored to Kafka while the context lives, which is while this replica leads. Everything is sent
// once at the beginning: a topic that was lost, or made anew, says again what is so.
func (l *List) Send(ctx context.Context, to Producer) {
	select {
	case <-ctx.Done():
		return
	case <-l.compared:
	}
	sent := map[string]int64{} // what this run has sent, by AP
	for {
		if err := l.send(ctx, to, sent); err != nil && ctx.Err() == nil {
			l.failed("kafka", "sending who is revoked failed; it is kept and tried again", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-l.unsent:
		case <-time.After(sendEvery):
		}
	}
}

func (l *List) send(ctx context.Context, to Producer, sent map[string]int64) error {
	var due []store.Access
	for _, a := range l.table.All() {
		if !a.Sent || sent[a.APID] != a.ChangedUS {
			due = append(due, a)
		}
	}
	if len(due) == 0 {
		return nil
	}
	records := make([]kafka.Record, len(due))
	for i, a := range due {
		records[i].Key = a.APID
		if a.Revoked {
			value, err := json.Marshal(record{a.APID, a.ChangedUS, a.Who, a.Reason})
			if err != nil {
				return err
			}
			records[i].Value = value
		}
	}
	if err := to.Produce(ctx, records); err != nil {
		return err
	}
	if err := l.store.AccessSent(ctx, due); err != nil {
		return err
	}
	for _, a := range due {
		sent[a.APID] = a.ChangedUS
	}
	return l.Load(ctx)
}
