// bench measures the push service against a real broker: `make -C deploy bench`. Results go to build/bench/push-*.json.
//
// Service, simulated APs and Kafka share the machine. Latency is from the signing of a release, just before it is
// produced to Kafka in a transaction, to the moment at which the AP has checked its signature and put it in force.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sort"
	"syscall"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/platform"
	"oal/deploy/internal/release"
	"oal/deploy/internal/sim"
)

type bench struct {
	folder   string
	out      string
	broker   *platform.Kafka
	releaser *platform.Releaser
	signer   *sim.Signer
	keys     string
	only     string
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	b := &bench{}
	small := flag.Int("small", 1000, "APs of the latency measurement")
	large := flag.Int("large", 10000, "APs of the memory and rollout measurement")
	flag.StringVar(&b.only, "only", "", "small, large or kill")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	b.out = filepath.Join(platform.Folder(), "..", "build", "bench")
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	if b.folder, err = os.MkdirTemp("", "oal-deploy-bench"); err != nil {
		return err
	}
	defer os.RemoveAll(b.folder)
	if b.broker, err = platform.StartKafka(filepath.Join(b.folder, "platform"), false); err != nil {
		return err
	}
	defer b.broker.Stop()
	b.keys = filepath.Join(b.folder, "keys")
	if b.signer, err = sim.NewSigner(b.keys); err != nil {
		return err
	}
	if b.releaser, err = b.broker.NewReleaser("bench"); err != nil {
		return err
	}
	defer b.releaser.Close()
	// A trainer's producer has long been initialised when it ships; so is this one before anything is measured.
	if err := b.releaser.Send(kafka.Record{Key: "champion/site/nowhere"}); err != nil {
		return err
	}
	if b.only != "large" {
		err = b.small(ctx, *small)
	}
	if err == nil && b.only != "small" && b.only != "kill" {
		err = b.large(ctx, *large)
	}
	return err
}

func (b *bench) result(name string, value float64, unit, note string) error {
	text, err := json.Marshal(map[string]any{"name": name, "value": value, "unit": unit,
		"command": "make -C deploy bench", "note": note})
	if err != nil {
		return err
	}
	fmt.Printf("%-34s %10.1f %-4s %s\n", name, value, unit, note)
	return os.WriteFile(filepath.Join(b.out, name+".json"), append(text, '\n'), 0o644)
}

// fleet is apsim as a process, with its service.
type fleet struct {
	b       *bench
	replica *platform.Replica
	sim     *exec.Cmd
	output  io.ReadCloser
	n       int
}

type simReport struct {
	Failures int64
	Last     string  `json:"last_failure"`
	CPUS     float64 `json:"cpu_s"`
	Versions map[string]struct {
		Applied int
		P50MS   float64 `json:"p50_ms"`
		P99MS   float64 `json:"p99_ms"`
		MaxMS   float64 `json:"max_ms"`
	}
	Turns [][]int64
}

func (b *bench) start(ctx context.Context, name string, n, rate int) (*fleet, error) {
	folder := filepath.Join(b.folder, name)
	replica, err := b.broker.NewReplica(folder, b.keys, config.Store{Path: filepath.Join(folder, "state.db")}, nil)
	if err != nil {
		return nil, err
	}
	if err := replica.Start(); err != nil {
		return nil, err
	}
	f := &fleet{b: b, replica: replica, n: n}
	ca := filepath.Join(b.broker.PKI, "ca")
	f.sim = exec.Command(filepath.Join(platform.Folder(), "build", "apsim"), "--address", replica.Config.APListen,
		"--ca", ca+".crt", "--ca-key", ca+".key",
		"--trusted-keys", b.keys, "--aps", fmt.Sprint(n), "--prefix", name, "--site", name, "--rate", fmt.Sprint(rate))
	f.sim.Stderr = os.Stderr
	if f.output, err = f.sim.StdoutPipe(); err == nil {
		err = f.sim.Start()
	}
	if err != nil {
		replica.Stop()
		return nil, err
	}
	if err := f.until(ctx, "all connected", 10*time.Minute,
		func(s summary) bool { return s.Connected == n }); err != nil {
		f.stop()
		return nil, err
	}
	return f, nil
}

