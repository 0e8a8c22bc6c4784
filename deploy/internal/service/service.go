// Package service puts the parts of the push service together.
package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"oal/deploy/internal/access"
	"oal/deploy/internal/account"
	"oal/deploy/internal/admin"
	"oal/deploy/internal/api"
	"oal/deploy/internal/clickhouse"
	"oal/deploy/internal/config"
	"oal/deploy/internal/enrol"
	"oal/deploy/internal/fleet"
	"oal/deploy/internal/issue"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/killswitch"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/mirror"
	"oal/deploy/internal/neighbour"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/rollouts"
	"oal/deploy/internal/store"
	"oal/deploy/internal/tlsconf"
)

const (
	drainLimit = 8 * time.Second    // of Stop: Kubernetes kills after 30 s
	endingSoon = 7 * 24 * time.Hour // of a certificate: renewal has failed for days by then
)

// Service is one replica.
type Service struct {
	config         *config.Config
	logger         *slog.Logger
	metrics        *metric.Set
	store          *store.Bounded
	fleet          *fleet.Fleet
	rollouts       *rollouts.Runner
	kills          *killswitch.Switch
	access         *access.List
	bundleTopic    *kafka.Consumer
	neighbourTopic *kafka.Consumer
	accessTopic    *kafka.Consumer
	events         *kafka.Events
	accessProducer *kafka.Producer
	tickets        *enrol.Tickets // nil: there is no enrolment
	enrol          *enrol.Server
	api            *api.Server
	admin          *admin.Server
	denials        *denials

	AP, Admin, Enrol net.Addr // where it listens, after Start

	cancel context.CancelFunc
	work   sync.WaitGroup
}

