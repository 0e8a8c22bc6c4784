package tlsconf

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oal/deploy/internal/pki"
)

func TestCertificatesAreReadAgain(t *testing.T) {
	folder := t.TempDir()
	authority, err := pki.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Write(folder, "x"); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(folder, name) }
	failures := 0
	config, err := Mutual("tls", file("x.crt"), file("x.key"), file("ca.crt"), func(error) { failures++ })
	if err != nil {
		t.Fatal(err)
	}
	now := func() *tls.Config {
		t.Helper()
		c, err := config.GetConfigForClient(nil)
		if err != nil || c.ClientAuth != tls.RequireAnyClientCert || c.VerifyConnection == nil {
			t.Fatalf("%+v %v", c, err)
		}
		return c
	}
	first := now()
	if now() != first {
		t.Error("unchanged files make no new configuration")
	}
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(file("x.crt"), later, later); err != nil {
		t.Fatal(err)
	}
	second := now()
	if second == first {
		t.Error("changed files are read")
	}
	if err := os.WriteFile(file("x.crt"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if now() != second || failures != 1 {
		t.Errorf("files that cannot be read change nothing: %d failures", failures)
	}
	if _, err := Mutual("tls", file("x.crt"), file("x.key"), file("ca.crt"), nil); err == nil {
		t.Error("a half file was taken at the start")
	}
	if _, err := Server("admin_tls", file("y.crt"), file("x.key"), nil); err == nil {
		t.Error("a file that is not there was taken at the start")
	}
}
