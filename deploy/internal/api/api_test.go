package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.yaml.in/yaml/v3"

	"oal/deploy/internal/config"
	"oal/deploy/internal/fleet"
	"oal/deploy/internal/issue"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/neighbour"
	"oal/deploy/internal/pki"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/sim"
	"oal/deploy/internal/store"
	"oal/deploy/internal/tlsconf"
)

type fixture struct {
	t          *testing.T
	authority  *pki.Authority
	signer     *sim.Signer
	fleet      *fleet.Fleet
	metrics    *metric.Set
	neighbours *neighbour.Table
	server     *Server
	address    string
	serial     int64

	issuing *pki.Authority

	lock    sync.Mutex // guards what follows
	denials []string
	revoked string // an AP
	later   time.Duration
}

func (x *fixture) now() time.Time {
	x.lock.Lock()
	defer x.lock.Unlock()
	return time.Now().Add(x.later)
}

func (x *fixture) isRevoked(id string) *store.Access {
	x.lock.Lock()
	defer x.lock.Unlock()
	if id != x.revoked {
		return nil
	}
	return &store.Access{APID: id, Revoked: true, Reason: "stolen"}
}

func (x *fixture) revoke(id string) {
	x.lock.Lock()
	x.revoked = id
	x.lock.Unlock()
	x.fleet.SetRevoked([]string{id})
}

func start(t *testing.T, limits config.Limits) *fixture {
	t.Helper()
	x := &fixture{t: t, metrics: metric.New(), serial: time.Now().UnixMicro()}
	folder := t.TempDir()
	var err error
	check := func(e error) {
		t.Helper()
		if e != nil {
			t.Fatal(e)
		}
	}
	x.authority, err = pki.New()
	check(err)
	check(x.authority.Write(folder, "deploy"))
	x.signer, err = sim.NewSigner(filepath.Join(folder, "keys"))
	check(err)
	x.issuing, err = x.authority.Issuing()
	check(err)
	check(x.issuing.WriteAuthority(folder, "ap-ca"))
	check(os.WriteFile(filepath.Join(folder, "masters"),
		[]byte("1 "+base64.StdEncoding.EncodeToString(make([]byte, 32))), 0o600))
	unreadable := func(err error) { t.Error(err) }
	config, err := tlsconf.Mutual("tls", filepath.Join(folder, "deploy.crt"), filepath.Join(folder, "deploy.key"),
		filepath.Join(folder, "ca.crt"), unreadable)
	check(err)
	issuer, err := issue.New(issue.Files{Cert: filepath.Join(folder, "ap-ca.crt"), Key: filepath.Join(folder,
		"ap-ca.key"), Root: filepath.Join(folder, "ca.crt"),
		Masters: filepath.Join(folder, "masters")}, 30, func() string { return "trusted keys" },
		func() time.Time { return x.now() }, unreadable)
	check(err)
	x.fleet = fleet.New("test", time.Now, func(slot release.Slot, since time.Duration) {
		x.metrics.Applied.WithLabelValues(string(slot)).Observe(since.Seconds())
	})
	note := func(certificate, reason, path string) {
		x.lock.Lock()
		defer x.lock.Unlock()
		x.denials = append(x.denials, certificate+" "+reason+" "+path)
	}
	x.neighbours = neighbour.New(x.metrics, time.Now, slog.New(slog.DiscardHandler))
	x.server = New(Parts{Fleet: x.fleet, Neighbours: x.neighbours, Metrics: x.metrics, TLS: config, Limits: limits,
		Ready: func() bool { return true }, Denied: note,
		Revoked: x.isRevoked, Issuer: issuer, Now: func() time.Time { return x.now() },
		Logger: slog.New(slog.DiscardHandler)})
	address, err := x.server.Start("127.0.0.1:0")
	check(err)
	x.address = address.String()
	t.Cleanup(x.stop)
	return x
}

func (x *fixture) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	x.server.Stop(ctx)
}

