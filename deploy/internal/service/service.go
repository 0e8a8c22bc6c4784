// Package service puts the parts of the push service together.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"oal/deploy/internal/admin"
	"oal/deploy/internal/api"
	"oal/deploy/internal/clickhouse"
	"oal/deploy/internal/config"
	"oal/deploy/internal/control"
	"oal/deploy/internal/fleet"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/killswitch"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/neighbour"
	"oal/deploy/internal/release"
	"oal/deploy/internal/store"
)

const (
	saveEvery  = 2 * time.Second
	drainLimit = 8 * time.Second
)

// Service is one replica.
type Service struct {
	config   *config.Config
	logger   *slog.Logger
	metrics  *metric.Set
	store    store.Store
	fleet    *fleet.Fleet
	control  *control.Control
	kills    *killswitch.Switch
	releases *kafka.Consumer
	channels *kafka.Consumer
	events   *kafka.Events
	api      *api.Server
	admin    *admin.Server
	denials  *denials

	AP, Admin net.Addr // where it listens, after Start

	cancel context.CancelFunc
	work   sync.WaitGroup
}

// New opens the store and makes all parts; nothing runs yet.
func New(ctx context.Context, c *config.Config, logger *slog.Logger) (*Service, error) {
	token, err := config.Secret(c.AdminTokenFile)
	if err != nil {
		return nil, fmt.Errorf("admin_token_file: %w", err)
	}
	tlsConfig, err := api.TLS(c.TLS.Cert, c.TLS.Key, c.TLS.ClientCA)
	if err != nil {
		return nil, err
	}
	s := &Service{config: c, logger: logger, metrics: metric.New()}
	keys, err := newKeyring(c.TrustedKeys, s.metrics, logger)
	if err != nil {
		return nil, err
	}
	if c.Store.Path != "" {
		s.store, err = store.OpenBolt(c.Store.Path)
	} else {
		s.store, err = store.OpenPostgres(ctx, c.Store.PostgresDSNFile)
	}
	if err != nil {
		return nil, err
	}
	s.fleet = fleet.New(c.Replica, time.Now, func(slot release.Slot, since time.Duration) {
		s.metrics.Applied.WithLabelValues(string(slot)).Observe(since.Seconds())
	})
	var meter control.Meter
	if c.ClickHouse != nil {
		meter = clickhouse.New(*c.ClickHouse)
	}
	s.control = control.New(s.fleet, s.store, keys.current, meter, s.metrics, time.Now, logger)
	s.kills = killswitch.New(s.fleet, s.store, s.metrics, time.Now, logger)
	neighbours := neighbour.New(s.metrics, time.Now, logger)
	s.releases, err = kafka.NewConsumer(c.Kafka, kafka.BundlesTopic, s.control.Handle, s.metrics.KafkaLag, s.metrics, logger)
	if err == nil {
		take := func(records []kafka.Record) {
			for _, r := range records {
				neighbours.Take(r.Key, r.Value)
			}
		}
		s.channels, err = kafka.NewConsumer(c.Kafka, neighbour.Topic, take, s.metrics.NeighbourLag, s.metrics, logger)
	}
	if err == nil {
		s.events, err = kafka.NewEvents(c.Kafka, s.store, s.metrics, logger)
	}
	if err != nil {
		s.store.Close()
		return nil, err
	}
	s.denials = newDenials(s.store, time.Now, logger)
	s.api = api.New(s.fleet, neighbours, s.metrics, tlsConfig, c.Limits, s.releases.CaughtUp, s.denials.note, time.Now, logger)
	s.admin = admin.New(s.fleet, s.control, s.kills, s.store, s.metrics, token, s.ready, logger)
	return s, nil
}

// Start brings the stored state back, begins to listen and to read.
func (s *Service) Start(ctx context.Context) (err error) {
	aps, err := s.store.APs(ctx, time.Time{})
	if err == nil {
		s.fleet.Merge(aps)
		err = errors.Join(s.control.Load(ctx), s.kills.Load(ctx))
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
	run, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.releases.Start()
	s.channels.Start() // nothing waits for it: an AP does without neighbours for a moment
	for _, task := range []func(context.Context){
		func(ctx context.Context) {
			s.control.Run(ctx, func(lead context.Context) { s.events.Run(lead, s.control.Events()) })
		},
		s.keepAPs, s.denials.run, s.kills.Run,
	} {
		s.work.Add(1)
		go func() {
			defer s.work.Done()
			task(run)
		}()
	}
	s.logger.Info("push service started", "ap", s.AP, "admin", s.Admin, "replica", s.config.Replica)
	return nil
}

// Stop sends APs away, stores what is not stored, and closes all.
func (s *Service) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	s.api.Stop(ctx)
	s.admin.Stop(ctx)
	if s.cancel != nil {
		s.releases.Stop()
		s.channels.Stop()
		s.cancel()
		s.work.Wait()
	}
	s.events.Close()
	s.saveAPs(ctx)
	if err := s.store.Close(); err != nil {
		s.logger.Error("closing the store failed", "error", err)
	}
}

// ready says what is missing before the service can be relied on.
func (s *Service) ready() error {
	if !s.releases.CaughtUp() {
		return errors.New("reading ap.bundles.v1 from the beginning")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return s.store.Ping(ctx)
}

// keepAPs stores APs that changed, reads those of other replicas, and notices those that have gone.
func (s *Service) keepAPs(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var saved time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			alive, err := s.store.Alive(ctx, s.config.Replica)
			if err != nil {
				s.failed("whether other replicas live cannot be read", err)
			} else {
				s.metrics.Connected.Set(float64(s.fleet.Sweep(alive)))
			}
			s.metrics.KnownAPs.Set(float64(s.fleet.Known()))
			if s.store.Shared() {
				s.mergeAPs(ctx, now)
			}
			if now.Sub(saved) >= saveEvery {
				saved = now
				s.saveAPs(ctx)
			}
		}
	}
}

func (s *Service) mergeAPs(ctx context.Context, now time.Time) {
	aps, err := s.store.APs(ctx, now.Add(-saveEvery))
	if err != nil {
		s.failed("APs of other replicas cannot be read", err)
		return
	}
	s.fleet.Merge(aps)
}

func (s *Service) saveAPs(ctx context.Context) {
	aps := s.fleet.Dirty()
	if len(aps) == 0 {
		return
	}
	if err := s.store.SaveAPs(ctx, aps); err != nil {
		s.fleet.Unstored(aps)
		s.failed("APs cannot be stored; trying again", err)
	}
}

func (s *Service) failed(what string, err error) {
	s.metrics.Errors.WithLabelValues("store").Inc()
	s.logger.Error(what, "error", err)
}
