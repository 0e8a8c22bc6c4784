package issue

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/pki"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type fixture struct {
	folder        string
	root, issuing *pki.Authority
	now           time.Time
	trusted       string
	failures      int
}

func (x *fixture) file(name string) string { return filepath.Join(x.folder, name) }

func (x *fixture) files() Files {
	return Files{x.file("ap-ca.crt"), x.file("ap-ca.key"), x.file("ca.crt"), x.file("masters")}
}

func (x *fixture) masters(t *testing.T, lines ...string) {
	must(t, os.WriteFile(x.file("masters"), []byte(strings.Join(lines, "\n")), 0o600))
}

func start(t *testing.T) (*fixture, *Issuer) {
	t.Helper()
	x := &fixture{folder: t.TempDir(), now: time.Now(), trusted: "keys"}
	var err error
	x.root, err = pki.New()
	must(t, err)
	x.issuing, err = x.root.Issuing()
	must(t, err)
	must(t, x.root.WriteAuthority(x.folder, "ca"))
	must(t, x.issuing.WriteAuthority(x.folder, "ap-ca"))
	x.masters(t, "1 "+base64.StdEncoding.EncodeToString(make([]byte, 32)))
	i, err := New(x.files(), 30, func() string { return x.trusted }, func() time.Time { return x.now },
		func(error) { x.failures++ })
	must(t, err)
	return x, i
}