func (x *fixture) client(name, role string) *http.Client {
	config := &tls.Config{RootCAs: x.authority.Pool()}
	if name != "" {
		cert, err := x.authority.Issue(name, role)
		if err != nil {
			x.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: 20 * time.Second}
	x.t.Cleanup(client.CloseIdleConnections)
	return client
}

func (x *fixture) do(client *http.Client, method, path, body string, headers ...string) *http.Response {
	x.t.Helper()
	response, err := x.try(client, method, path, body, headers...)
	if err != nil {
		x.t.Fatal(err)
	}
	return response
}

func (x *fixture) try(client *http.Client, method, path, body string, headers ...string) (*http.Response, error) {
	request, err := http.NewRequest(method, "https://"+x.address+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(content))
	return response, err
}

// champion releases to everyone and returns the hash.
func (x *fixture) champion(activateUS int64) string {
	x.serial++
	key, value, hash := x.signer.Release(release.Champion, "fleet", 1, x.serial, nil)
	rel, err := release.Parse(key, value, x.signer.Keys())
	if err != nil {
		x.t.Fatal(err)
	}
	x.fleet.SetOffers([]*rollout.Offer{{Slot: rel.Slot, Scope: rel.Scope, Release: rel, Rollout: rel.ID(), All: true,
		ActivateUS: activateUS}}, []*release.Release{rel})
	return hash
}

func expect(t *testing.T, what string, response *http.Response, code int) {
	t.Helper()
	if response.StatusCode != code {
		body, _ := io.ReadAll(response.Body)
		t.Errorf("%s: %s %s, want %d", what, response.Status, body, code)
	}
}

func TestPoll(t *testing.T) {
	x := start(t, config.Limits{})
	ap := x.client("a", "ap")
	expect(t, "nothing is released", x.do(ap, "GET", "/v1/aps/a/bundle", ""), 204)
	activate := time.Now().Add(time.Hour).UnixMicro()
	hash := x.champion(activate)
	response := x.do(ap, "GET", "/v1/aps/a/bundle", "", "OAL-Site", "lab", "User-Agent", "ap-exporter/0.3")
	expect(t, "a release", response, 200)
	h := response.Header
	if h.Get("ETag") != `"`+hash+`"` || h.Get("Content-Type") != "application/vnd.oal.bundle" ||
		h.Get("OAL-Activate-At") != fmt.Sprint(activate) {
		t.Errorf("headers %v", h)
	}
	x.champion(0)
	hash = x.champion(0)
	expect(t, "the one in force", x.do(ap, "GET", "/v1/aps/a/bundle", "", "If-None-Match", `"`+hash+`"`, "Prefer",
		"wait=0"), 304)
	if v, _ := x.fleet.Get("a"); v.Applied != hash || v.Site != "" {
		t.Errorf("%+v", v)
	}
}

func TestPollIsAnsweredWhenAReleaseComes(t *testing.T) {
	x := start(t, config.Limits{})
	first := x.champion(0)
	ap := x.client("a", "ap")
	answer := make(chan *http.Response, 1)
	go func() {
		response, err := x.try(ap, "GET", "/v1/aps/a/bundle", "", "If-None-Match", `"`+first+`"`, "Prefer", "wait=60")
		if err == nil {
			answer <- response
		}
	}()
	until(t, func() bool { v, _ := x.fleet.Get("a"); return v.Connected })
	second := x.champion(0)
	response := <-answer
	expect(t, "the new release", response, 200)
	if response.Header.Get("ETag") != `"`+second+`"` {
		t.Error(response.Header)
	}
	expect(t, "the report", x.do(ap, "POST", "/v1/aps/a/status", statusBody(second, "applied", "none")), 204)
	if n := testutil.CollectAndCount(x.metrics.Applied); n != 1 {
		t.Errorf("%d latencies", n)
	}
	if v, _ := x.fleet.Get("a"); v.Applied != second || v.BootID != "18446744073709551615" || v.Agent != "0.3" {
		t.Errorf("%+v", v)
	}
}

func TestKillSwitchIsToldAtOnce(t *testing.T) {
	x := start(t, config.Limits{})
	hash := x.champion(0)
	tag := `"` + hash + `"`
	control := func(what, want string, response *http.Response, code int) {
		t.Helper()
		expect(t, what, response, code)
		if got := response.Header.Get("OAL-Control"); got != want {
			t.Errorf("%s: OAL-Control is %q, want %q", what, got, want)
		}
	}
	poll := func(client *http.Client, id string, headers ...string) chan *http.Response {
		answer, began := make(chan *http.Response, 1), time.Now().UnixMicro()
		go func() {
			response, err := x.try(client, "GET", "/v1/aps/"+id+"/bundle", "", append(headers, "If-None-Match", tag,
				"OAL-Site", "lab", "Prefer", "wait=60")...)
			if err != nil {
				t.Error(err)
			}
			answer <- response
		}()
		until(t, func() bool { v, _ := x.fleet.Get(id); return v.LastSeenUS >= began })
		return answer
	}
	a, b := x.client("a", "ap"), x.client("b", "ap")
	control("a bundle", "on", x.do(a, "GET", "/v1/aps/a/bundle", "", "OAL-Control", "on"), 200)
	waiting, other := poll(a, "a", "OAL-Control", "on"), poll(b, "b")
	x.fleet.SetKills([]fleet.Kill{{Target: fleet.Target{Scope: "ap/a"}}})
	control("killed", "off", <-waiting, 304)
	x.fleet.SetKills([]fleet.Kill{{Target: fleet.Target{Scope: "site/lab"}}})
	control("an AP that does not say what it has", "off", <-other, 304)
	control("one that has not heard", "off", x.do(a, "GET", "/v1/aps/a/bundle", "", "OAL-Site", "lab", "If-None-Match",
		tag, "OAL-Control", "on", "Prefer", "wait=60"), 304)
	control("a bundle meanwhile", "off", x.do(a, "GET", "/v1/aps/a/bundle", "", "OAL-Site", "lab"), 200)
	control("one of another site", "on", x.do(a, "GET", "/v1/aps/a/bundle", "", "OAL-Site", "hall", "If-None-Match",
		tag, "OAL-Control", "on"), 304)
	x.fleet.SetOffers(nil, nil)
	control("nothing desired", "off", x.do(a, "GET", "/v1/aps/a/bundle", "", "OAL-Site", "lab", "OAL-Control", "on",
		"Prefer", "wait=60"), 204)
	expect(t, "nonsense", x.do(a, "GET", "/v1/aps/a/bundle", "", "OAL-Control", "maybe"), 400)
	waiting = poll(a, "a", "OAL-Control", "off")
	x.fleet.SetKills(nil)
	control("on again", "on", <-waiting, 204)
	waiting = poll(a, "a", "OAL-Control", "on", "OAL-Killed", "")
	x.fleet.SetKills([]fleet.Kill{{Target: fleet.Target{Scope: "site/lab", Policy: "mark"}}})
	response := <-waiting
	control("a policy", "on", response, 204)
	if got := response.Header.Get("OAL-Killed"); got != "mark" {
		t.Errorf("OAL-Killed is %q", got)
	}
	control("a policy, of an exporter that does not know it", "off", x.do(a, "GET", "/v1/aps/a/bundle", "", "OAL-Site",
		"lab", "OAL-Control", "on", "Prefer", "wait=60"), 204)
	expect(t, "nonsense", x.do(a, "GET", "/v1/aps/a/bundle", "", "OAL-Control", "on", "OAL-Killed", "Mark!"), 400)
	expect(t, "too many", x.do(a, "GET", "/v1/aps/a/bundle", "", "OAL-Control", "on", "OAL-Killed",
		strings.Repeat("a ", 9)), 400)
	x.fleet.SetKills([]fleet.Kill{{Target: fleet.Target{Scope: "fleet"}}})
	waiting = poll(x.client("c", "ap"), "c", "OAL-Control", "off")
	x.stop()
	control("sent away", "off", <-waiting, 503)
}

func TestNeighbours(t *testing.T) {
	x := start(t, config.Limits{})
	record := fmt.Sprintf(`{"site":"lab","frequency_mhz":5180,"t_us":%d,"aps":[{"ap_id":"b","stations":3,`+
		`"tx_kbps":9000,"busy_permille":700},{"ap_id":"a"}]}`, time.Now().UnixMicro())
	x.neighbours.Take("lab/5180", []byte(record))
	a, b := x.client("a", "ap"), x.client("b", "ap")
	const path = "/v1/aps/a/neighbours?site=lab&frequency_mhz=5180"
	response := x.do(a, "GET", path, "")
	expect(t, "neighbours", response, 200)
	body, _ := io.ReadAll(response.Body)
	if text := string(body); !strings.Contains(text,
		`{"ap_id":"b","stations":3,"tx_kbps":9000,"tx_airtime_permille":0,"busy_permille":700,`) ||
		strings.Contains(text, `"ap_id":"a"`) || !strings.Contains(text, `"age_ms":`) {
		t.Error(text)
	}
	expect(t, "the same again", x.do(a, "GET", path, "", "If-None-Match", response.Header.Get("ETag")), 304)
	expect(t, "a channel with nobody", x.do(a, "GET", "/v1/aps/a/neighbours?site=lab&frequency_mhz=2412", ""), 204)
	expect(t, "nonsense", x.do(a, "GET", "/v1/aps/a/neighbours?site=lab&frequency_mhz=x", ""), 400)
	for _, query := range []string{"site=lab&frequency_mhz=-1", "site=lab&frequency_mhz=65536", "site=lab",
		"frequency_mhz=5180", "site=a%2Fb&frequency_mhz=5180"} {
		expect(t, query, x.do(b, "GET", "/v1/aps/b/neighbours?"+query, ""), map[bool]int{true: 429,
			false: 400}[strings.HasPrefix(query, "site=a")])
	}
	response = x.do(a, "GET", path, "")
	expect(t, "the fifth at once", response, 429)
	if wait := response.Header.Get("Retry-After"); wait != "1" {
		t.Errorf("Retry-After: %s", wait)
	}
	expect(t, "another AP", x.do(b, "GET", path, ""), 403)
	if n := testutil.ToFloat64(x.metrics.NeighbourAnswers.WithLabelValues("429")); n != 2 {
		t.Errorf("%g were told to come later", n)
	}
	if x.fleet.Known() != 0 {
		t.Error("asking for neighbours is no poll")
	}
}

func statusBody(hash, state, reason string) string {
	return fmt.Sprintf(`{"bundle": %q, "serial": 5, "state": %q, "reason": %q, "ts_us": 1, "boot_id": `+
		`"18446744073709551615", "agent": "0.3"}`, hash, state, reason)
}

func until(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within 20 s")
		}
	}
}

