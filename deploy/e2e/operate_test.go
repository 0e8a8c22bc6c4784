package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/release"
)

// A backup made while the service runs brings back what was; APs go on polling, and who was revoked since stays out.
func TestBackup(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	state, backup := filepath.Join(folder, "state.db"), filepath.Join(folder, "backup")
	said := revocations(t)
	r := start(t, config.Store{Path: state})
	f := connect(t, r.Config.APListen, "backup", "b", 3)
	defer withdraw(t, "champion/site/b")
	first := send(t, release.Champion, "site/b", 1, nil)
	eventually(t, says("version 1 everywhere"), func() bool { return f.Have(first) == 3 })
	must(t, r.SetKill("ap/backup-0001", true, "ann", "before"))
	killed(t, f, 1)
	if out := ctl(t, r, "backup", backup); !strings.Contains(out, "bytes") {
		t.Error(out)
	}
	must(t, r.SetKill("site/b", true, "ann", "after"))
	must(t, r.SetKill("ap/backup-0001", false, "ann", "after"))
	killed(t, f, 3)
	ctl(t, r, "revoke", "backup-0003", "--reason", "after")
	eventually(t, says("Kafka says so"), func() bool { return containsAny(said("backup-0003"), "after") })
	defer func() { ctl(t, r, "restore", "backup-0003") }()

	restore := func(args ...string) (string, error) {
		return r.Run(append(append([]string{"restore", "--config", r.Path}, args...), backup)...)
	}
	if out, err := restore("--force"); err == nil || !strings.Contains(out, "the service runs") {
		t.Errorf("%v %s", err, out)
	}
	r.Stop()
	if out, err := restore(); err == nil || !strings.Contains(out, "--force") {
		t.Errorf("%v %s", err, out)
	}
	if out, err := restore("--force"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	must(t, r.Start())
	killed(t, f, 2) // the site is on again but for ap/backup-0001, and the revoked AP, which hears nothing any more
	kills := ctl(t, r, "kills")
	if !strings.Contains(kills, "before") || strings.Contains(kills, "site/b") {
		t.Error(kills)
	}
	// a service that is ready has compared
	if revoked := ctl(t, r, "access"); !strings.Contains(revoked, "backup-0003") {
		t.Error("the revocation that Kafka knows:", revoked)
	}
	second := send(t, release.Champion, "site/b", 2, nil, first)
	eventually(t, says("version 2 at the two that may"), func() bool { return f.Have(second) == 2 })
	if f.InForce("backup-0003") != first {
		t.Error("a revoked AP got a release")
	}
}

// Users come from a file that may change, each with a role; the interface may speak TLS, and figures take a token.
func TestUsersOverTLS(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	r, err := broker.NewReplica(folder, keysFile, config.Store{Path: file("state.db")}, nil)
	must(t, err)
	users := func(lines ...string) { must(t, os.WriteFile(file("users"), []byte(strings.Join(lines, "\n")), 0o600)) }
	line := func(name, role, token string) string {
		sum := sha256.Sum256([]byte(token))
		return name + " " + role + " " + hex.EncodeToString(sum[:])
	}
	for _, name := range []string{"ann", "bob"} {
		must(t, os.WriteFile(file(name), []byte(name+"'s token\n"), 0o600))
	}
	users(line("ann", "viewer", "ann's token"))
	must(t, os.WriteFile(file("scraper"), []byte("scraper's token"), 0o600))
	must(t, r.Change(func(c *config.Config) {
		c.AdminUsersFile, c.MetricsTokenFile = file("users"), file("scraper")
		c.AdminTLS = &config.AdminTLS{Cert: c.TLS.Cert, Key: c.TLS.Key}
	}))
	run(t, r)
	as := func(name string, args ...string) (string, error) {
		return r.Ctl(append(args, "--token-file", file(name))...)
	}
	if out, err := as("ann", "fleet"); err != nil {
		t.Errorf("%v %s", err, out)
	}
	if out, err := as("ann", "kill", "fleet", "--reason", "x"); err == nil ||
		!strings.Contains(out, "user ann is viewer; this is for operator") {
		t.Errorf("%v %s", err, out)
	}
	if out, err := as("bob", "fleet"); err == nil || !strings.Contains(out, "401") {
		t.Errorf("%v %s", err, out)
	}
	users(line("ann", "operator", "ann's token"), line("bob", "viewer", "bob's token"))
	if out, err := as("bob", "fleet"); err != nil {
		t.Errorf("a user that was added: %v %s", err, out)
	}
	if out, err := as("ann", "kill", "fleet", "--reason", "x", "--who", "the hall"); err != nil ||
		!strings.Contains(out, `"who": "ann"`) || !strings.Contains(out, `"note": "the hall"`) {
		t.Errorf("a role that was changed: %v %s", err, out)
	}
	if out, err := as("bob", "audit"); err == nil || !strings.Contains(out, "403") {
		t.Errorf("%v %s", err, out)
	}
	audit := ctl(t, r, "audit")
	for _, want := range []string{"ann   viewer    127.0.0.1  kill    PUT /v1/control/kill/fleet  403",
		"ann   operator  127.0.0.1  kill    PUT /v1/control/kill/fleet  200"} {
		if !strings.Contains(strings.Join(strings.Fields(audit), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("%q is not in the audit log:\n%s", want, audit)
		}
	}
	log, err := os.ReadFile(r.Log)
	must(t, err)
	if !strings.Contains(string(log),
		`"user":"ann","role":"operator","address":"127.0.0.1","action":"kill","target":"PUT /v1/control/kill/fleet",`+
			`"code":200`) {
		t.Errorf("no line of JSON says so:\n%s", log)
	}
	out, err := r.Run("user", "cyd", "viewer")
	if words := strings.Fields(out); err != nil || len(words) < 4 || words[0] != "cyd" ||
		words[2] != strings.Fields(line("cyd", "viewer", words[len(words)-1]))[2] {
		t.Errorf("%v %s", err, out)
	}

	token := r.Token
	for given, good := range map[string]bool{token: true, "scraper's token": true, "bob's token": true,
		"wrong": false} {
		r.Token = given
		if text, err := r.Metrics(); (err == nil) != good || good &&
			!strings.Contains(text, `oal_deploy_certificate_not_after_seconds{file="deploy.crt"} `) {
			t.Errorf("metrics with %q: %v", given, err)
		}
	}
	r.Token = token
	if ends := metricOf(t, r, `oal_deploy_certificate_not_after_seconds{file="ca.crt"}`); ends < float64(
		time.Now().Unix()) {
		t.Errorf("the CA ends at %g", ends)
	}
	connect(t, r.Config.APListen, "ending", "e", 1)
	eventually(t, says("when the AP's certificate ends"), func() bool {
		return metricOf(t, r, "oal_deploy_ap_certificate_first_not_after_seconds") > float64(time.Now().Unix())
	})
}