// New opens the store and makes all parts; nothing runs yet.
func New(ctx context.Context, c *config.Config, logger *slog.Logger) (*Service, error) {
	s := &Service{config: c, logger: logger, metrics: metric.New()}
	var opened store.Store
	var err error
	if c.Store.Path != "" {
		opened, err = store.OpenBolt(c.Store.Path)
	} else {
		opened, err = store.OpenPostgres(ctx, c.Store.PostgresDSNFile, c.Store.Timeout)
	}
	if err != nil {
		return nil, err
	}
	s.store = store.Bound(opened, c.Store.Timeout, s.storeChanged)
	if err := s.make(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *Service) make() error {
	c, logger := s.config, s.logger
	s.fleet = fleet.New(c.Replica, time.Now, func(slot release.Slot, since time.Duration) {
		s.metrics.Applied.WithLabelValues(string(slot)).Observe(since.Seconds())
	})
	keys, err := newKeyring(c.TrustedKeys, s.unreadable)
	if err != nil {
		return err
	}
	var meter rollouts.Meter
	if c.ClickHouse != nil {
		if meter, err = clickhouse.New(*c.ClickHouse); err != nil {
			return err
		}
	}
	s.rollouts = rollouts.New(s.fleet, s.store, keys.current, meter, s.metrics, time.Now, logger)
	s.rollouts.Gate = rollout.Gate{Required: c.Approvals != config.None, Share: c.CanaryShare}
	s.kills = killswitch.New(s.fleet, s.store, s.metrics, time.Now, logger)
	s.access = access.New(s.fleet, s.store, s.metrics, time.Now, logger)
	s.metrics.Registry.MustRegister(&staleness{s.store.Away, map[string]func() mirror.State{"kills": s.kills.State,
		"access": s.access.State}})
	s.denials = newDenials(s.store, time.Now, logger)
	neighbours := neighbour.New(s.metrics, time.Now, logger)
	if err := s.connect(neighbours); err != nil {
		return err
	}
	issuer, err := s.makeEnrolment(keys)
	if err != nil {
		return err
	}
	mutual, err := tlsconf.Mutual("tls", c.TLS.Cert, c.TLS.Key, c.TLS.ClientCA, s.unreadable)
	if err != nil {
		return err
	}
	s.api = api.New(api.Parts{Fleet: s.fleet, Neighbours: neighbours, Metrics: s.metrics, TLS: mutual, Limits: c.Limits,
		Ready:  s.caughtUp,
		Denied: s.denials.note, Revoked: s.access.Revoked, Issuer: issuer, Now: time.Now, Logger: logger})
	files := []string{c.TLS.Cert, c.TLS.ClientCA, c.Kafka.Cert, c.Kafka.CA}
	if c.Enrol != nil {
		files = append(files, c.Enrol.CACert, c.Enrol.Root)
	}
	if c.AdminTLS != nil {
		files = append(files, c.AdminTLS.Cert)
	}
	s.metrics.Registry.MustRegister(newCertificateEnds(files...))
	return s.makeAdmin()
}

// connect makes the clients of Kafka.
func (s *Service) connect(neighbours *neighbour.Table) (err error) {
	c := s.config.Kafka
	consumer := func(topic string, handle func([]kafka.Record), lag prometheus.Gauge) (*kafka.Consumer, error) {
		return kafka.NewConsumer(c, topic, handle, lag, s.metrics, s.logger)
	}
	if s.bundleTopic, err = consumer(kafka.BundlesTopic, s.rollouts.Handle, s.metrics.KafkaLag); err != nil {
		return err
	}
	take := func(records []kafka.Record) {
		for _, r := range records {
			neighbours.Take(r.Key, r.Value)
		}
	}
	if s.neighbourTopic, err = consumer(neighbour.Topic, take, s.metrics.NeighbourLag); err != nil {
		return err
	}
	if s.accessTopic, err = consumer(access.Topic, s.access.Handle, s.metrics.AccessLag); err != nil {
		return err
	}
	if s.events, err = kafka.NewEvents(c, s.store, s.metrics, s.logger); err != nil {
		return err
	}
	s.accessProducer, err = kafka.NewProducer(c, access.Topic)
	return err
}

// makeEnrolment makes what issues certificates, where the configuration has it.
func (s *Service) makeEnrolment(keys *keyring) (*issue.Issuer, error) {
	c := s.config.Enrol
	if c == nil {
		return nil, nil
	}
	issuer, err := issue.New(issue.Files{Cert: c.CACert, Key: c.CAKey, Root: c.Root, Masters: c.MACMasters},
		c.CertificateDays, keys.text, time.Now, s.unreadable)
	if err != nil {
		return nil, err
	}
	open, err := tlsconf.Server("tls", s.config.TLS.Cert, s.config.TLS.Key, s.unreadable)
	if err != nil {
		return nil, err
	}
	s.tickets = enrol.NewTickets(c.URL, issuer, s.store, s.access.Revoked, s.metrics, time.Now)
	s.enrol = enrol.NewServer(s.tickets, s.metrics, open, s.denials.note, time.Now, s.logger)
	return issuer, nil
}

func (s *Service) makeAdmin() error {
	c := s.config
	users, err := account.Open(c.AdminTokenFile, c.AdminUsersFile, s.unreadable)
	if err != nil {
		return err
	}
	if s.rollouts.Gate.Required && !users.Has(account.Approver) {
		s.logger.Warn("approvals are required, and no user is an approver: what is more than a canary waits; " +
			"`oal-deploy user NAME approver` makes a line of admin_users_file, `approvals: none` needs nobody")
	}
	parts := admin.Parts{Fleet: s.fleet, Rollouts: s.rollouts, Kills: s.kills, Access: s.access, Tickets: s.tickets,
		Store: s.store, StoreAway: s.store.Away, Metrics: s.metrics,
		Users: users, Ready: s.ready, Now: time.Now, Logger: s.logger, Audit: slog.New(slog.NewJSONHandler(os.Stderr,
			nil)).With("log", "audit")}
	if c.MetricsTokenFile != "" {
		if parts.Scraper, err = account.OpenToken("metrics_token_file", c.MetricsTokenFile, s.unreadable); err != nil {
			return err
		}
	}
	if c.AdminTLS != nil {
		if parts.TLS, err = tlsconf.Server("admin_tls", c.AdminTLS.Cert, c.AdminTLS.Key, s.unreadable); err != nil {
			return err
		}
	}
	s.admin = admin.New(parts)
	return nil
}

// unreadable is called for a file that changed and cannot be read.
func (s *Service) unreadable(err error) {
	s.metrics.Errors.WithLabelValues("files").Inc()
	s.logger.Error("a file that changed cannot be read; what it said before stays in force", "error", err)
}

// Start brings the stored state back, begins to listen and to read.
func (s *Service) Start(ctx context.Context) (err error) {
	aps, err := s.store.APs(ctx, time.Time{})
	if err == nil {
		s.fleet.Merge(aps)
		err = errors.Join(s.rollouts.Load(ctx), s.kills.Load(ctx), s.access.Load(ctx))
	}
	if err != nil {
		return err
	}
	if s.Admin, err = s.admin.Start(s.config.AdminListen); err != nil {
		return err
	}
	if s.AP, err = s.api.Start(s.config.APListen); err != nil {
		return err
	}
	if s.enrol != nil {
		if s.Enrol, err = s.enrol.Start(s.config.EnrolListen); err != nil {
			return err
		}
	}
	run, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.bundleTopic.Start()
	s.neighbourTopic.Start() // nothing waits for it: an AP does without neighbours for a moment
	s.accessTopic.Start()
	known := &apKeeper{Service: s}
	tasks := []func(context.Context){s.lead, known.sweep, known.keep, s.denials.run, s.kills.Run, s.access.Run}
	if s.tickets != nil {
		tasks = append(tasks, s.tickets.Run)
	}
	for _, task := range tasks {
		s.work.Add(1)
		go func() {
			defer s.work.Done()
			task(run)
		}()
	}
	s.logger.Info("push service started", "ap", s.AP, "admin", s.Admin, "replica", s.config.Replica)
	return nil
}

// lead sends what is for Kafka while this replica leads.
func (s *Service) lead(ctx context.Context) {
	s.rollouts.Run(ctx, func(lead context.Context) {
		go s.access.Send(lead, s.accessProducer)
		s.events.Run(lead, s.rollouts.Events())
	})
}

// Stop sends APs away, stores what is not stored, and closes all.
func (s *Service) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	s.api.Stop(ctx)
	if s.enrol != nil {
		s.enrol.Stop(ctx)
	}
	s.admin.Stop(ctx)
	if s.cancel != nil {
		s.bundleTopic.Stop()
		s.neighbourTopic.Stop()
		s.accessTopic.Stop()
		s.cancel()
		s.work.Wait()
	}
	s.saveAPs(ctx)
	s.close()
}

