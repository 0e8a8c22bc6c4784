package admin

import (
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"oal/deploy/internal/account"
	"oal/deploy/internal/store"
)

// Each role may do what is its own and what those below it may, and nothing else changes anything.
func TestRoles(t *testing.T) {
	x := start(t)
	const reason = `{"reason": "x"}`
	requests := []struct {
		method, path, body string
		least              account.Role
		code               int // for those who may
	}{
		{"GET", "/v1/whoami", "", account.Viewer, 200}, {"GET", "/v1/summary", "", account.Viewer, 200},
		{"GET", "/v1/fleet", "", account.Viewer, 200},
		{"GET", "/v1/aps/ap-1", "", account.Viewer, 200}, {"GET", "/v1/rollouts", "", account.Viewer, 200},
		{"GET", "/v1/history", "", account.Viewer, 200},
		{"GET", "/v1/control/kill", "", account.Viewer, 200}, {"GET", "/v1/access", "", account.Viewer, 200},
		{"PUT", "/v1/control/kill/fleet", reason, account.Operator, 200}, {"DELETE", "/v1/control/kill/fleet?reason=x",
			"", account.Operator, 200},
		{"POST", "/v1/rollouts/none/abort", reason, account.Operator, 404}, {"POST", "/v1/rollouts/none/expand", "",
			account.Operator, 404},
		{"POST", "/v1/aps/ap-9/revoke", reason, account.Operator, 200}, {"GET", "/v1/audit", "", account.Operator, 200},
		{"POST", "/v1/aps/ap-9/restore", reason, account.Admin, 0}, {"POST", "/v1/tickets", `{"ap_id": "ap-1"}`,
			account.Admin, 200},
		{"GET", "/v1/tickets", "", account.Admin, 200}, {"DELETE", "/v1/tickets/none", "", account.Admin, 404},
		{"GET", "/v1/state", "", account.Admin, 200},
		{"POST", "/v1/rollouts/none/approve", reason, account.Approver, 404},
		{"POST", "/v1/rollouts/none/approve-in-emergency", reason, account.Admin, 404},
	}
	for token, role := range map[string]account.Role{"ann's token": account.Viewer, "bob's token": account.Operator,
		token: account.Admin, "dan's token": account.Approver} {
		for _, r := range requests {
			code := r.code
			switch {
			case !role.May(r.least):
				code = 403
			case code == 0: // restored once it was revoked
				code = 200
			}
			text := x.askAs(token, r.method, r.path, r.body, code)
			if code == 403 && !strings.Contains(text, "this is for "+r.least.String()) {
				t.Error(text)
			}
		}
		if role == account.Viewer && (len(x.parts.Kills.Kills()) > 0 || len(x.parts.Access.All()) > 0) {
			t.Error("a viewer changed something")
		}
	}
	if n := testutil.ToFloat64(x.metrics.AdminRefused.WithLabelValues("role")); n != 13+7+1+12 {
		t.Errorf("%g refusals for a role", n)
	}
}

