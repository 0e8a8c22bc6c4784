// Package tlsconf is how TLS is spoken. Certificates and authorities of the listeners that change are taken for the
// next connection.
package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"oal/deploy/internal/fresh"
)

// Mutual requires a client certificate of one of the authorities in a file. what begins the name of the settings in
// errors.
func Mutual(what, cert, key, clientCA string, failed func(error)) (*tls.Config, error) {
	return listen(func() (*tls.Config, error) {
		c, err := load(what, cert, key)
		if err != nil {
			return nil, err
		}
		if c.ClientCAs, _, err = Roots(what+".client_ca", clientCA); err != nil {
			return nil, err
		}
		c.ClientAuth, c.VerifyConnection = tls.RequireAnyClientCert, verify(c.ClientCAs)
		return c, nil
	}, failed, cert, key, clientCA)
}

// Roots reads the authorities in a file of PEM, which it gives too; setting is what its path is called.
func Roots(setting, path string) (roots *x509.CertPool, pem []byte, err error) {
	if pem, err = os.ReadFile(path); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", setting, err)
	}
	roots = x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, nil, fmt.Errorf("%s: %s holds no certificate", setting, path)
	}
	return roots, pem, nil
}

// verify is what tls.RequireAndVerifyClientCert does, for resumed sessions too, but for one thing: Go refuses every URI
// without a host, and so the name of a site, below an authority with constraints of names, though that one's (O=oal,
// OU=ap) are of no URI. Whether the certificate is an AP's is looked at for every request (api.identity).
func verify(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errors.New("tls: client didn't provide a certificate")
		}
		intermediates := x509.NewCertPool()
		for _, cert := range state.PeerCertificates[1:] {
			intermediates.AddCert(cert)
		}
		leaf := *state.PeerCertificates[0]
		leaf.URIs = nil
		_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		return err
	}
}

// Server asks for no client certificate.
func Server(what, cert, key string, failed func(error)) (*tls.Config, error) {
	return listen(func() (*tls.Config, error) { return load(what, cert, key) }, failed, cert, key)
}

func listen(read func() (*tls.Config, error), failed func(error), paths ...string) (*tls.Config, error) {
	files, err := fresh.New(read, failed, paths...)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config,
		error) {
		return files.Get(), nil
	}}, nil
}

func load(what, cert, key string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s.cert, %s.key: %w", what, what, err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		NextProtos: []string{"http/1.1"}}, nil
}