// close ends what New opened.
func (s *Service) close() {
	if s.events != nil {
		s.events.Close()
	}
	if s.accessProducer != nil {
		s.accessProducer.Close()
	}
	if err := s.store.Close(); err != nil {
		s.logger.Error("closing the store failed", "error", err)
	}
}

// caughtUp says whether the desired state is complete, and who is revoked: a store that was put back may not know all.
func (s *Service) caughtUp() bool { return s.bundleTopic.CaughtUp() && s.accessTopic.CaughtUp() }

// ready says what is missing before the service can be relied on. A store that is away since is not: APs are answered,
// and kills taken, from memory.
func (s *Service) ready() error {
	if !s.caughtUp() {
		return errors.New("reading ap.bundles.v1 and ap.access.v1 from the beginning")
	}
	return nil
}

// storeChanged is called when the store is away, and when it answers again.
func (s *Service) storeChanged(since time.Time, err error) {
	if err == nil {
		s.logger.Warn("the store answers again")
		return
	}
	s.logger.Error("the store is away; polls and kills are served from memory, and nothing that opens is taken",
		"since", since, "error", err)
}

func (s *Service) failed(what string, err error) {
	s.metrics.Errors.WithLabelValues("store").Inc()
	s.logger.Error(what, "error", err)
}
