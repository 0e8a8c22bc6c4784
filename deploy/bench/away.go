package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/platform"
)

// away: the kill switch while PostgreSQL answers nobody: connections stay open and nothing comes through them.
func (b *bench) away(ctx context.Context, n int) error {
	postgres, err := platform.StartPostgres(filepath.Join(b.folder, "postgres"))
	if err != nil {
		return err
	}
	defer postgres.Stop()
	dsn, err := postgres.NewDatabase(ctx, filepath.Join(b.folder, "dsn"))
	if err != nil {
		return err
	}
	far := filepath.Join(b.folder, "dsn-behind")
	proxy, err := postgres.Behind(dsn, far)
	if err != nil {
		return err
	}
	defer proxy.Close()
	f, err := b.startOn(ctx, "away", n, 300, config.Store{PostgresDSNFile: far})
	if err != nil {
		return err
	}
	const kills = 5
	var asked []int64
	var runErr error
	for i := 0; i < kills && runErr == nil; i++ {
		var at int64
		at, runErr = f.killAway(ctx, proxy)
		asked = append(asked, at)
	}
	r, err := f.stop()
	if err = errors.Join(runErr, err); err != nil {
		return err
	}
	var heard [][]int64
	for i := 0; i < len(r.Turns); i += 2 { // between two kills control is on again
		heard = append(heard, r.Turns[i])
	}
	late, err := latencies(asked, heard, n)
	if err != nil {
		return err
	}
	return b.result("push-kill-store-away-p99", late(.99), "ms",
		fmt.Sprintf("kill switch of the fleet while PostgreSQL does not answer (its packets go nowhere), from the "+
			"operator's request to the moment at which each of %d connected APs has control off, %d kills; median "+
			"%.0f ms, worst %.0f ms", n, kills, late(.5), late(1)))
}

// killAway kills while the store is away, and takes that back when it is there again; when it was asked for, in µs
// since 1970.
func (f *fleet) killAway(ctx context.Context, proxy *platform.Proxy) (asked int64, err error) {
	resume := proxy.Stall()
	defer resume()
	asked = time.Now().UnixMicro()
	if err := f.replica.Turn("fleet", true, "bench", "measured"); err != nil {
		return asked, err
	}
	if err := f.until(ctx, "all have heard the kill", time.Minute,
		func(s summary) bool { return s.Killed == f.n && s.Unheard == 0 }); err != nil {
		return asked, err
	}
	resume()
	stored := func(summary) bool {
		var k struct{ Stored bool }
		return f.replica.Get("/v1/control/kill/fleet", &k) == nil && k.Stored
	}
	if err := f.until(ctx, "the kill is stored", time.Minute, stored); err != nil {
		return asked, err
	}
	if err := f.replica.Turn("fleet", false, "bench", "measured"); err != nil {
		return asked, err
	}
	return asked, f.until(ctx, "control is on again", time.Minute,
		func(s summary) bool { return s.Killed == 0 && f.allHave("on") })
}
