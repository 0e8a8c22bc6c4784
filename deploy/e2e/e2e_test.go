// Package e2e runs the built service against a real Kafka broker and a real PostgreSQL, with APs over real TLS.
package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/pki"
	"oal/deploy/internal/platform"
	"oal/deploy/internal/release"
	"oal/deploy/internal/sim"
)

// What TestMain starts is shared by all tests. Those that use the scope `fleet` run alone and first; the others run
// beside each other, each with APs, a site and a store of its own: every replica sees every release and every
// revocation.
var (
	broker    *platform.Kafka
	postgres  *platform.Postgres
	authority *pki.Authority
	keysFile  string
	signer    *sim.Signer
	releaser  *platform.Releaser
)

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	folder, err := os.MkdirTemp("", "oal-deploy-e2e")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(folder)
	postgresStarted := make(chan error, 1)
	go func() {
		var err error
		postgres, err = platform.StartPostgres(filepath.Join(folder, "postgres"))
		postgresStarted <- err
	}()
	broker, err = platform.StartKafka(filepath.Join(folder, "platform"), true)
	if err == nil {
		defer broker.Stop()
	}
	errPostgres := <-postgresStarted
	if errPostgres == nil {
		defer postgres.Stop()
	}
	if err = errors.Join(err, errPostgres); err != nil {
		return 1, err
	}
	if authority, err = pki.Load(filepath.Join(broker.PKI, "ca.crt"), filepath.Join(broker.PKI, "ca.key")); err != nil {
		return 1, err
	}
	keysFile = filepath.Join(folder, "keys")
	if signer, err = sim.NewSigner(keysFile); err != nil {
		return 1, err
	}
	if releaser, err = broker.NewReleaser("e2e"); err != nil {
		return 1, err
	}
	defer releaser.Close()
	return m.Run(), nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls a condition; what says what was waited for, and is asked again when it fails.
func eventually(t *testing.T, what func() string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatal("not within 40 s: " + what())
}

// database is the file with the connection string of a new database of the one PostgreSQL server.
func database(t *testing.T) (dsnFile string) {
	t.Helper()
	file, err := postgres.NewDatabase(context.Background(), filepath.Join(t.TempDir(), "dsn"))
	must(t, err)
	return file
}

// databaseBehind is a new database with two files: its own connection string, and that of a proxy before it.
func databaseBehind(t *testing.T) (dsnFile, farFile string, proxy *platform.Proxy) {
	t.Helper()
	dsnFile, farFile = database(t), filepath.Join(t.TempDir(), "far")
	proxy, err := postgres.Behind(dsnFile, farFile)
	must(t, err)
	t.Cleanup(proxy.Close)
	return dsnFile, farFile, proxy
}

func says(text string) func() string { return func() string { return text } }

func start(t *testing.T, store config.Store) *platform.Replica {
	t.Helper()
	return startWith(t, store, nil)
}

func startWith(t *testing.T, store config.Store, clickHouse *config.ClickHouse) *platform.Replica {
	t.Helper()
	r, err := broker.NewReplica(t.TempDir(), keysFile, store, clickHouse)
	must(t, err)
	run(t, r)
	return r
}

// run starts a replica, and ends it with the test.
func run(t *testing.T, r *platform.Replica) {
	t.Helper()
	must(t, r.Start())
	t.Cleanup(func() {
		r.Kill()
		if t.Failed() {
			text, _ := os.ReadFile(r.Log)
			t.Logf("log of the replica:\n%s", text)
		}
	})
}

// metricOf is the value of a line of a replica's metrics; 0 when there is none.
func metricOf(t *testing.T, r *platform.Replica, line string) (value float64) {
	t.Helper()
	text, err := r.Metrics()
	if err != nil {
		t.Log(err) // it may be starting
		return 0
	}
	for _, l := range strings.Split(text, "\n") {
		if rest, is := strings.CutPrefix(l, line+" "); is {
			_, err := fmt.Sscan(rest, &value)
			must(t, err)
		}
	}
	return value
}

type apView struct {
	Revoked, Connected bool
	Applied            string
	CertificateUS      int64 `json:"certificate_not_after_us"`
}

