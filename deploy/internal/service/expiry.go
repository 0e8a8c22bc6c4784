// Package expiry tells Prometheus when the service's own certificates end.
package expiry

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
)

var notAfter = prometheus.NewDesc("oal_deploy_certificate_not_after_seconds",
	"When the first of the certificates in a file ends, seconds since 1970; 0: it cannot be read.", []string{"file"}, nil)

// Collector reads the files whenever it is asked: they are renewed without a restart.
type Collector struct{ paths []string }

// New takes each path once.
func New(paths ...string) *Collector {
	c := &Collector{}
	seen := map[string]bool{"": true}
	for _, path := range paths {
		if !seen[path] {
			seen[path] = true
			c.paths = append(c.paths, path)
		}
	}
	return c
}

// Describe is of prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) { to <- notAfter }

// Collect is of prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	for _, path := range c.paths {
		to <- prometheus.MustNewConstMetric(notAfter, prometheus.GaugeValue, float64(first(path)), filepath.Base(path))
	}
}

func first(path string) (seconds int64) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return 0
		}
		if ends := cert.NotAfter.Unix(); seconds == 0 || ends < seconds {
			seconds = ends
		}
	}
	return seconds
}