func request(t *testing.T, template *x509.CertificateRequest, key crypto.Signer) string {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

func leafOf(t *testing.T, g *Grant) *x509.Certificate {
	t.Helper()
	block, rest := pem.Decode([]byte(g.Certificate))
	if second, end := pem.Decode(rest); second == nil || len(end) != 0 {
		t.Fatalf("a chain of two certificates:\n%s", g.Certificate)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	return leaf
}

// Nothing but the key of a request has any weight.
func TestIssue(t *testing.T) {
	x, i := start(t)
	p256, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	greedy := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "admin", OrganizationalUnit: []string{"service"}},
		DNSNames: []string{"push"},
		ExtraExtensions: []pkix.Extension{{Id: []int{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 3, 1, 1,
			0xff}}}}
	serials := map[string]bool{}
	for _, key := range []crypto.Signer{p256, p384, ed} {
		r, err := Parse(request(t, greedy, key))
		must(t, err)
		g, err := i.Issue("ap-1", "lab", r)
		must(t, err)
		leaf := leafOf(t, g)
		if got := leaf.Subject.String(); got != "CN=ap-1,OU=ap,O=oal" || len(leaf.DNSNames) != 0 || leaf.IsCA ||
			len(leaf.URIs) != 1 || leaf.URIs[0].String() != "urn:oal:site:lab" {
			t.Errorf("%s %v %v %v", got, leaf.DNSNames, leaf.IsCA, leaf.URIs)
		}
		if len(leaf.ExtKeyUsage) != 1 || leaf.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth ||
			leaf.KeyUsage != x509.KeyUsageDigitalSignature {
			t.Errorf("%v %v", leaf.ExtKeyUsage, leaf.KeyUsage)
		}
		if !leaf.NotBefore.Equal(x.now.Add(-time.Hour).UTC().Truncate(time.Second)) ||
			!leaf.NotAfter.Equal(x.now.AddDate(0, 0, 30).UTC().Truncate(time.Second)) ||
			g.NotAfterUS != leaf.NotAfter.UnixMicro() {
			t.Errorf("from %s to %s", leaf.NotBefore, leaf.NotAfter)
		}
		leaf.URIs = nil // as tlsconf does, which says why
		intermediates := x509.NewCertPool()
		intermediates.AppendCertsFromPEM([]byte(g.Certificate))
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: x.root.Pool(), Intermediates: intermediates,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Error(err)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: x.root.Pool(), Intermediates: intermediates,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
			t.Error("an AP's certificate is good for a server")
		}
		if serials[leaf.SerialNumber.String()] || leaf.SerialNumber.BitLen() < 64 {
			t.Errorf("serial number %s", leaf.SerialNumber)
		}
		serials[leaf.SerialNumber.String()] = true
	}
	r, err := Parse(request(t, &x509.CertificateRequest{}, p256))
	must(t, err)
	g, err := i.Issue("ap-1", "", r)
	must(t, err)
	if leaf := leafOf(t, g); len(leaf.URIs) != 0 || !strings.HasPrefix(g.MACKeys, "ap-1 - 1 ") {
		t.Errorf("without a site: %v %s", leaf.URIs, g.MACKeys)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	p224, _ := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	p521, _ := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	weak, _ := rsa.GenerateKey(rand.Reader, 2048)
	p256, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	good := request(t, &x509.CertificateRequest{}, p256)
	block, _ := pem.Decode([]byte(good))
	block.Bytes[len(block.Bytes)-1] ^= 1
	for name, text := range map[string]string{"nothing": "", "text": "x",
		"P-224": request(t, &x509.CertificateRequest{}, p224), "P-521": request(t, &x509.CertificateRequest{}, p521),
		"RSA": request(t, &x509.CertificateRequest{}, weak), "a bad signature": string(pem.EncodeToMemory(block)),
		"a certificate": strings.ReplaceAll(good, "CERTIFICATE REQUEST", "CERTIFICATE"), "half": good[:len(good)/2]} {
		if r, err := Parse(text); !errors.Is(err, ErrRequest) {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
}

// Keys are rotated without a restart: of masters, of bundles, of the issuing CA.
func TestRotation(t *testing.T) {
	x, i := start(t)
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	r, err := Parse(request(t, &x509.CertificateRequest{}, key))
	must(t, err)
	x.masters(t, "1 "+base64.StdEncoding.EncodeToString(make([]byte, 32)), "2 "+base64.StdEncoding.EncodeToString(
		append(make([]byte, 31), 1)))
	x.trusted = "rotated"
	next, err := x.root.Issuing()
	must(t, err)
	must(t, next.WriteAuthority(x.folder, "ap-ca"))
	g, err := i.Issue("ap-1", "lab", r)
	must(t, err)
	if !strings.HasPrefix(g.MACKeys, "ap-1 lab 2 ") || g.TrustedKeys != "rotated" ||
		leafOf(t, g).CheckSignatureFrom(next.Certificate) != nil {
		t.Errorf("%+v", g)
	}
	must(t, os.WriteFile(x.file("ap-ca.crt"), []byte("half"), 0o600))
	if g, err = i.Issue("ap-1", "lab", r); err != nil || leafOf(t, g).CheckSignatureFrom(next.Certificate) != nil ||
		x.failures != 1 {
		t.Errorf("a file that cannot be read changes nothing: %v, %d failures", err, x.failures)
	}
	x.now = next.Certificate.NotAfter.Add(-24 * time.Hour)
	if g, err = i.Issue("ap-1", "lab", r); err != nil || !leafOf(t, g).NotAfter.Equal(next.Certificate.NotAfter) {
		t.Errorf("a certificate that ends after its CA: %v", err)
	}
	x.now = next.Certificate.NotAfter.Add(time.Second)
	if _, err = i.Issue("ap-1", "lab", r); err == nil {
		t.Error("an ended CA issued")
	}
}

func TestFilesThatCannotIssue(t *testing.T) {
	x, _ := start(t)
	stranger, err := pki.New()
	must(t, err)
	for name, spoil := range map[string]func(f *Files){
		"a key of another": func(f *Files) {
			must(t, stranger.WriteAuthority(x.folder, "other"))
			f.Key = x.file("other.key")
		},
		"a root that did not sign it": func(f *Files) { f.Root = x.file("other.crt") },
		"a certificate of no authority": func(f *Files) {
			must(t, x.root.WriteLeaf(x.folder, "leaf", "ap"))
			f.Cert, f.Key = x.file("leaf.crt"), x.file("leaf.key")
		},
		"no masters": func(f *Files) { f.Masters = x.file("nowhere") },
	} {
		must(t, stranger.WriteAuthority(x.folder, "other"))
		f := x.files()
		spoil(&f)
		if _, err := New(f, 30, func() string { return "" }, time.Now, nil); err == nil ||
			!strings.Contains(err.Error(), "enrol.") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