func TestOnlyTheAPItself(t *testing.T) {
	x := start(t, config.Limits{})
	x.champion(0)
	for _, c := range []struct{ name, role, reason string }{{"b", "ap", "other_ap"}, {"a", "service", "not_an_ap"},
		{"a b", "ap", "bad_name"}} {
		client := x.client(c.name, c.role)
		for _, path := range []string{"/v1/aps/a/bundle", "/v1/aps/a/status"} {
			method := map[bool]string{true: "POST", false: "GET"}[strings.HasSuffix(path, "status")]
			response := x.do(client, method, path, "{}")
			expect(t, c.reason, response, 403)
			if body, _ := io.ReadAll(response.Body); !strings.Contains(string(body), c.reason) {
				t.Errorf("%s: %s", c.reason, body)
			}
		}
		if n := testutil.ToFloat64(x.metrics.Denied.WithLabelValues(c.reason)); n != 2 {
			t.Errorf("%s was counted %g times", c.reason, n)
		}
	}
	if len(x.denials) != 6 || x.denials[0] != "b other_ap /v1/aps/a/bundle" {
		t.Errorf("%v", x.denials)
	}
	if x.fleet.Known() != 0 {
		t.Error("a refused request has made an AP")
	}
	if _, err := x.try(x.client("", ""), "GET", "/v1/aps/a/bundle", ""); err == nil {
		t.Error("a client without certificate got an answer")
	}
	stranger, err := pki.New()
	if err != nil {
		t.Fatal(err)
	}
	cert, _ := stranger.Issue("a", "ap")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: x.authority.Pool(),
		Certificates: []tls.Certificate{cert}}}}
	if _, err := x.try(client, "GET", "/v1/aps/a/bundle", ""); err == nil {
		t.Error("a certificate of another authority got an answer")
	}
	expired, err := x.authority.IssueAP("a", "", time.Now().Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: x.authority.Pool(),
		Certificates: []tls.Certificate{expired}}}}
	if _, err := x.try(client, "GET", "/v1/aps/a/bundle", ""); err == nil {
		t.Error("a certificate that has ended got an answer")
	}
	for _, reason := range []string{"no_certificate", "foreign_certificate", "expired_certificate"} {
		until(t, func() bool { return testutil.ToFloat64(x.metrics.Denied.WithLabelValues(reason)) == 1 })
	}
}

