package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/issue"
	"oal/deploy/internal/pki"
	"oal/deploy/internal/platform"
	"oal/deploy/internal/release"
	"oal/deploy/internal/sim"
)

// enrolling is a replica that enrols APs.
func enrolling(t *testing.T, store config.Store, keys string) *platform.Replica {
	t.Helper()
	r, err := broker.NewReplica(t.TempDir(), keys, store, nil)
	must(t, err)
	must(t, broker.Enrols(r))
	run(t, r)
	return r
}

func ctl(t *testing.T, r *platform.Replica, args ...string) string {
	t.Helper()
	out, err := r.Ctl(args...)
	if err != nil {
		t.Fatalf("ctl %v: %v %s", args, err, out)
	}
	return strings.TrimSpace(out)
}

// device is an AP that has made its key.
type device struct{ *pki.Device }

func newDevice(t *testing.T) *device {
	t.Helper()
	d, err := pki.NewDevice()
	must(t, err)
	return &device{d}
}

// enrol does with a ticket what an AP does; at is where, or empty for where the ticket says.
func (d *device) enrol(t *testing.T, ticket, at string) (code int, g issue.Grant) {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(ticket)
	must(t, err)
	var paper struct{ URL, Token, CA string }
	must(t, json.Unmarshal(raw, &paper))
	if at == "" {
		at = paper.URL
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(paper.CA))
	body, err := json.Marshal(map[string]string{"token": paper.Token, "csr": d.CSR})
	must(t, err)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots},
		DisableKeepAlives: true}, Timeout: 30 * time.Second}
	response, err := client.Post(at+"/v1/enrol", "application/json", bytes.NewReader(body))
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode == http.StatusOK {
		must(t, json.Unmarshal(text, &g))
	}
	return response.StatusCode, g
}

// revocations follows ap.access.v1 from its beginning. The answer gives, for an AP, all that the topic has said of it
// so far, the latest last; "restored" stands for a record without value. Other tests' replicas may repeat what they
// read at their start.
func revocations(t *testing.T) func(id string) (said []string) {
	t.Helper()
	client, err := broker.Read("ap.access.v1")
	must(t, err)
	t.Cleanup(client.Close)
	all := map[string][]string{}
	return func(id string) []string {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		for _, record := range client.PollRecords(ctx, 1000).Records() {
			value := string(record.Value)
			if record.Value == nil {
				value = "restored"
			}
			all[string(record.Key)] = append(all[string(record.Key)], value)
		}
		return all[id]
	}
}

func containsAny(texts []string, part string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, part) })
}