type summary struct{ Known, Connected, Current, Killed, Unheard int }

func (f *fleet) until(ctx context.Context, what string, limit time.Duration, condition func(summary) bool) error {
	var s summary
	for deadline := time.Now().Add(limit); time.Now().Before(deadline) && ctx.Err() == nil; {
		if err := f.replica.Get("/v1/summary", &s); err != nil {
			return err
		}
		if condition(s) {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return fmt.Errorf("not within %s: %s; %+v", limit, what, s)
}

// stop ends the APs and the service, and returns what the APs saw.
func (f *fleet) stop() (r simReport, err error) {
	_ = f.sim.Process.Signal(syscall.SIGTERM)
	text, readErr := io.ReadAll(f.output)
	err = errors.Join(readErr, f.sim.Wait())
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	f.replica.Stop()
	if err == nil && r.Failures > 0 {
		fmt.Fprintf(os.Stderr, "bench: %d failures of APs, the last: %s\n", r.Failures, r.Last)
	}
	return r, err
}

// champion releases version to a site and waits until every AP has applied it.
func (f *fleet) champion(ctx context.Context, site string, version uint32) error {
	key, value, hash := f.b.signer.Release(release.Champion, "site/"+site, version, time.Now().UnixMicro(), nil)
	if err := f.b.releaser.Send(kafka.Record{Key: key, Value: value}); err != nil {
		return err
	}
	return f.until(ctx, "everyone has the release", 2*time.Minute, func(s summary) bool {
		return f.applied(hash) && s.Current == f.n
	})
}

func (f *fleet) applied(hash string) bool {
	var answer struct {
		Rollouts []struct {
			Hash, Step string
		}
	}
	if err := f.replica.Get("/v1/rollouts", &answer); err != nil || len(answer.Rollouts) == 0 {
		return false
	}
	return answer.Rollouts[0].Hash == hash && answer.Rollouts[0].Step == "completed"
}

// small: a champion to everyone, then 1 Hz of online trees to each AP.
func (b *bench) small(ctx context.Context, n int) error {
	f, err := b.start(ctx, "small", n, 300)
	if err != nil {
		return err
	}
	const champions, turns, seconds, batches = 10, 10, 15, 10
	const championVersion, onlineVersion = 1, 2 // the APs' latencies are kept by version
	turned, runErr := f.turns(ctx, turns)
	if b.only == "kill" {
		r, err := f.stop()
		return errors.Join(runErr, err, b.killed(turned, r.Turns, n))
	}
	for i := 0; i < champions && runErr == nil; i++ {
		runErr = f.champion(ctx, "small", championVersion)
	}
	cpu0, _, _, _ := f.replica.Usage()
	began := time.Now()
	for i := 0; i < seconds*batches && runErr == nil; i++ {
		// A trainer that goes from AP to AP ships a tenth of them each tenth of a second, in one transaction.
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / batches)))
		var records []kafka.Record
		for ap := i % batches; ap < n; ap += batches {
			key, value, _ := b.signer.Release(release.Online, fmt.Sprintf("ap/small-%04d", ap+1), onlineVersion,
				time.Now().UnixMicro(), nil)
			records = append(records, kafka.Record{Key: key, Value: value})
		}
		runErr = errors.Join(runErr, b.releaser.Send(records...))
	}
	took := time.Since(began).Seconds()
	cpu1, _, _, _ := f.replica.Usage()
	runErr = errors.Join(runErr, f.until(ctx, "all online trees applied", time.Minute,
		func(s summary) bool { return s.Current == n }))
	r, err := f.stop()
	if err = errors.Join(runErr, err); err != nil {
		return err
	}
	champion, online := r.Versions[fmt.Sprint(championVersion)], r.Versions[fmt.Sprint(onlineVersion)]
	rate := float64(seconds*n) / took
	return errors.Join(
		b.killed(turned, r.Turns, n),
		b.result("push-release-to-applied-p99", champion.P99MS, "ms",
			fmt.Sprintf("champion to %d connected APs at once, %d releases; median %.0f ms, worst %.0f ms", n,
				champions, champion.P50MS, champion.MaxMS)),
		b.result("push-online-to-applied-p99", online.P99MS, "ms",
			fmt.Sprintf("online trees to %d APs, %.0f a second for %.0f s, %d in a transaction; %d applied (an AP "+
				"that is busy skips to its newest), median "+
				"%.0f ms", n, rate, took, n/batches, online.Applied, online.P50MS)),
		b.result("push-online-cpu", 100*(cpu1-cpu0)/took, "%",
			fmt.Sprintf("of one core, the service, while %.0f online trees a second go out; the simulated APs took "+
				"%.1f CPU s in all", rate, r.CPUS)))
}

