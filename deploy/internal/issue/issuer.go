// Package issue makes the certificates of APs. What a request for one asks for beyond its key counts for nothing: who
// the AP is, a ticket or its present certificate says.
package issue

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"time"

	"oal/deploy/internal/fresh"
	"oal/deploy/internal/tlsconf"
)

// SiteURN begins the name of an AP's site in its certificate.
const SiteURN = "urn:oal:site:"

// notBefore is how far a certificate reaches back: an AP's clock may be behind.
const notBefore = time.Hour

// MaxCSR bounds a certificate request in bytes; one for an elliptic key has less than 1 KiB.
const MaxCSR = 8 << 10

// ErrRequest: the certificate request cannot be granted.
var ErrRequest = errors.New("this certificate request is refused")

// Files are what is issued with; each is read again when it changed.
type Files struct {
	Cert, Key string // of the issuing CA
	Root      string // which signed it; APs trust it
	Masters   string // of the keys of batches
}

// Issuer issues.
type Issuer struct {
	authority *fresh.File[*authority]
	masters   *fresh.File[Masters]
	trusted   func() string // text of the file of trusted keys
	days      int
	now       func() time.Time
}

type authority struct {
	cert  *x509.Certificate
	key   crypto.Signer
	chain []byte // its own certificate, PEM
	root  string // PEM
}

// Grant is what an AP gets.
type Grant struct {
	APID        string `json:"ap_id"`
	Site        string `json:"site"`
	Certificate string `json:"certificate"` // PEM: its own, and the issuing CA's
	CA          string `json:"ca"`          // PEM: the root
	MACKeys     string `json:"mac_keys"`
	TrustedKeys string `json:"trusted_keys"`
	NotAfterUS  int64  `json:"not_after_us"`
}

// New reads the files. days is how long a certificate lasts; failed is called for changed files that cannot be read.
func New(f Files, days int, trusted func() string, now func() time.Time, failed func(error)) (*Issuer, error) {
	i := &Issuer{trusted: trusted, days: days, now: now}
	var err error
	if i.authority, err = fresh.New(func() (*authority, error) { return load(f) }, failed, f.Cert, f.Key,
		f.Root); err != nil {
		return nil, err
	}
	i.masters, err = fresh.New(func() (Masters, error) { return ReadMasters(f.Masters) }, failed, f.Masters)
	if err != nil {
		return nil, fmt.Errorf("enrol.mac_masters: %w", err)
	}
	return i, nil
}

func load(f Files) (*authority, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("enrol.ca_cert, enrol.ca_key: %w", err)
	}
	key, is := pair.PrivateKey.(crypto.Signer)
	if !is || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("enrol.ca_cert: %s is no certificate of an authority", f.Cert)
	}
	roots, text, err := tlsconf.Roots("enrol.root", f.Root)
	if err != nil {
		return nil, err
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{
		x509.ExtKeyUsageClientAuth}}); err != nil {
		return nil, fmt.Errorf("enrol.ca_cert: %s is not signed by enrol.root: %w", f.Cert, err)
	}
	return &authority{cert: pair.Leaf, key: key, root: string(text), chain: encode(pair.Leaf.Raw)}, nil
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Root is what APs trust, PEM.
func (i *Issuer) Root() string { return i.authority.Get().root }

// Request is a certificate request whose maker holds the key in it.
type Request struct {
	public crypto.PublicKey
	Key    string // SHA-256 of the public key, hexadecimal
}

// Parse takes a request as PEM: elliptic keys only, and a good signature.
func Parse(text string) (*Request, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, fmt.Errorf("%w: it is not a CERTIFICATE REQUEST in PEM", ErrRequest)
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	switch key := csr.PublicKey.(type) {
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() && key.Curve != elliptic.P384() {
			return nil, fmt.Errorf("%w: its curve is %s; P-256, P-384 and Ed25519 are taken", ErrRequest,
				key.Curve.Params().Name)
		}
	case ed25519.PublicKey:
	default:
		return nil, fmt.Errorf("%w: its key is %s; P-256, P-384 and Ed25519 are taken", ErrRequest,
			csr.PublicKeyAlgorithm)
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	sum := sha256.Sum256(csr.RawSubjectPublicKeyInfo)
	return &Request{csr.PublicKey, hex.EncodeToString(sum[:])}, nil
}

// Issue makes a certificate for an AP, with all that it needs beside it.
func (i *Issuer) Issue(apID, site string, r *Request) (*Grant, error) {
	a := i.authority.Get()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := i.now()
	template := &x509.Certificate{SerialNumber: serial, NotBefore: now.Add(-notBefore), NotAfter: now.AddDate(0, 0,
		i.days),
		Subject:  pkix.Name{Organization: []string{"oal"}, OrganizationalUnit: []string{"ap"}, CommonName: apID},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true}
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter // none of it would count beyond
	}
	if !now.Before(template.NotAfter) {
		ended := a.cert.NotAfter.UTC().Format(time.RFC3339)
		return nil, fmt.Errorf("the issuing CA's own certificate ended at %s", ended)
	}
	if site != "" {
		uri, err := url.Parse(SiteURN + site)
		if err != nil {
			return nil, err
		}
		template.URIs = []*url.URL{uri}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, r.public, a.key)
	if err != nil {
		return nil, err
	}
	return i.Grant(apID, site, string(append(encode(der), a.chain...)))
}

// Grant puts what an AP needs beside a certificate that was issued.
func (i *Issuer) Grant(apID, site, certificate string) (*Grant, error) {
	block, _ := pem.Decode([]byte(certificate))
	if block == nil {
		return nil, errors.New("the certificate that was issued cannot be read")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	return &Grant{APID: apID, Site: site, Certificate: certificate, CA: i.Root(), MACKeys: i.masters.Get().Line(apID,
		site),
		TrustedKeys: i.trusted(), NotAfterUS: leaf.NotAfter.UnixMicro()}, nil
}
