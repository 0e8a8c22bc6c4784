package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"oal/deploy/internal/config"
)

const (
	// deliveryTimeout is how long a record is tried before the caller hears that Kafka is away; it keeps what it could
	// not send.
	deliveryTimeout = 20 * time.Second
	// produceTimeout bounds a call whatever the client waits for before: a broker's metadata, a producer's id.
	produceTimeout = deliveryTimeout + 5*time.Second
)

// Producer writes to one topic.
type Producer struct {
	client  *kgo.Client
	timeout time.Duration // of a call
}

// NewProducer connects when something is written.
func NewProducer(c config.Kafka, topic string) (*Producer, error) {
	opts, err := Options(c, "oal-deploy-"+topic)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(opts, kgo.DefaultProduceTopic(topic),
		kgo.RecordDeliveryTimeout(deliveryTimeout))...)
	if err != nil {
		return nil, err
	}
	return &Producer{client, produceTimeout}, nil
}

// Produce returns when all records are acknowledged, or one was not in time.
func (p *Producer) Produce(ctx context.Context, records []Record) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	out := make([]*kgo.Record, len(records))
	for i, r := range records {
		out[i] = &kgo.Record{Key: []byte(r.Key), Value: r.Value}
	}
	return p.client.ProduceSync(ctx, out...).FirstErr()
}

// Close ends the connection.
func (p *Producer) Close() { p.client.Close() }