// turns turns the kill switch of the fleet off and on, each once all have heard the one before; when each was asked
// for, µs since 1970.
func (f *fleet) turns(ctx context.Context, n int) (at []int64, err error) {
	for i := 0; i < n && err == nil; i++ {
		off := i%2 == 0
		at = append(at, time.Now().UnixMicro())
		if err = f.replica.SetKill("fleet", off, "bench", "measured"); err != nil {
			break
		}
		err = f.until(ctx, "all have heard the kill switch", time.Minute, func(s summary) bool {
			return off && s.Killed == f.n && s.Unheard == 0 || !off && s.Killed == 0 && f.allHave("on")
		})
	}
	return at, err
}

// allHave says whether every AP says this of the kill switch.
func (f *fleet) allHave(control string) bool {
	for after, more := "", true; more; more = after != "" {
		var page struct {
			APs  []struct{ Control string }
			Next string
		}
		if err := f.replica.Get("/v1/fleet?limit=1000&after="+url.QueryEscape(after), &page); err != nil {
			return false
		}
		for _, a := range page.APs {
			if a.Control != control {
				return false
			}
		}
		after = page.Next
	}
	return true
}

func (b *bench) killed(asked []int64, heard [][]int64, n int) error {
	kill, err := latencies(asked, heard, n)
	if err != nil {
		return err
	}
	return b.result("push-kill-to-applied-p99", kill(.99), "ms",
		fmt.Sprintf("kill switch of the fleet, from the operator's request to the moment at which each of %d "+
			"connected APs has control off, or on again, %d turns; median %.0f ms, worst "+
			"%.0f ms", n, len(asked), kill(.5), kill(1)))
}

// latencies of all turns and APs; the result gives their quantiles in ms.
func latencies(asked []int64, heard [][]int64, n int) (func(q float64) float64, error) {
	var ms []float64
	for i := range asked {
		if i >= len(heard) || len(heard[i]) != n {
			return nil, fmt.Errorf("change %d of the kill switch was not heard by all", i+1)
		}
		for _, at := range heard[i] {
			ms = append(ms, float64(at-asked[i])/1e3)
		}
	}
	sort.Float64s(ms)
	return func(q float64) float64 { return ms[min(len(ms)-1, int(q*float64(len(ms))))] }, nil
}

// large: memory with everyone connected, and one release to all.
func (b *bench) large(ctx context.Context, n int) error {
	f, err := b.start(ctx, "large", n, 250)
	if err != nil {
		return err
	}
	connectCPU, _, _, _ := f.replica.Usage()
	runErr := f.champion(ctx, "large", 1)
	cpu0, _, _, _ := f.replica.Usage()
	runErr = errors.Join(runErr, f.champion(ctx, "large", 2))
	cpu1, rss, peak, usageErr := f.replica.Usage()
	r, err := f.stop()
	if err = errors.Join(runErr, usageErr, err); err != nil {
		return err
	}
	const mib = 1 << 20
	v := r.Versions["2"]
	return errors.Join(
		b.result("push-rss", float64(peak)/mib, "MiB",
			fmt.Sprintf("largest resident memory of the service with %d connected APs, connecting and two releases "+
				"to all included; %.0f MiB at the end", n, float64(rss)/mib)),
		b.result("push-rollout-time", max(v.MaxMS, r.Versions["1"].MaxMS)/1e3, "s",
			fmt.Sprintf("release to the last of %d APs, the slower of two; median %.1f s", n, v.P50MS/1e3)),
		b.result("push-rollout-cpu", cpu1-cpu0, "s",
			fmt.Sprintf("CPU of the service for one release to %d APs; %.1f s for their connecting (mutual TLS); the "+
				"simulated APs took %.1f s in all", n, connectCPU, r.CPUS)))
}
