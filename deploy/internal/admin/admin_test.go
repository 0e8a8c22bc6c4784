package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"oal/deploy/internal/access"
	"oal/deploy/internal/account"
	"oal/deploy/internal/enrol"
	"oal/deploy/internal/fleet"
	"oal/deploy/internal/issue"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/killswitch"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/pki"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/rollouts"
	"oal/deploy/internal/sim"
	"oal/deploy/internal/store"
)

const token = "correct horse"

type fixture struct {
	t        *testing.T
	handler  http.Handler
	spec     routers.Router
	doc      *openapi3.T
	fleet    *fleet.Fleet
	rollouts *rollouts.Runner
	signer   *sim.Signer
	member   string // of the canary

	parts    Parts
	accounts *account.Users
	store    *store.Bolt
	metrics  *metric.Set
	log      bytes.Buffer // of the audit log
}

// users are ann, who may look, bob, who may act, and admin.
func (x *fixture) users(folder string) {
	x.t.Helper()
	tokenFile, usersFile := filepath.Join(folder, "token"), filepath.Join(folder, "users")
	var lines string
	for name, role := range map[string]string{"ann": "viewer", "bob": "operator", "dan": "approver"} {
		sum := sha256.Sum256([]byte(name + "'s token"))
		lines += name + " " + role + " " + hex.EncodeToString(sum[:]) + "\n"
	}
	err := errors.Join(os.WriteFile(tokenFile, []byte(token), 0o600), os.WriteFile(usersFile, []byte(lines), 0o600))
	if err == nil {
		x.accounts, err = account.Open(tokenFile, usersFile, func(err error) { x.t.Error(err) })
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

// tickets are those of an authority of this test.
func (x *fixture) tickets(db store.Store, lists *access.List) *enrol.Tickets {
	x.t.Helper()
	folder := x.t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	root, err := pki.New()
	var issuing *pki.Authority
	var issuer *issue.Issuer
	if err == nil {
		issuing, err = root.Issuing()
	}
	if err == nil {
		err = errors.Join(root.WriteAuthority(folder, "ca"), issuing.WriteAuthority(folder, "ap-ca"),
			os.WriteFile(file("masters"), []byte("1 "+base64.StdEncoding.EncodeToString(make([]byte, 32))), 0o600))
	}
	if err == nil {
		issuer, err = issue.New(issue.Files{Cert: file("ap-ca.crt"), Key: file("ap-ca.key"), Root: file("ca.crt"),
			Masters: file("masters")}, 30,
			func() string { return "" }, time.Now, func(err error) { x.t.Error(err) })
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return enrol.NewTickets("https://push:8445", issuer, db, lists.Revoked, metric.New(), time.Now)
}

// start makes an admin interface over a fleet of three APs, one of which rejected its bundle, with a canary and a
// refusal.
func start(t *testing.T) *fixture {
	t.Helper()
	return startIn(t, filepath.Join(t.TempDir(), "state.db"))
}

// startIn has its store in a file of one's choice.
func startIn(t *testing.T, path string, gate ...rollout.Gate) *fixture {
	t.Helper()
	x := &fixture{t: t}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := store.OpenBolt(path)
	check(err)
	t.Cleanup(func() { db.Close() })
	x.signer, err = sim.NewSigner(filepath.Join(t.TempDir(), "keys"))
	check(err)
	logger := slog.New(slog.DiscardHandler)
	x.fleet = fleet.New("test", time.Now, func(release.Slot, time.Duration) {})
	x.rollouts = rollouts.New(x.fleet, db, x.signer.Keys, nil, metric.New(), time.Now, logger)
	for _, g := range gate {
		x.rollouts.Gate = g
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.rollouts.Run(ctx, func(context.Context) {})
	}()
	t.Cleanup(func() { stop(); <-done })
	champion := x.release(release.Champion, 1)
	for _, id := range []string{"ap-1", "ap-2", "ap-3"} {
		x.fleet.End(x.fleet.Begin(id, fleet.Ask{Site: "lab", Agent: "0.3", InForce: champion,
			Switched: fleet.Switched{Control: fleet.On}}))
	}
	x.rollouts.Handle(nil)
	canary := x.release(release.Canary, 2)
	x.rollouts.Handle([]kafka.Record{{Key: "champion/fleet", Value: []byte("{")}})
	x.until(func() bool { return len(x.rollouts.All()) == 2 })
	members, _ := x.fleet.List("", 9, func(v *fleet.View) bool { return v.Desired == canary })
	if len(members) != 1 {
		t.Fatalf("members of the canary: %+v", members)
	}
	x.member = members[0].ID
	x.fleet.Report(x.member, fleet.Status{Bundle: canary, State: fleet.Rejected, Reason: "golden_mismatch", BootID: "7",
		Agent: "0.3"})

	kills := killswitch.New(x.fleet, db, metric.New(), time.Now, logger)
	x.users(t.TempDir())
	lists := access.New(x.fleet, db, metric.New(), time.Now, logger)
	x.metrics, x.store = metric.New(), db
	x.parts = Parts{Fleet: x.fleet, Rollouts: x.rollouts, Kills: kills, Access: lists, Tickets: x.tickets(db, lists),
		Store: db, StoreAway: func() time.Time { return time.Time{} }, Metrics: x.metrics, Users: x.accounts,
		Ready: func() error { return nil }, Now: time.Now, Logger: logger,
		Audit: slog.New(slog.NewJSONHandler(&x.log, nil))}
	x.handler = New(x.parts).routes()
	x.doc, err = openapi3.NewLoader().LoadFromData(openAPI)
	check(err)
	check(x.doc.Validate(context.Background()))
	x.spec, err = gorillamux.NewRouter(x.doc)
	check(err)
	return x
}

func (x *fixture) release(slot release.Slot, version uint32) string {
	key, value, hash := x.signer.Release(slot, "fleet", version, time.Now().UnixMicro(), func(record map[string]any) {
		if slot == release.Canary {
			record["rollout"] = map[string]any{"share": 0.1, "limit": 1} // no share of rejections aborts it
		}
	})
	x.rollouts.Handle([]kafka.Record{{Key: key, Value: value}})
	return hash
}

func (x *fixture) until(condition func() bool) {
	x.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			x.t.Fatal("not within 20 s")
		}
	}
}

// ask asks, and holds the answer against the OpenAPI document.
func (x *fixture) ask(method, path, body string, code int) string {
	x.t.Helper()
	return x.askAs(token, method, path, body, code)
}

func (x *fixture) askAs(token, method, path, body string, code int) string {
	x.t.Helper()
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	recorder := httptest.NewRecorder()
	x.handler.ServeHTTP(recorder, request)
	if recorder.Code != code {
		x.t.Errorf("%s %s: %d %s, want %d", method, path, recorder.Code, recorder.Body, code)
	}
	route, parameters, err := x.spec.FindRoute(request)
	if err != nil {
		x.t.Fatalf("%s %s is not in the document: %v", method, path, err)
	}
	content := recorder.Body.String()
	if strings.HasPrefix(recorder.Header().Get("Content-Type"), "application/json") {
		err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
			Status: recorder.Code, Header: recorder.Header(),
			Body: io.NopCloser(strings.NewReader(content)), Options: &openapi3filter.Options{
				IncludeResponseStatus: true},
			RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request, PathParams: parameters,
				Route: route}})
		if err != nil {
			x.t.Errorf("%s %s: %v", method, path, err)
		}
	}
	return content
}

