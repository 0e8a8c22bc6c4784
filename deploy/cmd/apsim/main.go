// apsim is a fleet of simulated APs for tests and measurements: each holds a long poll over mutual TLS, checks the
// signature of what it gets, and reports it applied. At the end (SIGTERM, SIGINT) it prints one JSON document.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/pki"
	"oal/deploy/internal/sim"
)

// report is what is printed; latencies are from a bundle's serial (the time of its signing) to applied, by version.
type report struct {
	APs      int              `json:"aps"`
	Failures int64            `json:"failures"`
	LastFail string           `json:"last_failure,omitempty"`
	CPUS     float64          `json:"cpu_s"`
	Versions map[uint32]stats `json:"versions"` // of policy rwnd-fair
	// Policies are the versions of all others, by policy.
	Policies map[string]map[uint32]stats `json:"policies,omitempty"`
	// Turns is when each AP heard the first, the second, … change of the kill switch, µs since 1970.
	Turns [][]int64 `json:"turns,omitempty"`
}

type stats struct {
	Applied int     `json:"applied"`
	P50MS   float64 `json:"p50_ms"`
	P99MS   float64 `json:"p99_ms"`
	MaxMS   float64 `json:"max_ms"`
}

type latencies struct {
	lock sync.Mutex // guards ms
	ms   map[made][]float64
}

// made is a version of a policy.
type made struct {
	policy  string
	version uint32
}

func main() {
	if err := run(); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "apsim:", err)
		}
		os.Exit(1)
	}
}

func run() error {
	flags := flag.NewFlagSet("apsim", flag.ContinueOnError)
	address := flags.String("address", "", "host:port of the push service's AP listener (required)")
	ca := flags.String("ca", "", "CA certificate that signs the service and the APs (required)")
	caKey := flags.String("ca-key", "", "its key: apsim makes the APs' certificates in memory (required)")
	trusted := flags.String("trusted-keys", "", "file of trusted keys (required)")
	n := flags.Int("aps", 100, "number of APs")
	name := flags.String("prefix", "sim", "APs are called PREFIX-0001, PREFIX-0002, …")
	site := flags.String("site", "sim", "their site")
	wait := flags.Int("wait", 240, "seconds of each long poll")
	rate := flags.Int("rate", 400, "APs that connect per second")
	several := flags.Bool("several", false, "they know of several policies; without it they are as older exporters")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	authority, err := pki.Load(*ca, *caKey)
	if err != nil {
		return err
	}
	keys, err := bundle.ReadKeys(*trusted)
	if err != nil {
		return err
	}
	out := report{APs: *n, Versions: map[uint32]stats{}, Policies: map[string]map[uint32]stats{}}
	seen := &latencies{ms: map[made][]float64{}}
	turns := &turned{heard: map[string]int{}}
	var lastFail atomic.Value
	fleet := &sim.Fleet{Address: *address, Roots: authority.Pool(), Keys: keys, WaitS: *wait, Rate: *rate,
		Several: *several, ByPolicy: *several,
		OnApplied: func(_ string, b *bundle.Bundle, at time.Time) {
			seen.add(made{b.OfPolicy, b.Version}, float64(at.UnixMicro()-b.Serial)/1e3)
		},
		OnTurned: func(id string, _ bool, at time.Time) { turns.add(id, at) },
		OnFailed: func(id string, err error) {
			atomic.AddInt64(&out.Failures, 1)
			lastFail.Store(id + ": " + err.Error())
		}}
	if err := fleet.Add(authority, *name, *site, *n); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	fleet.Start()
	<-ctx.Done()
	fleet.Stop()
	for of, ms := range seen.ms {
		into := out.Versions
		if of.policy != bundle.RwndFair {
			if out.Policies[of.policy] == nil {
				out.Policies[of.policy] = map[uint32]stats{}
			}
			into = out.Policies[of.policy]
		}
		into[of.version] = summarize(ms)
	}
	out.Turns = turns.at
	out.LastFail, _ = lastFail.Load().(string)
	out.CPUS = cpuSeconds()
	return json.NewEncoder(os.Stdout).Encode(&out)
}

func (l *latencies) add(of made, ms float64) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.ms[of] = append(l.ms[of], ms)
}

type turned struct {
	lock  sync.Mutex // guards what follows
	heard map[string]int
	at    [][]int64
}

func (t *turned) add(id string, at time.Time) {
	t.lock.Lock()
	defer t.lock.Unlock()
	n := t.heard[id]
	t.heard[id]++
	for len(t.at) <= n {
		t.at = append(t.at, nil)
	}
	t.at[n] = append(t.at[n], at.UnixMicro())
}

func summarize(ms []float64) stats {
	sort.Float64s(ms)
	at := func(share float64) float64 { return ms[min(len(ms)-1, int(share*float64(len(ms))))] }
	return stats{len(ms), at(.5), at(.99), ms[len(ms)-1]}
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
