package service

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
)

var certificateNotAfter = prometheus.NewDesc("oal_deploy_certificate_not_after_seconds",
	"When the first of the certificates in a file ends, seconds since 1970; 0: it cannot be read.", []string{"file"},
	nil)

// certificateEnds tells Prometheus when the service's own certificates end. It reads the files whenever it is asked:
// they are renewed without a restart.
type certificateEnds struct{ paths []string }

// newCertificateEnds takes each path once.
func newCertificateEnds(paths ...string) *certificateEnds {
	c := &certificateEnds{}
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
func (c *certificateEnds) Describe(to chan<- *prometheus.Desc) { to <- certificateNotAfter }

// Collect is of prometheus.Collector.
func (c *certificateEnds) Collect(to chan<- prometheus.Metric) {
	for _, path := range c.paths {
		to <- prometheus.MustNewConstMetric(certificateNotAfter, prometheus.GaugeValue, float64(firstEnd(path)),
			filepath.Base(path))
	}
}

// firstEnd is when the first of the certificates in a file ends, in seconds since 1970; 0: it cannot be read.
func firstEnd(path string) (seconds int64) {
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