func TestAnswersAreThoseOfTheDocument(t *testing.T) {
	x := start(t)
	if text := x.ask("GET", "/v1/summary", "", 200); !strings.Contains(text, `"known":3`) ||
		!strings.Contains(text, `"rejecting":1`) {
		t.Error(text)
	}
	first := x.ask("GET", "/v1/fleet?limit=2", "", 200)
	if !strings.Contains(first, `"next":"ap-2"`) || strings.Contains(first, "ap-3") {
		t.Error(first)
	}
	if text := x.ask("GET", "/v1/fleet?after=ap-2&site=lab", "", 200); !strings.Contains(text, `"ap-3"`) ||
		!strings.Contains(text, `"next":""`) {
		t.Error(text)
	}
	if text := x.ask("GET", "/v1/fleet?state=rejected", "", 200); !strings.Contains(text, "golden_mismatch") ||
		strings.Count(text, "ap_id") != 1 || !strings.Contains(text, x.member) {
		t.Error(text)
	}
	x.ask("GET", "/v1/fleet?limit=0", "", 400)
	x.ask("GET", "/v1/fleet?site=elsewhere", "", 200)
	x.ask("GET", "/v1/aps/ap-1", "", 200)
	x.ask("GET", "/v1/aps/ap-9", "", 404)
	x.ask("GET", "/v1/rollouts", "", 200)
	if text := x.ask("GET", "/v1/history?limit=1", "", 200); !strings.Contains(text, `"next":`) {
		t.Error(text)
	}
	x.until(func() bool {
		text := x.ask("GET", "/v1/history", "", 200)
		return strings.Contains(text, `"refused"`) && strings.Contains(text, `"step":"started"`)
	})
	x.ask("GET", "/v1/history?before=x", "", 400)
	for _, path := range []string{"/", "/openapi.yaml", "/healthz", "/readyz", "/metrics"} {
		x.ask("GET", path, "", 200)
	}
}

