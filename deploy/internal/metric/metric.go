// Package metric is what the push service counts, for Prometheus.
package metric

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Set are the metrics of one service.
type Set struct {
	Registry *prometheus.Registry

	Connected         prometheus.Gauge
	KnownAPs          prometheus.Gauge
	OpenConns         prometheus.Gauge
	Polls             *prometheus.CounterVec // by answer: 200, 204, 304, 503
	Pushed            *prometheus.CounterVec // bundles sent, by slot
	PushedBytes       prometheus.Counter
	Statuses          *prometheus.CounterVec // by state, reason
	Denied            *prometheus.CounterVec // requests refused, by reason
	Applied           *prometheus.HistogramVec
	ReleasesTaken     *prometheus.CounterVec // taken from Kafka, by slot, action
	ReleasesRefused   *prometheus.CounterVec // releases refused, by reason
	RolloutSteps      *prometheus.CounterVec
	RolloutActive     prometheus.Gauge
	RolloutStalled    prometheus.Gauge
	RolloutUnapproved prometheus.Gauge
	Approvals         *prometheus.CounterVec
	Leader            prometheus.Gauge
	Kills             prometheus.Gauge
	KilledAPs         prometheus.Gauge
	UnheardAPs        prometheus.Gauge
	KillChanges       *prometheus.CounterVec // of the kill switch, by kind of scope, action
	Neighbours        *prometheus.CounterVec // records of ap.neighbours.v1, by what became of them
	Channels          prometheus.Gauge
	NeighbourAnswers  *prometheus.CounterVec // by code
	NeighbourLag      prometheus.Gauge
	KafkaLag          prometheus.Gauge
	EventsPending     prometheus.Gauge
	Errors            *prometheus.CounterVec // by what failed: store, kafka, clickhouse, files
	Revoked           prometheus.Gauge
	AccessPending     prometheus.Gauge
	AccessLag         prometheus.Gauge
	Enrolments        *prometheus.CounterVec // by result
	Renewals          *prometheus.CounterVec // by result
	OpenTickets       prometheus.Gauge
	AdminRefused      *prometheus.CounterVec // by reason
	AuditUnstored     prometheus.Counter
	CertificateFirst  *prometheus.GaugeVec // without a value when no AP is connected
	CertificatesEnd   prometheus.Gauge
}

// New makes and registers all of them.
func New() *Set {
	s := &Set{Registry: prometheus.NewRegistry()}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "oal_deploy_" + name, Help: help})
		s.Registry.MustRegister(g)
		return g
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "oal_deploy_" + name, Help: help}, labels)
		s.Registry.MustRegister(c)
		return c
	}
	s.Connected = gauge("connected_aps", "APs with an open long poll or a request in the last 20 s, on all replicas.")
	s.KnownAPs = gauge("known_aps", "APs that ever asked.")
	s.OpenConns = gauge("ap_connections", "Connections of APs to this replica.")
	s.Polls = counter("polls_total", "Long polls answered, by status code.", "code")
	s.Pushed = counter("bundles_sent_total", "Bundles sent to APs, by slot.", "slot")
	s.PushedBytes = counter("bundle_bytes_sent_total", "Bytes of bundles sent to APs.").WithLabelValues()
	s.Statuses = counter("statuses_total", "Reports of APs, by state and reason.", "state", "reason")
	s.Denied = counter("denied_total", "Requests of APs refused, by reason.", "reason")
	s.Applied = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "oal_deploy_release_to_applied_seconds",
		Help:    "From the making of a release to the report `applied` of an AP that was waiting for it, by slot.",
		Buckets: []float64{.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30}}, []string{"slot"})
	s.Registry.MustRegister(s.Applied)
	s.ReleasesTaken = counter("releases_total", "Releases and withdrawals taken from Kafka, by slot.", "slot", "action")
	s.ReleasesRefused = counter("releases_refused_total", "Records refused at the door, by reason.", "reason")
	s.RolloutSteps = counter("rollout_steps_total", "Steps of rollouts taken by this replica.", "step")
	s.RolloutActive = gauge("rollouts_active", "Rollouts that are started, soaking or expanded and not completed.")
	s.RolloutStalled = gauge("rollouts_stalled", "Rollouts that did not get on within their deadline.")
	s.RolloutUnapproved = gauge("rollouts_unapproved", "Rollouts that wait for an approval, now or at their next step.")
	s.Approvals = counter("approvals_total", "Approvals of rollouts on this replica, by kind: ordinary, emergency.",
		"kind")
	s.Leader = gauge("leader", "1 while this replica takes the steps of rollouts.")
	s.Kills = gauge("kills", "Scopes that the kill switch turns off.")
	s.KilledAPs = gauge("killed_aps", "APs in those scopes.")
	s.UnheardAPs = gauge("killed_aps_unheard", "Of these, connected and not yet said to have heard.")
	s.KillChanges = counter("kill_turns_total",
		"Changes of the kill switch on this replica, by kind of scope and action.", "scope", "action")
	s.Neighbours = counter("neighbour_records_total", "Records of ap.neighbours.v1: taken, withdrawn, refused.",
		"action")
	s.Channels = gauge("neighbour_channels", "Channels of sites whose neighbours are known.")
	s.NeighbourAnswers = counter("neighbour_answers_total", "Requests of APs for their neighbours, by status code.",
		"code")
	s.NeighbourLag = gauge("neighbour_lag_records", "Records of ap.neighbours.v1 not yet read.")
	s.KafkaLag = gauge("kafka_lag_records", "Records of ap.bundles.v1 not yet read.")
	s.EventsPending = gauge("events_pending", "Rows for platform.events.v1 not yet acknowledged.")
	s.Revoked = gauge("revoked_aps", "APs that are kept out.")
	s.AccessPending = gauge("access_pending", "Revocations and restorations that ap.access.v1 does not say yet.")
	s.AccessLag = gauge("access_lag_records", "Records of ap.access.v1 not yet read.")
	s.Enrolments = counter("enrolments_total",
		"Requests to enrol, by result: issued, repeated, refused, revoked, bad_request, rate_limit, "+
			"too_many_connections, failed.", "result")
	s.Renewals = counter("renewals_total",
		"Requests for a new certificate, by result: issued, bad_request, rate_limit, failed.", "result")
	s.OpenTickets = gauge("open_tickets", "Tickets that can be used.")
	s.AdminRefused = counter("admin_refused_total",
		"Requests to the admin interface refused, by reason: token, role, rate_limit.", "reason")
	s.AuditUnstored = counter("audit_unstored_total",
		"Lines of the audit log that are in the service's log and not in the store.").WithLabelValues()
	s.CertificateFirst = prometheus.NewGaugeVec(
		prometheus.GaugeOpts{Name: "oal_deploy_ap_certificate_first_not_after_seconds",
			Help: "When the first of the connected APs' certificates ends, seconds since 1970."}, nil)
	s.Registry.MustRegister(s.CertificateFirst)
	s.CertificatesEnd = gauge("ap_certificates_ending", "Connected APs whose certificate ends within 7 days.")
	s.Errors = counter("errors_total", "Failures of what the service depends on; each is retried.", "of")
	s.Registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}