func apOf(t *testing.T, r *platform.Replica, id string) (v apView) {
	t.Helper()
	must(t, r.Get("/v1/aps/"+id, &v))
	return v
}

// applied is how many of these APs have a bundle in force, as a replica knows.
func applied(t *testing.T, r *platform.Replica, hash string, names ...string) (n int) {
	t.Helper()
	for _, name := range names {
		for i := 1; i <= 5; i++ {
			if apOf(t, r, fmt.Sprintf("%s-%04d", name, i)).Applied == hash {
				n++
			}
		}
	}
	return n
}

func record(key string, value []byte) kafka.Record { return kafka.Record{Key: key, Value: value} }

func connect(t *testing.T, address, name, site string, n int) *sim.Fleet {
	t.Helper()
	f := &sim.Fleet{Address: address, Roots: authority.Pool(), Keys: signer.Keys(), WaitS: 60, ByPolicy: true,
		OnFailed: func(id string, err error) { t.Logf("%s: %v", id, err) }}
	must(t, f.Add(authority, name, site, n))
	f.Start()
	t.Cleanup(f.Stop)
	return f
}

func send(t *testing.T, slot release.Slot, scope string, version uint32, change func(map[string]any),
	rollbackTo ...string) string {
	t.Helper()
	key, value, hash := signer.Release(slot, scope, version, time.Now().UnixMicro(), change, rollbackTo...)
	must(t, releaser.Send(kafka.Record{Key: key, Value: value}))
	return hash
}

func withdraw(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		must(t, releaser.Send(kafka.Record{Key: key}))
	}
}

type rolloutView struct {
	ID, Hash, Step, Detail string
	All                    bool
	APs, Applied, Rejected int
}

func rolloutOf(t *testing.T, r *platform.Replica, hash string) (found rolloutView) {
	t.Helper()
	var answer struct{ Rollouts []rolloutView }
	if err := r.Get("/v1/rollouts", &answer); err != nil {
		t.Log(err)
		return found
	}
	for _, candidate := range answer.Rollouts {
		if candidate.Hash == hash {
			return candidate
		}
	}
	return found
}

func have(f *sim.Fleet, hash string, n int) (func() string, func() bool) {
	return func() string { return fmt.Sprintf("%d APs with %.12s, there are %d", n, hash, f.Have(hash)) },
		func() bool { return f.Have(hash) == n }
}

// event is a row of platform.events.v1 about a rollout.
type event struct {
	Rollout, Step string
	TS            int64
}

// history is what a replica's store remembers of a kind, newest first.
func history(t *testing.T, r *platform.Replica, kind string) (entries []historyEntry) {
	t.Helper()
	var answer struct{ Entries []historyEntry }
	must(t, r.Get("/v1/history?limit=1000", &answer))
	for _, e := range answer.Entries {
		if e.Kind == kind {
			entries = append(entries, e)
		}
	}
	return entries
}

type historyEntry struct {
	Kind, Key, Detail string
	Row               event
}

// steps of a rollout: those that a replica's store remembers in the end, and they all arrived in Kafka in their order.
func steps(t *testing.T, r *platform.Replica, rollout string, want ...string) {
	t.Helper()
	var taken []event
	var names []string
	eventually(t, func() string { return fmt.Sprintf("steps %v; they are %v", want, names) }, func() bool {
		taken, names = nil, nil
		for _, e := range history(t, r, "rollout") {
			if e.Row.Rollout == rollout {
				taken, names = append([]event{e.Row}, taken...), append([]string{e.Row.Step}, names...)
			}
		}
		return strings.Join(names, " ") == strings.Join(want, " ")
	})
	client, err := broker.Events()
	must(t, err)
	defer client.Close()
	next := 0 // of taken; what other tests' replicas took, and what came twice after a crash, is passed over
	eventually(t, func() string { return fmt.Sprintf("%+v in platform.events.v1", taken[next:]) }, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		for _, record := range client.PollRecords(ctx, 1000).Records() {
			var said struct {
				Table string
				Rows  []event
			}
			must(t, json.Unmarshal(record.Value, &said))
			for _, row := range said.Rows {
				if said.Table == "rollout" && next < len(taken) && row == taken[next] {
					next++
				}
			}
		}
		return next == len(taken)
	})
}