// An AP enrols at one replica with a ticket made at another, gets bundles at both with its certificate, for its site
// alone; revoked, it gets nothing at either, over restarts, and Kafka says so; restored, it goes on.
func TestEnrolRevokeRestore(t *testing.T) {
	t.Parallel()
	shared, said := config.Store{PostgresDSNFile: database(t)}, revocations(t)
	one, two := enrolling(t, shared, keysFile), enrolling(t, shared, keysFile)
	defer withdraw(t, "champion/site/hut")
	first := send(t, release.Champion, "site/hut", 1, nil)

	ticket := ctl(t, one, "ticket", "hut-1", "--site", "hut", "--ttl", "1h")
	d := newDevice(t)
	code, grant := d.enrol(t, ticket, two.Config.Enrol.URL)
	if code != 200 || grant.APID != "hut-1" || grant.Site != "hut" || !strings.HasPrefix(grant.MACKeys, "hut-1 hut ") ||
		!strings.Contains(grant.TrustedKeys, "ed25519 ") {
		t.Fatalf("%d %+v", code, grant)
	}
	if code, again := d.enrol(t, ticket, ""); code != 200 || again != grant {
		t.Errorf("a lost answer, asked for again elsewhere: %d", code)
	}
	if code, _ := newDevice(t).enrol(t, ticket, ""); code != 401 {
		t.Errorf("a used ticket: %d", code)
	}
	withdrawn := ctl(t, one, "ticket", "hut-2")
	if open := ctl(t, two, "tickets"); !strings.Contains(open, "hut-2") || strings.Contains(open, "hut-1") {
		t.Error(open)
	} else {
		ctl(t, two, "withdraw", strings.Fields(strings.Split(open, "\n")[1])[0])
	}
	if code, _ := newDevice(t).enrol(t, withdrawn, ""); code != 401 {
		t.Errorf("a withdrawn ticket: %d", code)
	}

	cert, err := d.Certificate(grant.Certificate)
	must(t, err)
	aps := func(r *platform.Replica, site string) *sim.Fleet {
		f := &sim.Fleet{Address: r.Config.APListen, Roots: authority.Pool(), Keys: signer.Keys(), WaitS: 60}
		f.AddAP("hut-1", site, cert)
		f.Start()
		t.Cleanup(f.Stop)
		return f
	}
	own := aps(one, "hut")
	eventually(t, says("the release at the enrolled AP"), func() bool { return own.Have(first) == 1 })
	stranger := aps(two, "elsewhere")
	denied := func(r *platform.Replica, reason string) func() bool {
		return func() bool { return metricOf(t, r, `oal_deploy_denied_total{reason="`+reason+`"}`) > 0 }
	}
	eventually(t, says("its certificate refused for another site"), denied(two, "other_site"))
	stranger.Stop()

	if out := ctl(t, two, "revoke", "hut-1", "--reason", "stolen from the hut"); !strings.Contains(out,
		`"revoked": true`) {
		t.Error(out)
	}
	eventually(t, says("its poll ended"), denied(one, "revoked"))
	if v := apOf(t, one, "hut-1"); !v.Revoked {
		t.Errorf("%+v", v)
	}
	if out := ctl(t, one, "access"); !strings.Contains(out, "stolen from the hut") {
		t.Error(out)
	}
	if out, err := one.Ctl("ticket", "hut-1"); err == nil || !strings.Contains(out, "409") {
		t.Errorf("%v %s", err, out)
	}
	if code, _ := d.enrol(t, ticket, ""); code != 403 {
		t.Errorf("the ticket of a revoked AP: %d", code)
	}
	eventually(t, says("Kafka says so"), func() bool {
		return containsAny(said("hut-1"), `"reason":"stolen from the hut"`)
	})
	second := send(t, release.Champion, "site/hut", 2, nil, first)
	one.Kill()
	must(t, one.Start())
	eventually(t, says("refused after a restart"), denied(one, "revoked"))
	if own.Have(second) != 0 {
		t.Error("a revoked AP got a release")
	}
	ctl(t, one, "restore", "hut-1")
	eventually(t, says("the release at the AP that was restored"), func() bool { return own.Have(second) == 1 })
	eventually(t, says("Kafka says so"), func() bool { return slices.Contains(said("hut-1"), "restored") })

	history := ctl(t, two, "history")
	for _, line := range []string{"enrolled  hut-1", "revoked by admin: stolen from the hut",
		"restored by admin: by hand", "denied    hut-1"} {
		if !strings.Contains(history, line) {
			t.Errorf("%q is not in the history:\n%s", line, history)
		}
	}
	audit := ctl(t, one, "audit")
	for _, line := range []string{"POST /v1/aps/hut-1/revoke", "POST /v1/aps/hut-1/restore", "POST /v1/tickets",
		"409"} {
		if !strings.Contains(audit, line) {
			t.Errorf("%q is not in the audit log:\n%s", line, audit)
		}
	}
}

// The keys that sign bundles are rotated while the service runs: releases of the new key are taken, and APs that enrol
// are given it.
func TestSigningKeyIsRotated(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	keys := filepath.Join(folder, "keys")
	old, err := os.ReadFile(keysFile)
	must(t, err)
	must(t, os.WriteFile(keys, old, 0o600))
	r := enrolling(t, config.Store{Path: filepath.Join(folder, "state.db")}, keys)
	defer withdraw(t, "champion/site/rotated")
	next, err := sim.NewSigner(filepath.Join(folder, "next"))
	must(t, err)
	released := func() string {
		key, value, hash := next.Release(release.Champion, "site/rotated", 1, time.Now().UnixMicro(), nil)
		must(t, releaser.Send(record(key, value)))
		return hash
	}
	released()
	eventually(t, says("a release of an unknown key refused"), func() bool {
		return metricOf(t, r, `oal_deploy_releases_refused_total{reason="unknown_key"}`) > 0
	})
	added, err := os.ReadFile(filepath.Join(folder, "next"))
	must(t, err)
	must(t, os.WriteFile(keys, append(old, added...), 0o600))
	hash := released()
	eventually(t, says("its rollout"), func() bool { return rolloutOf(t, r, hash).Hash == hash })
	code, grant := newDevice(t).enrol(t, ctl(t, r, "ticket", "rotated-1"), "")
	if code != 200 || grant.TrustedKeys != string(old)+string(added) {
		t.Errorf("%d %q", code, grant.TrustedKeys)
	}
}