func TestAudit(t *testing.T) {
	x := start(t)
	x.ask("GET", "/v1/fleet", "", 200) // who looks leaves no line
	x.ask("PUT", "/v1/control/kill/site/lab?policy=rwnd-fair", `{"reason": "x"}`, 200)
	x.ask("PUT", "/v1/control/kill/site/lab", `{"reason": "x"}`, 200)
	x.askAs("ann's token", "DELETE", "/v1/control/kill/site/lab?reason=x", "", 403)
	x.askAs("bob's token", "POST", "/v1/aps/ap-1/revoke", "{}", 400)
	x.askAs("nobody's", "GET", "/v1/fleet", "", 401)
	x.ask("GET", "/v1/state", "", 200)
	var answer struct{ Lines []store.Audit }
	if err := json.Unmarshal([]byte(x.ask("GET", "/v1/audit", "", 200)), &answer); err != nil {
		t.Fatal(err)
	}
	var lines, logged []string
	for _, l := range answer.Lines {
		if l.Address != "192.0.2.1" || l.TSUS == 0 {
			t.Errorf("%+v", l)
		}
		lines = append([]string{strings.Join([]string{l.User, l.Role, l.Action, l.Target, l.Note}, "|")}, lines...)
	}
	want := []string{"admin|admin|kill|PUT /v1/control/kill/site/lab of rwnd-fair|",
		"admin|admin|kill|PUT /v1/control/kill/site/lab|",
		"ann|viewer|unkill|DELETE /v1/control/kill/site/lab|user ann is viewer; this is for operator",
		"bob|operator|revoke|POST /v1/aps/ap-1/revoke|this cannot be done: say the reason, in at most 500 bytes",
		"||see|GET /v1/fleet|send `Authorization: Bearer TOKEN` with the token of a user: that of admin_token_file, " +
			"or one of admin_users_file", "admin|admin|state|GET /v1/state|"}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("audit log\n%s", strings.Join(lines, "\n"))
	}
	for _, line := range strings.Split(strings.TrimSpace(x.log.String()), "\n") {
		var l struct{ User, Role, Action, Target, Note string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err, line)
		}
		logged = append(logged, strings.Join([]string{l.User, l.Role, l.Action, l.Target, l.Note}, "|"))
	}
	if strings.Join(logged, "\n") != strings.Join(want, "\n") {
		t.Errorf("lines of JSON\n%s", x.log.String())
	}
	if text := x.ask("GET", "/v1/audit?limit=2", "", 200); !strings.Contains(text, `"next":5`) {
		t.Error(text)
	}
	x.ask("GET", "/v1/audit?before=-1", "", 400)
}

// Who has no token can neither guess fast nor push the lines of others out of the store.
func TestGuesses(t *testing.T) {
	x := start(t)
	x.ask("PUT", "/v1/control/kill/fleet", `{"reason": "x"}`, 200)
	codes := map[int]int{}
	for range 100 {
		request := httptest.NewRequest("GET", "/v1/fleet", nil)
		request.Header.Set("Authorization", "Bearer guess")
		recorder := httptest.NewRecorder()
		x.handler.ServeHTTP(recorder, request)
		codes[recorder.Code]++
	}
	if codes[401] < 20 || codes[401] > 60 || codes[401]+codes[429] != 100 {
		t.Errorf("answers %v", codes)
	}
	x.ask("GET", "/v1/fleet", "", 200) // a good token is good from there too
	lines, err := x.store.AuditLog(t.Context(), 0, 1000)
	if err != nil || len(lines) > 32 || lines[len(lines)-1].Action != "kill" {
		t.Errorf("%d lines, %v", len(lines), err)
	}
}

func TestRevocation(t *testing.T) {
	x := start(t)
	x.ask("POST", "/v1/aps/ap-1/revoke", `{"reason": ""}`, 400)
	x.ask("POST", "/v1/aps/ap-1/revoke", `{"reasons": "x"}`, 400)
	x.ask("POST", "/v1/aps/a%20b/revoke", `{"reason": "x"}`, 400)
	x.ask("POST", "/v1/aps/ap-1/restore", "", 409)
	if text := x.ask("POST", "/v1/aps/ap-1/revoke", `{"reason": "stolen"}`, 200); !strings.Contains(text,
		`"revoked":true`) || !strings.Contains(text, `"who":"admin","reason":"stolen","sent":false`) {
		t.Error(text)
	}
	if text := x.ask("GET", "/v1/access", "", 200); !strings.Contains(text, `"ap_id":"ap-1"`) {
		t.Error(text)
	}
	if text := x.ask("GET", "/v1/aps/ap-1", "", 200); !strings.Contains(text, `"revoked":true`) {
		t.Error(text)
	}
	x.ask("POST", "/v1/tickets", `{"ap_id": "ap-1"}`, 409)
	if text := x.ask("GET", "/v1/history?limit=1", "", 200); !strings.Contains(text, "revoked by admin: stolen") {
		t.Error(text)
	}
	x.ask("POST", "/v1/aps/ap-1/restore", "", 200)
	if text := x.ask("GET", "/v1/access", "", 200); text != `{"revoked":[],"stale_since_us":0}`+"\n" {
		t.Error(text)
	}
}

