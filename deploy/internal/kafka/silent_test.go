package kafka

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"oal/deploy/internal/config"
	"oal/deploy/internal/metric"
)

// soon is what nothing may take, on a machine however busy.
const soon = 60 * time.Second

// silent is a broker that accepts connections and never says anything.
func silent(t *testing.T) config.Kafka {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts; nobody reads
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return config.Kafka{Bootstrap: listener.Addr().String()}
}

func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(soon):
		t.Fatal("it hangs: " + what)
	}
}

// A broker that never answers holds up neither who writes nor the end of who reads.
func TestASilentBroker(t *testing.T) {
	broker := silent(t)
	producer, err := NewProducer(broker, "topic")
	if err != nil {
		t.Fatal(err)
	}
	producer.timeout = 50 * time.Millisecond
	within(t, "writing", func() {
		if err := producer.Produce(t.Context(), []Record{{Key: "a"}}); err == nil {
			t.Error("a broker that never answers has acknowledged a record")
		}
	})
	within(t, "the end of a producer", producer.Close)
	consumer, err := NewConsumer(broker, "topic", func([]Record) { t.Error("records of nobody") },
		prometheus.NewGauge(prometheus.GaugeOpts{}), metric.New(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	consumer.Start()
	within(t, "the end of a consumer", consumer.Stop)
	if consumer.CaughtUp() {
		t.Error("it knows all of a topic that it never saw")
	}
}
