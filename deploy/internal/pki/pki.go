// Package pki makes certificates for the simulated fleet and the tests: CN = name, OU = role, O = oal, as the
// platform's.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Authority signs certificates.
type Authority struct {
	Certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	leafKey     *ecdsa.PrivateKey // of all it issues: thousands of keys would prove no more
}

// New makes an authority that is in memory only.
func New() (*Authority, error) {
	return authority(certificate("test CA", "ca"), nil)
}

// authority makes one below a parent; nil: it signs itself.
func authority(template *x509.Certificate, parent *Authority) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	if parent == nil {
		parent = &Authority{Certificate: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent.Certificate, key.Public(), parent.key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return withKey(parsed, key)
}

// Load reads an authority's certificate and PKCS#8 key.
func Load(certFile, keyFile string) (*Authority, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New(keyFile + ": not an ECDSA key")
	}
	return withKey(pair.Leaf, key)
}

func withKey(cert *x509.Certificate, key *ecdsa.PrivateKey) (*Authority, error) {
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return &Authority{cert, key, leaf}, err
}

func certificate(name, role string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{SerialNumber: serial,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		Subject: pkix.Name{CommonName: name, OrganizationalUnit: []string{role}, Organization: []string{"oal"}}}
}

// Issue makes a certificate; one of role service is also a server's, for loopback.
func (a *Authority) Issue(name, role string) (tls.Certificate, error) {
	template := certificate(name, role)
	if role == "service" {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	return a.leaf(template)
}

// IssueAP makes a certificate of an AP at a site (empty: it names none).
func (a *Authority) IssueAP(name, site string, notAfter time.Time) (tls.Certificate, error) {
	template := certificate(name, "ap")
	template.NotAfter = notAfter
	if site != "" {
		template.URIs = []*url.URL{{Scheme: "urn", Opaque: "oal:site:" + site}}
	}
	return a.leaf(template)
}

// leaf signs a certificate, which is a client's beside what the template says.
func (a *Authority) leaf(template *x509.Certificate) (tls.Certificate, error) {
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, a.leafKey.Public(), a.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.leafKey}, err
}

// ofAPs is the extension that permits an authority names below O=oal, OU=ap alone, as that of the platform has it
// (platform/security/).
func ofAPs() (pkix.Extension, error) {
	name, err := asn1.Marshal(pkix.Name{Organization: []string{"oal"}, OrganizationalUnit: []string{"ap"}}.
		ToRDNSequence())
	// all is shorter than 128 bytes
	wrap := func(tag byte, inner []byte) []byte { return append([]byte{tag, byte(len(inner))}, inner...) }
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 30},
		Value: wrap(0x30, wrap(0xa0, wrap(0x30, wrap(0xa4, name))))}, err
}

// Issuing makes the authority below this one that issues certificates of APs only.
func (a *Authority) Issuing() (*Authority, error) {
	constraint, err := ofAPs()
	if err != nil {
		return nil, err
	}
	template := certificate("test AP CA", "ca")
	template.ExtraExtensions, template.MaxPathLenZero = []pkix.Extension{constraint}, true
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return authority(template, a)
}

// WriteAuthority puts its own NAME.crt and NAME.key into a folder.
func (a *Authority) WriteAuthority(folder, name string) error {
	return writePEM(folder, name, a.Certificate.Raw, a.key)
}

// Pool trusts this authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Certificate)
	return pool
}

// Write puts ca.crt, ca.key and NAME.crt, NAME.key of a service into a folder.
func (a *Authority) Write(folder, name string) error {
	if err := a.WriteAuthority(folder, "ca"); err != nil {
		return err
	}
	return a.WriteLeaf(folder, name, "service")
}

// WriteLeaf puts NAME.crt and NAME.key of a role into a folder.
func (a *Authority) WriteLeaf(folder, name, role string) error {
	cert, err := a.Issue(name, role)
	if err != nil {
		return err
	}
	return writePEM(folder, name, cert.Certificate[0], a.leafKey)
}

func writePEM(folder, name string, cert []byte, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		suffix, kind string
		der          []byte
	}{{".crt", "CERTIFICATE", cert}, {".key", "PRIVATE KEY", der}} {
		if err := os.WriteFile(filepath.Join(folder, name+f.suffix),
			pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der}), 0o600); err != nil {
			return fmt.Errorf("writing a certificate: %w", err)
		}
	}
	return nil
}