func TestBadRequests(t *testing.T) {
	x := start(t, config.Limits{RequestsPerS: 1000, Burst: 1000})
	ap := x.client("a", "ap")
	hash := strings.Repeat("0a", 32)
	for _, c := range []struct {
		method, path, body string
		headers            []string
		code               int
	}{
		{"GET", "/v1/aps/a/bundle", "", []string{"If-None-Match", "x"}, 400},
		{"GET", "/v1/aps/a/bundle", "", []string{"If-None-Match", `"` + strings.Repeat("A", 64) + `"`}, 400},
		{"GET", "/v1/aps/a/bundle", "", []string{"Prefer", "wait=long"}, 400},
		{"GET", "/v1/aps/a/bundle", "", []string{"OAL-Site", "a/b"}, 400},
		{"GET", "/v1/aps/a/bundle", "", []string{"X", strings.Repeat("x", 20000)}, 431},
		{"POST", "/v1/aps/a/bundle", "", nil, 405},
		{"GET", "/v1/aps/a/other", "", nil, 404},
		{"POST", "/v1/aps/a/status", "", nil, 400},
		{"POST", "/v1/aps/a/status", "[]", nil, 400},
		{"POST", "/v1/aps/a/status", statusBody("00", "applied", ""), nil, 400},
		{"POST", "/v1/aps/a/status", statusBody(hash, "fine", ""), nil, 400},
		{"POST", "/v1/aps/a/status", statusBody(hash, "rejected", "because"), nil, 400},
		{"POST", "/v1/aps/a/status", `{"agent": "` + strings.Repeat("x", 5000) + `"}`, nil, 413},
		{"POST", "/v1/aps/a/status", statusBody(hash, "rejected", "replayed"), nil, 204},
	} {
		expect(t, fmt.Sprintf("%s %s %.80s %.80v", c.method, c.path, c.body, c.headers), x.do(ap, c.method, c.path,
			c.body, c.headers...), c.code)
	}
}

