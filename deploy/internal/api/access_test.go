package api

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"oal/deploy/internal/config"
	"oal/deploy/internal/issue"
	"oal/deploy/internal/pki"
)

// ap is a client with a certificate of the issuing CA, with the chain up to it.
func (x *fixture) ap(id, site string, notAfter time.Time) *http.Client {
	x.t.Helper()
	cert, err := x.issuing.IssueAP(id, site, notAfter)
	if err != nil {
		x.t.Fatal(err)
	}
	cert.Certificate = append(cert.Certificate, x.issuing.Certificate.Raw)
	return x.with(cert)
}

func (x *fixture) with(cert tls.Certificate) *http.Client {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: x.authority.Pool(),
		Certificates: []tls.Certificate{cert}}}, Timeout: 20 * time.Second}
	x.t.Cleanup(client.CloseIdleConnections)
	return client
}

func TestSiteIsThatOfTheCertificate(t *testing.T) {
	x := start(t, config.Limits{RequestsPerS: 1000, Burst: 1000})
	x.champion(0)
	a := x.ap("a", "lab", time.Now().Add(time.Hour))
	expect(t, "its own site", x.do(a, "GET", "/v1/aps/a/bundle", "", "OAL-Site", "lab"), 200)
	expect(t, "its own neighbours", x.do(a, "GET", "/v1/aps/a/neighbours?site=lab&frequency_mhz=5180", ""), 204)
	for _, site := range []string{"hall", "", "la"} {
		expect(t, "site "+site, x.do(a, "GET", "/v1/aps/a/bundle", "", "OAL-Site", site), 403)
	}
	response := x.do(a, "GET", "/v1/aps/a/neighbours?site=hall&frequency_mhz=5180", "")
	expect(t, "neighbours of another site", response, 403)
	if text, _ := io.ReadAll(response.Body); !strings.Contains(string(text),
		`other_site: the certificate is for site "lab", the request says "hall"`) {
		t.Errorf("%s", text)
	}
	if n := testutil.ToFloat64(x.metrics.Denied.WithLabelValues("other_site")); n != 4 || len(x.denials) != 4 {
		t.Errorf("%g denials, told %v", n, x.denials)
	}
	if v, _ := x.fleet.Get("a"); v.Site != "lab" || time.UnixMicro(v.CertificateUS).Before(time.Now()) {
		t.Errorf("%+v", v)
	}
	b := x.ap("b", "", time.Now().Add(time.Hour))
	expect(t, "a certificate without a site", x.do(b, "GET", "/v1/aps/b/bundle", "", "OAL-Site", "anywhere"), 200)
	bad := x.ap("c", "a/b", time.Now().Add(time.Hour))
	expect(t, "a certificate with a site that is none", x.do(bad, "GET", "/v1/aps/c/bundle", "", "OAL-Site", "a/b"),
		403)
}

// A poll that waits ends at once when its AP is revoked, and nothing is answered from then on.
func TestRevoked(t *testing.T) {
	x := start(t, config.Limits{RequestsPerS: 1000, Burst: 1000})
	hash := x.champion(0)
	a, b := x.client("a", "ap"), x.client("b", "ap")
	answer := make(chan *http.Response, 1)
	go func() {
		response, err := x.try(a, "GET", "/v1/aps/a/bundle", "", "If-None-Match", `"`+hash+`"`, "Prefer", "wait=60")
		if err != nil {
			t.Error(err)
		}
		answer <- response
	}()
	until(t, func() bool { v, _ := x.fleet.Get("a"); return v.Connected })
	x.revoke("a")
	response := <-answer
	expect(t, "the poll that waited", response, 403)
	if text, _ := io.ReadAll(response.Body); !strings.Contains(string(text), "revoked: a was revoked (stolen)") {
		t.Errorf("%s", text)
	}
	for _, path := range []string{"GET /v1/aps/a/bundle", "GET /v1/aps/a/neighbours?site=lab&frequency_mhz=5180",
		"POST /v1/aps/a/status", "POST /v1/aps/a/certificate"} {
		method, path, _ := strings.Cut(path, " ")
		expect(t, path, x.do(a, method, path, ""), 403)
	}
	expect(t, "another AP", x.do(b, "GET", "/v1/aps/b/bundle", ""), 200)
	if n := testutil.ToFloat64(x.metrics.Denied.WithLabelValues("revoked")); n != 5 {
		t.Errorf("%g denials", n)
	}
	if v, _ := x.fleet.Get("a"); !v.Revoked {
		t.Errorf("%+v", v)
	}
	x.revoke("none")
	expect(t, "restored", x.do(a, "GET", "/v1/aps/a/bundle", ""), 200)
}

// A connection that is older than the end of its certificate is refused with its next request.
func TestCertificateEndsWhileConnected(t *testing.T) {
	x := start(t, config.Limits{})
	x.champion(0)
	a := x.ap("a", "", time.Now().Add(time.Hour))
	expect(t, "at first", x.do(a, "GET", "/v1/aps/a/bundle", ""), 200)
	x.lock.Lock()
	x.later = 2 * time.Hour
	x.lock.Unlock()
	expect(t, "afterwards", x.do(a, "GET", "/v1/aps/a/bundle", ""), 403)
	if n := testutil.ToFloat64(x.metrics.Denied.WithLabelValues("expired_certificate")); n != 1 {
		t.Errorf("%g denials", n)
	}
}

func TestRenewal(t *testing.T) {
	x := start(t, config.Limits{RequestsPerS: 1000, Burst: 1000})
	x.champion(0)
	device, err := pki.NewDevice()
	if err != nil {
		t.Fatal(err)
	}
	body, _ := json.Marshal(map[string]string{"csr": device.CSR})
	a := x.ap("a", "lab", time.Now().Add(time.Hour))
	response := x.do(a, "POST", "/v1/aps/a/certificate", string(body))
	expect(t, "renewal", response, 200)
	var grant issue.Grant
	if err := json.NewDecoder(response.Body).Decode(&grant); err != nil {
		t.Fatal(err)
	}
	if grant.APID != "a" || grant.Site != "lab" || !strings.HasPrefix(grant.MACKeys, "a lab 1 ") ||
		grant.TrustedKeys != "trusted keys" {
		t.Errorf("%+v", grant)
	}
	renewed, err := device.Certificate(grant.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	next := x.with(renewed)
	expect(t, "with the new certificate", x.do(next, "GET", "/v1/aps/a/bundle", "", "OAL-Site", "lab"), 200)
	if v, _ := x.fleet.Get("a"); v.CertificateUS != grant.NotAfterUS {
		t.Errorf("%+v", v)
	}
	expect(t, "of another AP", x.do(next, "POST", "/v1/aps/b/certificate", string(body)), 403)
	expect(t, "nonsense", x.do(next, "POST", "/v1/aps/a/certificate", `{"csr": "x"}`), 400)
	expect(t, "too much", x.do(next, "POST", "/v1/aps/a/certificate", `{"csr": "`+strings.Repeat("x", 40000)+`"}`), 400)
	response = x.do(next, "POST", "/v1/aps/a/certificate", string(body))
	expect(t, "the fourth within a minute", response, 429)
	if after := response.Header.Get("Retry-After"); after == "" || after == "0" {
		t.Errorf("Retry-After: %q", after)
	}
	for result, want := range map[string]float64{"issued": 1, "bad_request": 2, "rate_limit": 1} {
		if n := testutil.ToFloat64(x.metrics.Renewals.WithLabelValues(result)); n != want {
			t.Errorf("%s: %g, want %g", result, n, want)
		}
	}
}
