// Package kafka reads compacted topics from Kafka, and writes rollout steps and who is revoked to it.
package kafka

import (
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"oal/deploy/internal/config"
	"oal/deploy/internal/tlsconf"
)

// Options of every client. Without a CA the connection is plain, for a broker on a private network.
func Options(c config.Kafka, id string) ([]kgo.Opt, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(strings.Split(c.Bootstrap, ",")...), kgo.ClientID(id)}
	if c.CA == "" {
		return opts, nil
	}
	roots, _, err := tlsconf.Roots("kafka.ca", c.CA)
	if err != nil {
		return nil, err
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	if c.Cert != "" {
		// Read anew for each connection: certificates are renewed without a restart.
		load := func() (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(c.Cert, c.Key)
			if err != nil {
				return nil, fmt.Errorf("kafka.cert, kafka.key: %w", err)
			}
			return &cert, nil
		}
		if _, err := load(); err != nil {
			return nil, err
		}
		tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return append(opts, kgo.DialTLSConfig(tlsConfig)), nil
}
