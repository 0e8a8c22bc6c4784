package enrol

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"oal/deploy/internal/issue"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/pki"
	"oal/deploy/internal/store"
	"oal/deploy/internal/tlsconf"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type fixture struct {
	t       *testing.T
	root    *pki.Authority
	store   *failing
	metrics *metric.Set
	tickets *Tickets
	url     string
	client  *http.Client

	lock    sync.Mutex // guards what follows
	now     time.Time
	revoked string
	denials []string
}

// failing is a store that writes nothing while told so.
type failing struct {
	*store.Bolt
	lock sync.Mutex // guards fail
	fail bool
}

var errStore = errors.New("no space left")

func (f *failing) UseTicket(ctx context.Context, t store.Ticket, e store.Entry) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.fail {
		return errStore
	}
	return f.Bolt.UseTicket(ctx, t, e)
}

func start(t *testing.T) *fixture {
	t.Helper()
	x := &fixture{t: t, metrics: metric.New(), now: time.Now()}
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	var err error
	x.root, err = pki.New()
	must(t, err)
	issuing, err := x.root.Issuing()
	must(t, err)
	must(t, x.root.Write(folder, "push"))
	must(t, issuing.WriteAuthority(folder, "ap-ca"))
	must(t, os.WriteFile(file("masters"), []byte("3 "+base64.StdEncoding.EncodeToString(make([]byte, 32))), 0o600))
	unreadable := func(err error) { t.Error(err) }
	clock := func() time.Time { x.lock.Lock(); defer x.lock.Unlock(); return x.now }
	issuer, err := issue.New(issue.Files{Cert: file("ap-ca.crt"), Key: file("ap-ca.key"), Root: file("ca.crt"),
		Masters: file("masters")}, 30,
		func() string { return "ed25519 key\n" }, clock, unreadable)
	must(t, err)
	db, err := store.OpenBolt(file("state.db"))
	must(t, err)
	t.Cleanup(func() { db.Close() })
	x.store = &failing{Bolt: db}
	open, err := tlsconf.Server("tls", file("push.crt"), file("push.key"), unreadable)
	must(t, err)
	revoked := func(id string) *store.Access {
		x.lock.Lock()
		defer x.lock.Unlock()
		if id != x.revoked {
			return nil
		}
		return &store.Access{APID: id, Revoked: true}
	}
	x.tickets = NewTickets("https://push:8445", issuer, x.store, revoked, x.metrics, clock)
	denied := func(who, reason, path string) {
		x.lock.Lock()
		defer x.lock.Unlock()
		x.denials = append(x.denials, who+" "+reason+" "+path)
	}
	server := NewServer(x.tickets, x.metrics, open, denied, clock, slog.New(slog.DiscardHandler))
	address, err := server.Start("127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		server.Stop(ctx)
	})
	x.url = "https://" + address.String() + "/v1/enrol"
	x.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: x.root.Pool()}},
		Timeout: 20 * time.Second}
	t.Cleanup(x.client.CloseIdleConnections)
	return x
}

func (x *fixture) later(by time.Duration) {
	x.lock.Lock()
	defer x.lock.Unlock()
	x.now = x.now.Add(by)
}

// ticket is the token of a new one.
func (x *fixture) ticket(id, site string) string {
	x.t.Helper()
	_, text, err := x.tickets.New(x.t.Context(), id, site, "ann", time.Hour)
	must(x.t, err)
	raw, err := base64.RawURLEncoding.DecodeString(text)
	must(x.t, err)
	var p paper
	must(x.t, json.Unmarshal(raw, &p))
	return p.Token
}

func csr(t *testing.T) string {
	t.Helper()
	device, err := pki.NewDevice()
	must(t, err)
	return device.CSR
}

