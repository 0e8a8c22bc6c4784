package service

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"oal/deploy/internal/mirror"
)

var (
	storeAway = prometheus.NewDesc("oal_deploy_store_away_since_seconds",
		"Since when the store does not answer, or answers with errors, seconds since 1970; 0: it answers.", nil, nil)
	staleSince = prometheus.NewDesc("oal_deploy_stale_since_seconds",
		"When a table that APs are answered from was last what the store has, seconds since 1970, while the store "+
			"does not answer; 0: it does.", []string{"table"}, nil)
	unstored = prometheus.NewDesc("oal_deploy_unstored",
		"Kills and revocations that are in force at this replica alone, as the store did not take them yet.",
		[]string{"table"}, nil)
)

// staleness tells Prometheus how far this replica knows what the store has.
type staleness struct {
	away   func() time.Time
	tables map[string]func() mirror.State
}

// Describe is of prometheus.Collector.
func (s *staleness) Describe(to chan<- *prometheus.Desc) {
	to <- storeAway
	to <- staleSince
	to <- unstored
}

// Collect is of prometheus.Collector.
func (s *staleness) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(storeAway, prometheus.GaugeValue, seconds(s.away()))
	for name, table := range s.tables {
		state := table()
		to <- prometheus.MustNewConstMetric(staleSince, prometheus.GaugeValue, seconds(state.StaleSince), name)
		to <- prometheus.MustNewConstMetric(unstored, prometheus.GaugeValue, float64(len(state.Unstored)), name)
	}
}

// seconds since 1970; 0 for the zero time.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMicro()) / 1e6
}