func TestStepsByHand(t *testing.T) {
	x := start(t)
	var canary, champion string
	for _, r := range x.rollouts.All() {
		if r.Slot == release.Canary {
			canary = r.ID
		} else {
			champion = r.ID
		}
	}
	x.ask("POST", "/v1/rollouts/none/abort", "", 404)
	x.ask("POST", "/v1/rollouts/"+canary+"/abort", "[", 400)
	if text := x.ask("POST", "/v1/rollouts/"+canary+"/expand", "", 200); !strings.Contains(text, `"all":true`) {
		t.Error(text)
	}
	x.ask("POST", "/v1/rollouts/"+champion+"/expand", "", 409)
	if text := x.ask("POST", "/v1/rollouts/"+canary+"/abort", `{"reason": "it rains"}`, 200); !strings.Contains(text,
		"it rains") {
		t.Error(text)
	}
	x.ask("POST", "/v1/rollouts/"+canary+"/abort", "", 409)
	if v, _ := x.fleet.Get(x.member); v.Slot != "champion" {
		t.Errorf("after the abort an AP should have the champion: %+v", v)
	}
}

func TestKillSwitch(t *testing.T) {
	x := start(t)
	const kill = "/v1/control/kill"
	body := `{"who": "eve", "reason": "users <complain>"}`
	if text := x.ask("GET", kill, "", 200); text != `{"kills":[],"stale_since_us":0}`+"\n" {
		t.Error(text)
	}
	if text := x.ask("GET", kill+"/site/lab", "", 200); !strings.Contains(text, `"killed":false`) ||
		!strings.Contains(text, `"aps":3`) {
		t.Error(text)
	}
	x.ask("PUT", kill+"/site/elsewhere", body, 404)
	x.ask("PUT", kill+"/ap/ap-9", body, 404)
	for _, bad := range []string{"", "[", "{}", `{"who": "ann"}`, `{"who": "ann", "reason": "x", "until": 5}`,
		`{"who": "ann", "reason": "` + strings.Repeat("x", 5000) + `"}`} {
		x.ask("PUT", kill+"/fleet", bad, 400)
	}
	if text := x.ask("PUT", kill+"/ap/ap-1", body, 200); !strings.Contains(text, `"killed":true`) ||
		!strings.Contains(text, `"connected":1,"heard":0`) {
		t.Error(text)
	}
	x.ask("PUT", kill+"/site/lab", body, 200)
	x.ask("PUT", kill+"/fleet", body, 200)
	if text := x.ask("GET", kill, "", 200); strings.Index(text, `"fleet"`) > strings.Index(text, `"ap/ap-1"`) ||
		strings.Count(text, `"who":"admin","note":"eve"`) != 3 {
		t.Error(text)
	}
	if text := x.ask("GET", "/v1/summary", "", 200); !strings.Contains(text, `"killed":3,"unheard":3`) {
		t.Error(text)
	}
	if text := x.ask("PUT", kill+"/fleet?policy=rwnd-fair", body, 200); !strings.Contains(text,
		`"policy":"rwnd-fair"`) {
		t.Error(text)
	}
	x.ask("PUT", kill+"/fleet?policy=none-such", body, 404)
	x.ask("GET", kill+"/fleet?policy=rwnd-fair", "", 200)
	x.ask("GET", "/v1/aps/ap-1", "", 200)
	if text := x.ask("DELETE", kill+"/fleet?policy=rwnd-fair&reason=over", "", 200); !strings.Contains(text,
		`"killed":false`) {
		t.Error(text)
	}
	x.ask("DELETE", kill+"/fleet", "", 400)
	x.ask("DELETE", kill+"/fleet?who=ann", "", 400)
	x.ask("DELETE", kill+"/fleet?reason=over", "", 200)
	x.ask("DELETE", kill+"/fleet?who=ann&reason=over", "", 409)
	x.ask("DELETE", kill+"/site/lab?who=ann&reason=over", "", 200)
	if text := x.ask("GET", "/v1/aps/ap-1", "", 200); !strings.Contains(text, `"killed":true`) ||
		!strings.Contains(text, `"control":"on"`) {
		t.Error(text)
	}
	if text := x.ask("GET", "/v1/aps/ap-2", "", 200); !strings.Contains(text, `"killed":false`) {
		t.Error(text)
	}
	if text := x.ask("GET", "/v1/history?limit=1", "", 200); !strings.Contains(text,
		"control on by admin for ann: over") || !strings.Contains(text, `"kind":"kill"`) {
		t.Error(text)
	}
	for _, scope := range []string{"/", "/fleet/x", "/slot/x", "/site", "/site/", "/ap/a/b", "/site/a%20b"} {
		request := httptest.NewRequest("PUT", kill+scope, strings.NewReader(body))
		request.Header.Set("Authorization", "Bearer "+token)
		recorder := httptest.NewRecorder()
		x.handler.ServeHTTP(recorder, request)
		if recorder.Code < 400 || recorder.Code >= 500 {
			t.Errorf("scope %q: %d", scope, recorder.Code)
		}
	}
}

