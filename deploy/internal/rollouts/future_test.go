package rollouts

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"oal/deploy/internal/kafka"
	"oal/deploy/internal/release"
)

// A release whose serial is far ahead would block its slot until then: it is refused, and what was there stays.
func TestAReleaseOfTheFutureIsRefused(t *testing.T) {
	x := start(t)
	_, good := x.release("rwnd-fair", release.Champion, 1, 0)
	for slot, scope := range map[release.Slot]string{release.Champion: "fleet", release.Online: "ap/a"} {
		key, value, _ := x.signer.Release(slot, scope, 2, x.clock.now().Add(time.Hour).UnixMicro(), nil)
		x.runner.Handle([]kafka.Record{{Key: key, Value: value}})
	}
	x.settle()
	for id, has := range x.has {
		if has["rwnd-fair"] != good {
			t.Errorf("%s has %s, not %s", id, has["rwnd-fair"], good)
		}
	}
	if n := testutil.ToFloat64(x.runner.metrics.ReleasesRefused.WithLabelValues("future")); n != 2 {
		t.Errorf("%g refusals are counted", n)
	}
	if _, next := x.release("rwnd-fair", release.Champion, 3, 0); x.has["a"]["rwnd-fair"] != next {
		t.Error("the slot is blocked")
	}
}
