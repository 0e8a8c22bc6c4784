// Package e2e runs the built service against a real Kafka broker and a real PostgreSQL, with APs over real TLS.
package e2e

import (
	"encoding/json"
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

var (
	broker    *platform.Kafka
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
	if broker, err = platform.StartKafka(filepath.Join(folder, "platform"), true); err != nil {
		return 1, err
	}
	defer broker.Stop()
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
	CertificateUS      int64 `json:"certificate_not_after_us"`
}

func apOf(t *testing.T, r *platform.Replica, id string) (v apView) {
	t.Helper()
	must(t, r.Get("/v1/aps/"+id, &v))
	return v
}

func record(key string, value []byte) kafka.Record { return kafka.Record{Key: key, Value: value} }

func connect(t *testing.T, address, name, site string, n int) *sim.Fleet {
	t.Helper()
	f := &sim.Fleet{Address: address, Roots: authority.Pool(), Keys: signer.Keys(), WaitS: 60,
		OnFailed: func(id string, err error) { t.Logf("%s: %v", id, err) }}
	must(t, f.Add(authority, name, site, n))
	f.Start()
	t.Cleanup(f.Stop)
	return f
}

func send(t *testing.T, slot release.Slot, scope string, version uint32, change func(map[string]any), rollbackTo ...string) string {
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

// steps of a bundle's rollout, as they arrived in Kafka.
func steps(t *testing.T, rollout string, want ...string) {
	t.Helper()
	client, err := broker.Events()
	must(t, err)
	defer client.Close()
	var got []string
	seen := map[string]bool{} // a row may come twice after a crash
	eventually(t, func() string { return fmt.Sprintf("steps %v in platform.events.v1, there are %v", want, got) }, func() bool {
		fetches := client.PollRecords(timeout(t, 300*time.Millisecond), 100)
		for _, record := range fetches.Records() {
			var event struct {
				Table string
				Rows  []struct {
					Rollout, Step string
					Bundle        uint64
					TS            int64
				}
			}
			must(t, json.Unmarshal(record.Value, &event))
			for _, row := range event.Rows {
				id := fmt.Sprint(row.Step, row.TS)
				if event.Table == "rollout" && row.Rollout == rollout && !seen[id] {
					seen[id] = true
					got = append(got, row.Step)
				}
			}
		}
		return strings.Join(got, " ") == strings.Join(want, " ")
	})
}
