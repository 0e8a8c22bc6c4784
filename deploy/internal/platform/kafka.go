// Package platform starts the real parts that tests and measurements need, as processes on loopback: Kafka, PostgreSQL
// and replicas of the push service itself.
package platform

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"oal/deploy/internal/config"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/neighbour"
	"oal/deploy/internal/permit"
)

// Folder of the push service's sources.
func Folder() string {
	_, file, _, _ := runtime.Caller(0)
	if filepath.IsAbs(file) {
		return filepath.Dir(filepath.Dir(filepath.Dir(file)))
	}
	// Built with -trimpath: go test and go run start below the module.
	at, _ := os.Getwd()
	for {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil || at == "/" {
			return at
		}
		at = filepath.Dir(at)
	}
}

// Kafka is a broker with the platform's topics, certificates and rights.
type Kafka struct {
	Bootstrap, PKI string
	ClickHouseURL  string
	state          string
}

func local(args ...string) *exec.Cmd {
	return exec.Command(filepath.Join(Folder(), "..", "platform", "local", "oal-local"), args...)
}

// StartKafka starts a broker, and ClickHouse if asked to, with their state in a folder; it takes 5 to 20 s.
func StartKafka(state string, clickHouse bool) (*Kafka, error) {
	only := "kafka"
	if clickHouse {
		only += ",clickhouse"
	}
	up := local("up", "--only", only, "--state", state, "--ports", "auto")
	if out, err := up.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("platform/local/oal-local up --only %s: %w\n%s", only, err, out)
	}
	k := &Kafka{PKI: filepath.Join(state, "pki"), state: state}
	env, err := local("env", "--state", state).Output()
	for _, line := range strings.Split(string(env), "\n") {
		name, value, _ := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		switch value = strings.Trim(value, `'"`); name {
		case "OAL_KAFKA_BOOTSTRAP":
			k.Bootstrap = value
		case "OAL_CLICKHOUSE_URL":
			k.ClickHouseURL = value
		}
	}
	if err != nil || k.Bootstrap == "" {
		k.Stop()
		return nil, fmt.Errorf("platform/local/oal-local env: %w\n%s", err, env)
	}
	return k, nil
}

// Stop ends the broker.
func (k *Kafka) Stop() {
	if out, err := local("down", "--state", k.state).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "platform/local/oal-local down: %v\n%s", err, out)
	}
}

// Client are the options of a role.
func (k *Kafka) Client(role string) config.Kafka {
	return config.Kafka{Bootstrap: k.Bootstrap, CA: filepath.Join(k.PKI, "ca.crt"), Cert: filepath.Join(k.PKI,
		role+".crt"), Key: filepath.Join(k.PKI, role+".key")}
}

// ClickHouse are the options of a user of the ClickHouse beside the broker.
func (k *Kafka) ClickHouse(user string) *config.ClickHouse {
	return &config.ClickHouse{URL: k.ClickHouseURL, User: user, Database: "oal", PasswordFile: filepath.Join(k.state,
		"secrets", "clickhouse-"+user+".password")}
}

// Releaser writes releases in transactions, as the registry does.
type Releaser struct {
	permit permit.Permit // of a transaction: a producer has one at a time
	client *kgo.Client
}

// NewReleaser connects as the registry.
func (k *Kafka) NewReleaser(id string) (*Releaser, error) {
	opts, err := kafka.Options(k.Client("model-registry"), "releaser")
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(opts, kgo.TransactionalID("model-registry-"+id),
		kgo.DefaultProduceTopic(kafka.BundlesTopic),
		kgo.ProducerLinger(0))...)
	return &Releaser{permit: permit.New(), client: client}, err
}

// Close ends the connection.
func (r *Releaser) Close() { r.client.Close() }

// Send writes records in one transaction.
func (r *Releaser) Send(records ...kafka.Record) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.permit.Acquire(ctx); err != nil {
		return err
	}
	defer r.permit.Return()
	if err := r.client.BeginTransaction(); err != nil {
		return err
	}
	out := make([]*kgo.Record, len(records))
	for i, record := range records {
		out[i] = &kgo.Record{Key: []byte(record.Key), Value: record.Value}
	}
	err := r.client.ProduceSync(ctx, out...).FirstErr()
	if err != nil {
		_ = r.client.AbortBufferedRecords(ctx)
		_ = r.client.EndTransaction(ctx, kgo.TryAbort)
		return err
	}
	return r.client.EndTransaction(ctx, kgo.TryCommit)
}

// WriteNeighbours writes a record of neighbours, as the stream job does; a nil value withdraws.
func (k *Kafka) WriteNeighbours(channel string, value []byte) error {
	opts, err := kafka.Options(k.Client("stream-jobs"), "neighbours")
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(append(opts, kgo.DefaultProduceTopic(neighbour.Topic))...)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return client.ProduceSync(ctx, &kgo.Record{Key: []byte(channel), Value: value}).FirstErr()
}

// Events reads platform.events.v1 from the beginning.
func (k *Kafka) Events() (*kgo.Client, error) { return k.Read(kafka.EventsTopic) }

// Read reads a topic from the beginning.
func (k *Kafka) Read(topic string) (*kgo.Client, error) {
	opts, err := kafka.Options(k.Client("viewer"), "reader")
	if err != nil {
		return nil, err
	}
	return kgo.NewClient(append(opts, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(200*time.Millisecond))...)
}
