package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
)

// Device is an AP that has made its key and has no certificate yet.
type Device struct {
	CSR string // its request for one, PEM
	key *ecdsa.PrivateKey
}

// NewDevice makes a key.
func NewDevice() (*Device, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	return &Device{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), key}, err
}

// Certificate is a chain that was issued for it, PEM, with its key.
func (d *Device) Certificate(chain string) (tls.Certificate, error) {
	der, err := x509.MarshalPKCS8PrivateKey(d.key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair([]byte(chain), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