func TestTickets(t *testing.T) {
	x := start(t)
	for _, bad := range []string{"", "{}", "[", `{"ap_id": "a b"}`, `{"ap_id": "a", "site": "/"}`,
		`{"ap_id": "a", "ttl_s": 5}`, `{"ap_id": "a", "ttl_s": -5}`, `{"ap_id": "a", "ttl_s": 99999999}`,
		`{"ap_id": "a", "role": "admin"}`} {
		x.ask("POST", "/v1/tickets", bad, 400)
	}
	var made struct{ ID, Text string }
	if err := json.Unmarshal([]byte(x.ask("POST", "/v1/tickets", `{"ap_id": "ap-7", "site": "lab"}`, 200)),
		&made); err != nil {
		t.Fatal(err)
	}
	text, err := base64.RawURLEncoding.DecodeString(made.Text)
	if err != nil || !strings.HasPrefix(string(text),
		`{"v":1,"url":"https://push:8445","ap_id":"ap-7","site":"lab","token":"`) || !strings.Contains(string(text),
		"BEGIN CERTIFICATE") {
		t.Errorf("%s %v", text, err)
	}
	var paper struct{ Token string }
	if err := json.Unmarshal(text, &paper); err != nil {
		t.Fatal(err)
	}
	open := x.ask("GET", "/v1/tickets", "", 200)
	if !strings.Contains(open, made.ID) || strings.Contains(open, paper.Token) {
		t.Error(open)
	}
	x.ask("DELETE", "/v1/tickets/"+made.ID, "", 200)
	x.ask("DELETE", "/v1/tickets/"+made.ID, "", 404)
	if text := x.ask("GET", "/v1/tickets", "", 200); text != `{"tickets":[]}`+"\n" {
		t.Error(text)
	}
	if strings.Contains(x.ask("GET", "/v1/audit", "", 200)+x.ask("GET", "/v1/history", "", 200)+x.log.String(),
		paper.Token) {
		t.Error("the token is written down")
	}
	x.parts.Tickets = nil
	x.handler = New(x.parts).routes()
	x.ask("GET", "/v1/tickets", "", 404)
}

func TestMetricsToken(t *testing.T) {
	x := start(t)
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("scraper's"), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if x.parts.Scraper, err = account.OpenToken("metrics_token_file", path,
		func(err error) { t.Error(err) }); err != nil {
		t.Fatal(err)
	}
	x.handler = New(x.parts).routes()
	for token, code := range map[string]int{"": 401, "wrong": 401, "scraper's": 200, "ann's token": 200, token: 200} {
		x.askAs(token, "GET", "/metrics", "", code)
	}
	x.askAs("scraper's", "GET", "/v1/fleet", "", 401)
	for _, path := range []string{"/", "/openapi.yaml", "/healthz", "/readyz"} {
		x.askAs("", "GET", path, "", 200)
	}
}

func TestStateIsACopyOfTheStore(t *testing.T) {
	x := start(t)
	x.ask("PUT", "/v1/control/kill/site/lab", `{"reason": "before"}`, 200)
	path := filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(path, []byte(x.ask("GET", "/v1/state", "", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	x.ask("DELETE", "/v1/control/kill/site/lab?reason=after", "", 200)
	if err := store.CheckSnapshot(path); err != nil {
		t.Fatal(err)
	}
	copied, err := store.OpenBolt(path)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	if kills, err := copied.Kills(t.Context()); err != nil || len(kills) != 1 || kills[0].Reason != "before" {
		t.Errorf("%+v %v", kills, err)
	}
}