func TestRateLimit(t *testing.T) {
	x := start(t, config.Limits{RequestsPerS: 0.5, Burst: 2})
	a, b := x.client("a", "ap"), x.client("b", "ap")
	for _, code := range []int{204, 204, 429} {
		response := x.do(a, "GET", "/v1/aps/a/bundle", "")
		expect(t, "a", response, code)
		if code == 429 && response.Header.Get("Retry-After") != "2" {
			t.Errorf("Retry-After: %q", response.Header.Get("Retry-After"))
		}
	}
	expect(t, "another AP", x.do(b, "GET", "/v1/aps/b/bundle", ""), 204)
}

// An AP that comes and goes leaves nothing behind, and gets what it should have each time.
func TestFlapping(t *testing.T) {
	x := start(t, config.Limits{RequestsPerS: 1000, Burst: 1000})
	hash := x.champion(0)
	for i := range 20 {
		client := x.client("a", "ap")
		ctx, cancel := context.WithCancel(context.Background())
		request, _ := http.NewRequestWithContext(ctx, "GET", "https://"+x.address+"/v1/aps/a/bundle", nil)
		request.Header.Set("Prefer", "wait=60")
		request.Header.Set("If-None-Match", `"`+hash+`"`)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if response, err := client.Do(request); err == nil {
				response.Body.Close()
			}
		}()
		until(t, func() bool { v, _ := x.fleet.Get("a"); return v.Connected && v.Applied == hash })
		if i%2 == 0 {
			cancel() // it goes away; otherwise its next connection comes before this one is known to be dead
		} else {
			t.Cleanup(cancel)
			continue
		}
		<-done
		client.CloseIdleConnections()
	}
	last := x.champion(0)
	response := x.do(x.client("a", "ap"), "GET", "/v1/aps/a/bundle", "", "If-None-Match", `"`+hash+`"`)
	expect(t, "the AP at last", response, 200)
	if response.Header.Get("ETag") != `"`+last+`"` {
		t.Error(response.Header)
	}
}