func (x *fixture) post(body string) (code int, text string) {
	x.t.Helper()
	response, err := x.client.Post(x.url, "application/json", strings.NewReader(body))
	must(x.t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	must(x.t, err)
	return response.StatusCode, string(raw)
}

func (x *fixture) enrol(token, csr string, code int) string {
	x.t.Helper()
	body, err := json.Marshal(map[string]string{"token": token, "csr": csr})
	must(x.t, err)
	got, text := x.post(string(body))
	if got != code {
		x.t.Errorf("%d %s, want %d", got, text, code)
	}
	return text
}

func (x *fixture) count(result string, want float64) {
	x.t.Helper()
	if n := testutil.ToFloat64(x.metrics.Enrolments.WithLabelValues(result)); n != want {
		x.t.Errorf("%s: %g, want %g", result, n, want)
	}
}

// A ticket is good once; an AP that lost the answer gets it again with its own key, and nobody does with another.
func TestATicketIsGoodOnce(t *testing.T) {
	x := start(t)
	token, own, thief := x.ticket("ap-1", "lab"), csr(t), csr(t)
	first := x.enrol(token, own, 200)
	var g issue.Grant
	must(t, json.Unmarshal([]byte(first), &g))
	if g.APID != "ap-1" || g.Site != "lab" || !strings.HasPrefix(g.MACKeys, "ap-1 lab 3 ") ||
		g.TrustedKeys != "ed25519 key\n" || !strings.Contains(g.CA, "BEGIN CERTIFICATE") {
		t.Errorf("%+v", g)
	}
	used := x.enrol(token, thief, 401)
	if again := x.enrol(token, own, 200); again != first {
		t.Errorf("the same AP got another answer:\n%s", again)
	}
	unknown := x.enrol("unknown", own, 401)
	x.later(2 * time.Hour)
	lapsed := x.enrol(token, own, 401)
	unused := x.ticket("ap-2", "")
	x.later(2 * time.Hour)
	if late := x.enrol(unused, own, 401); used != unknown || lapsed != unknown || late != unknown {
		t.Errorf("answers differ: %q %q %q %q", used, unknown, lapsed, late)
	}
	x.count("issued", 1)
	x.count("repeated", 1)
	x.count("refused", 4)
	history, err := x.store.History(t.Context(), 0, 10)
	must(t, err)
	var lines []string
	for _, e := range history {
		lines = append(lines, e.Kind+" "+e.Key)
	}
	if got := strings.Join(lines, ", "); got != "ticket ap-2, enrolled ap-1, ticket ap-1" {
		t.Error(got)
	}
	if raw, err := os.ReadFile(x.store.Bolt.Path()); err != nil || bytes.Contains(raw, []byte(token)) {
		t.Errorf("the token is in the store: %v", err)
	}
	if len(x.denials) != 4 || x.denials[0] != "127.0.0.1 bad_token /v1/enrol" {
		t.Errorf("%v", x.denials)
	}
}

// Of many that ask with one token at the same moment one gets a certificate.
func TestATicketIsGoodOnceAtOnce(t *testing.T) {
	x := start(t)
	token := x.ticket("ap-1", "lab")
	codes := make(chan int, 8)
	for range cap(codes) {
		body, err := json.Marshal(map[string]string{"token": token, "csr": csr(t)})
		must(t, err)
		go func() {
			response, err := x.client.Post(x.url, "application/json", bytes.NewReader(body))
			if err != nil {
				codes <- 0
				return
			}
			response.Body.Close()
			codes <- response.StatusCode
		}()
	}
	count := map[int]int{}
	for range cap(codes) {
		count[<-codes]++
	}
	if count[200] != 1 || count[401] != cap(codes)-1 {
		t.Errorf("%v", count)
	}
}

func TestTicketsAreWithdrawn(t *testing.T) {
	x := start(t)
	token := x.ticket("ap-1", "lab")
	open, err := x.tickets.Open(t.Context())
	must(t, err)
	if len(open) != 1 || open[0].APID != "ap-1" || open[0].Who != "ann" {
		t.Fatalf("%+v", open)
	}
	_, err = x.tickets.Withdraw(t.Context(), open[0].ID, "bob")
	must(t, err)
	x.enrol(token, csr(t), 401)
	if _, err = x.tickets.Withdraw(t.Context(), open[0].ID, "bob"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	used := x.ticket("ap-2", "lab")
	x.enrol(used, csr(t), 200)
	x.ticket("ap-3", "lab")
	x.later(30 * time.Minute)
	x.ticket("ap-4", "lab")
	x.later(31 * time.Minute)
	if open, err = x.tickets.Open(t.Context()); err != nil || len(open) != 1 || open[0].APID != "ap-4" {
		t.Errorf("%+v %v", open, err)
	}
	x.ticket("ap-5", "lab")
	if stored, err := x.store.Tickets(t.Context()); err != nil || len(stored) != 2 {
		t.Errorf("lapsed tickets are kept: %+v %v", stored, err)
	}
}

func TestRevokedAPsDoNotEnrol(t *testing.T) {
	x := start(t)
	token, own := x.ticket("ap-1", "lab"), csr(t)
	x.revoked = "ap-1"
	if text := x.enrol(token, own, 403); !strings.Contains(text, "revoked") {
		t.Error(text)
	}
	if _, _, err := x.tickets.New(t.Context(), "ap-1", "", "ann", time.Hour); !errors.Is(err, ErrRevoked) {
		t.Error(err)
	}
	x.count("revoked", 1)
	x.revoked = ""
	x.enrol(token, own, 200)
}

// A ticket whose use cannot be stored is not used: the AP asks again later.
func TestAStoreThatCannotWriteUsesNoTicket(t *testing.T) {
	x := start(t)
	token := x.ticket("ap-1", "lab")
	x.store.fail = true
	if text := x.enrol(token, csr(t), 503); strings.Contains(text, "CERTIFICATE") {
		t.Error(text)
	}
	x.store.fail = false
	x.enrol(token, csr(t), 200)
	x.count("failed", 1)
}

func TestBadRequests(t *testing.T) {
	x := start(t)
	token := x.ticket("ap-1", "lab")
	for _, body := range []string{"", "[]", "{}", `{"token": "x"}`, `{"token": 5}`, `{"token": "` + token +
		`", "csr": "x"}`, `{"token": "` + strings.Repeat("x", maxBody) + `"}`} {
		if code, text := x.post(body); code != 400 {
			t.Errorf("%.60s: %d %s", body, code, text)
		}
	}
	x.count("bad_request", 7)
	x.enrol(token, csr(t), 200)
	for path, code := range map[string]int{"/": 404, "/v1/aps/a/bundle": 404, "/v1/enrol": 405} {
		response, err := x.client.Get(strings.TrimSuffix(x.url, "/v1/enrol") + path)
		must(t, err)
		response.Body.Close()
		if response.StatusCode != code {
			t.Errorf("%s: %d", path, response.StatusCode)
		}
	}
}

func TestRateLimit(t *testing.T) {
	x := start(t)
	for range addressBurst {
		x.enrol("guess", "", 400)
	}
	x.enrol("guess", "", 429)
	x.count("rate_limit", 1)
	x.later(time.Second)
	x.enrol("guess", "", 400)
}

func TestNetwork(t *testing.T) {
	for remote, want := range map[string]string{"192.0.2.7:80": "192.0.2.7", "[2001:db8::1]:80": "2001:db8::",
		"[2001:db8:0:0:9::1]:80": "2001:db8::", "[::ffff:192.0.2.7]:1": "192.0.2.7", "pipe": "pipe"} {
		if got := network(remote); got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
}
