package api

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"oal/deploy/internal/release"
)

// denial is a request that is refused for who asks.
type denial struct{ reason, detail string }

func (d *denial) Error() string { return d.reason + ": " + d.detail }

// identity is the ap_id of a verified client certificate.
func identity(state *tls.ConnectionState) (string, error) {
	if state == nil || len(state.VerifiedChains) == 0 {
		return "", &denial{"no_certificate", "there is no verified client certificate"}
	}
	subject := state.PeerCertificates[0].Subject
	if !slices.Contains(subject.OrganizationalUnit, "ap") {
		return subject.CommonName, &denial{"not_an_ap", fmt.Sprintf("the certificate's OU is %q", subject.OrganizationalUnit)}
	}
	if !release.Name.MatchString(subject.CommonName) {
		return subject.CommonName, &denial{"bad_name", "the certificate's CN is not an AP's id"}
	}
	return subject.CommonName, nil
}

// TLS is the configuration of the AP listener. Files that change are read again within reloadEvery: certificates are renewed
// without a restart, and APs keep their connections.
func TLS(certFile, keyFile, clientCAFile string) (*tls.Config, error) {
	files := &tlsFiles{cert: certFile, key: keyFile, ca: clientCAFile}
	if _, err := files.config(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return files.config() }}, nil
}

const reloadEvery = 10 * time.Second

type tlsFiles struct {
	cert, key, ca string

	lock    sync.Mutex // guards what follows
	checked time.Time
	changed time.Time
	current *tls.Config
}

// config is the present one. A new one that cannot be read leaves the old in force: half-written files mend themselves.
func (f *tlsFiles) config() (*tls.Config, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.current != nil && time.Since(f.checked) < reloadEvery {
		return f.current, nil
	}
	f.checked = time.Now()
	changed := latest(f.cert, f.key, f.ca)
	if f.current != nil && changed.Equal(f.changed) {
		return f.current, nil
	}
	next, err := load(f.cert, f.key, f.ca)
	if err != nil {
		if f.current != nil {
			return f.current, nil
		}
		return nil, err
	}
	f.current, f.changed = next, changed
	return next, nil
}

func load(certFile, keyFile, caFile string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("tls.cert, tls.key: %w", err)
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("tls.client_ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls.client_ca: %s holds no certificate", caFile)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"http/1.1"}}, nil
}

func latest(paths ...string) (newest time.Time) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest
}