// An AP that was away while many releases came and went needs one request.
func TestAfterAWeekOffline(t *testing.T) {
	x := start(t, config.Limits{})
	old := x.champion(0)
	var last string
	for range 50 {
		last = x.champion(0)
	}
	response := x.do(x.client("a", "ap"), "GET", "/v1/aps/a/bundle", "", "If-None-Match", `"`+old+`"`, "Prefer",
		"wait=60")
	expect(t, "the first request", response, 200)
	if response.Header.Get("ETag") != `"`+last+`"` {
		t.Error(response.Header)
	}
}

func TestDrain(t *testing.T) {
	x := start(t, config.Limits{})
	hash := x.champion(0)
	answer := make(chan *http.Response, 1)
	ap := x.client("a", "ap")
	go func() {
		if response, err := x.try(ap, "GET", "/v1/aps/a/bundle", "", "If-None-Match", `"`+hash+`"`, "Prefer",
			"wait=60"); err == nil {
			answer <- response
		}
	}()
	until(t, func() bool { v, _ := x.fleet.Get("a"); return v.Connected })
	x.stop()
	response := <-answer
	expect(t, "a waiting AP", response, 503)
	if after := response.Header.Get("Retry-After"); after == "" || after == "0" {
		t.Errorf("Retry-After: %q", after)
	}
}

func TestTooManyConnections(t *testing.T) {
	x := start(t, config.Limits{MaxConns: 2})
	for range 3 {
		conn, err := net.Dial("tcp", x.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	until(t, func() bool { return testutil.ToFloat64(x.metrics.Denied.WithLabelValues("too_many_connections")) == 1 })
}

func TestNamesAreThoseOfTheSchema(t *testing.T) {
	text, err := os.ReadFile("../../../schema/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var settings struct {
		States  []string `yaml:"bundle_states"`
		Reasons []string `yaml:"bundle_reasons"`
	}
	if err := yaml.Unmarshal(text, &settings); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(append([]string{"none"}, States...)), fmt.Sprint(settings.States); got != want {
		t.Errorf("states %s, the schema's are %s", got, want)
	}
	if got, want := fmt.Sprint(Reasons), fmt.Sprint(settings.Reasons); got != want {
		t.Errorf("reasons %s, the schema's are %s", got, want)
	}
}
