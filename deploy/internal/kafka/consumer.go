package kafka

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"oal/deploy/internal/config"
	"oal/deploy/internal/metric"
)

// BundlesTopic is compacted: its records are the present releases.
const BundlesTopic = "ap.bundles.v1"

const (
	pollWait      = time.Second            // of one fetch: how late lag and stopping are looked at while nothing comes
	metadataAge   = 30 * time.Second       // how late a moved partition is noticed without an error
	metadataRetry = 500 * time.Millisecond // between two tries while a broker is away
	quietAfter    = 3 * time.Second        // without a record nor an error: what is missing was compacted away
	endsEvery     = 10 * time.Second       // how late the lag is, once the ends are known
	endsRetry     = 500 * time.Millisecond // until then: readiness waits for it
	endsTimeout   = 10 * time.Second       // for the answer of a broker that has just started
)

// Record is a record as it came; a nil value withdraws.
type Record struct {
	Key   string
	Value []byte
}

// Consumer reads the whole of a compacted topic, and then what comes.
type Consumer struct {
	topic    string
	client   *kgo.Client
	lag      prometheus.Gauge
	handle   func([]Record)
	metrics  *metric.Set
	logger   *slog.Logger
	caughtUp atomic.Bool
	position map[int32]int64 // next offset by partition; of the reading goroutine
	ends     atomic.Pointer[map[int32]int64]
	cancel   context.CancelFunc
	done     chan struct{}
}

// NewConsumer is inert. handle gets the records in order, from one goroutine; the last call before CaughtUp turns true
// has an empty list.
func NewConsumer(c config.Kafka, topic string, handle func([]Record), lag prometheus.Gauge, m *metric.Set,
	logger *slog.Logger) (*Consumer, error) {
	opts, err := Options(c, "oal-deploy")
	if err != nil {
		return nil, err
	}
	// Control records are kept so that the position passes the markers that end transactions.
	client, err := kgo.NewClient(append(opts, kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(pollWait),
		kgo.MetadataMaxAge(metadataAge), kgo.MetadataMinAge(metadataRetry))...)
	if err != nil {
		return nil, err
	}
	return &Consumer{topic: topic, client: client, lag: lag, handle: handle, metrics: m, logger: logger,
		position: map[int32]int64{}, done: make(chan struct{})}, nil
}

// CaughtUp says whether all that was in the topic at the start has been handled.
func (c *Consumer) CaughtUp() bool { return c.caughtUp.Load() }

func (c *Consumer) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	go c.watchEnds(ctx)
	go c.read(ctx)
}

func (c *Consumer) Stop() {
	c.cancel()
	<-c.done
	c.client.Close()
}

func (c *Consumer) read(ctx context.Context) {
	defer close(c.done)
	quiet := time.Now()
	for ctx.Err() == nil {
		poll, cancel := context.WithTimeout(ctx, pollWait)
		fetches := c.client.PollFetches(poll)
		cancel()
		var records []Record
		fetches.EachRecord(func(r *kgo.Record) {
			c.position[r.Partition] = r.Offset + 1
			if !r.Attrs.IsControl() {
				records = append(records, Record{string(r.Key), r.Value})
			}
		})
		fetches.EachError(func(topic string, partition int32, err error) {
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
				quiet = time.Now()
				c.metrics.Errors.WithLabelValues("kafka").Inc()
				c.logger.Error("reading failed; trying again", "topic", topic, "partition", partition, "error", err)
			}
		})
		if fetches.NumRecords() > 0 {
			quiet = time.Now()
			c.handle(records)
		}
		c.compare(time.Since(quiet))
	}
}

// compare compares the position with the ends of the partitions as they were seen last.
func (c *Consumer) compare(quiet time.Duration) {
	ends := c.ends.Load()
	if ends == nil {
		return
	}
	var lag int64
	for partition, end := range *ends {
		lag += max(0, end-c.position[partition])
	}
	// Compaction can remove the very last records of a partition: then nothing comes although the position is behind.
	if quiet > quietAfter {
		lag = 0
	}
	c.lag.Set(float64(lag))
	if lag == 0 && !c.caughtUp.Load() {
		c.handle(nil)
		c.caughtUp.Store(true)
	}
}

// watchEnds asks for the ends: until it first succeeds often, for readiness, and then for the lag.
func (c *Consumer) watchEnds(ctx context.Context) {
	admin := kadm.NewClient(c.client)
	for {
		wait := endsEvery
		if ends, err := endOffsets(ctx, admin, c.topic); err == nil {
			c.ends.Store(&ends)
		} else {
			wait = endsRetry
			c.logger.Warn("the ends of the topic are not known yet", "topic", c.topic, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func endOffsets(ctx context.Context, admin *kadm.Client, topic string) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, endsTimeout)
	defer cancel()
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	listed, err := admin.ListCommittedOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(listed.Error(), starts.Error()); err != nil {
		return nil, err
	}
	ends := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) {
		if start, ok := starts.Lookup(topic, o.Partition); ok && start.Offset == o.Offset {
			return // empty: no position will ever be reached
		}
		ends[o.Partition] = o.Offset
	})
	return ends, nil
}