func TestDocumentNamesWhatIsServed(t *testing.T) {
	x := start(t)
	for path, item := range x.doc.Paths.Map() {
		for method := range item.Operations() {
			request := httptest.NewRequest(method, strings.ReplaceAll(path, "{id}", "none"), nil)
			request.Header.Set("Authorization", "Bearer "+token)
			recorder := httptest.NewRecorder()
			x.handler.ServeHTTP(recorder, request)
			if recorder.Code == 405 || recorder.Code == 404 && !strings.Contains(path, "{id}") {
				t.Errorf("%s %s is in the document and is not served", method, path)
			}
		}
	}
}

func TestTokenIsNeeded(t *testing.T) {
	x := start(t)
	from := 0
	for path, item := range x.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			open := operation.Security != nil && (len(*operation.Security) == 0 || len((*operation.Security)[0]) == 0)
			for _, header := range []string{"", "Bearer ", "Bearer wrong", "Basic " + token, token} {
				request := httptest.NewRequest(method, strings.ReplaceAll(path, "{id}", "ap-1"), nil)
				request.Header.Set("Authorization", header)
				from++
				request.RemoteAddr = fmt.Sprintf("[2001:db8::%x]:1", from) // each from elsewhere: guesses are limited
				recorder := httptest.NewRecorder()
				x.handler.ServeHTTP(recorder, request)
				if open == (recorder.Code == http.StatusUnauthorized) {
					t.Errorf("%s %s with %q: %d", method, path, header, recorder.Code)
				}
			}
		}
	}
}
