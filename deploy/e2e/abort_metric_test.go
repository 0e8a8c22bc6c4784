package e2e

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/clickhouse"
	"oal/deploy/internal/config"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
)

// predict inserts n predictions of a bundle, 10 µs apart, as the stream job does.
func predict(t *testing.T, ap, site, hash string, fromUS int64, n int, predicted, now, truth string,
	congestedPermille int) {
	t.Helper()
	predictOf(t, "rwnd-fair", ap, site, hash, fromUS, n, predicted, now, truth, congestedPermille)
}

func predictOf(t *testing.T, policy, ap, site, hash string, fromUS int64, n int, predicted, now, truth string,
	congestedPermille int) {
	t.Helper()
	var rows strings.Builder
	for i := range n {
		fmt.Fprintf(&rows, "('%s', '%s', fromUnixTimestamp64Micro(%d), %d, '%s', %d, '%s', '%s', 1, '%s')", ap, site,
			fromUS+int64(i)*10, bundle.ID(hash), predicted, congestedPermille, now, truth, policy)
		if i < n-1 {
			rows.WriteString(", ")
		}
	}
	admin := broker.ClickHouse("admin")
	password, err := config.Secret(admin.PasswordFile)
	must(t, err)
	request, err := http.NewRequest("POST", admin.URL+"/?"+url.Values{"database": {"oal"}}.Encode(),
		strings.NewReader("INSERT INTO prediction (ap_id, site, ts, bundle, predicted, congested_permille, class_now,"+
			" class, complete, policy) VALUES "+rows.String()))
	must(t, err)
	request.Header.Set("X-ClickHouse-User", "admin")
	request.Header.Set("X-ClickHouse-Key", password)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); response.StatusCode != 200 {
		t.Fatalf("%s", text)
	}
}

// Each metric over predictions of which the answer is plain.
func TestMetrics(t *testing.T) {
	t.Parallel()
	now := time.Now().UnixMicro()
	r := &rollout.Rollout{Hash: strings.Repeat("1f", 32), Scope: "site/lab", StartedUS: now}
	rest := strings.Repeat("2e", 32)
	client := clickhouse.New(*broker.ClickHouse("analyst"))
	measure := func(metric string) rollout.Measure {
		asked := *r
		asked.Metric = metric
		return client.Measure(context.Background(), &asked)
	}
	predict(t, "m-1", "lab", r.Hash, now+1000, 40, "Good", "Good", "Good", 0)
	if m := measure("brier_rise"); m.Value != nil || !strings.Contains(m.Why, "too few predictions") {
		t.Errorf("%+v", m)
	}
	predict(t, "m-1", "lab", r.Hash, now+2000, 60, "Poor", "Good", "Poor", 500) // onsets that it saw coming
	predict(t, "m-1", "lab", r.Hash, now+3000, 40, "Good", "Good", "Poor", 0)   // and some that it did not
	predict(t, "m-1", "lab", r.Hash, now-5000, 99, "Bad", "Good", "Good", 1000) // before the rollout: not counted
	predict(t, "m-1", "lab", rest, now-9000, 100, "Good", "Good", "Good", 0)    // the rest
	predict(t, "m-2", "lab", rest, now+1000, 80, "Bad", "Acceptable", "Bad", 1000)
	predict(t, "m-2", "lab", rest, now+4000, 20, "Good", "Good", "Bad", 0)
	another := strings.Repeat("3d", 32) // a bundle of another policy: nothing to compare with
	predictOf(t, "example", "m-2", "lab", another, now+1000, 500, "Bad", "Good", "Bad", 1000)
	for metric, want := range map[string]float64{
		"onset_recall_drop":   0.8 - 0.6,
		"macro_accuracy_drop": 1 - 1,                           // Good is the only class that came true for both
		"brier_rise":          (60*0.25+40)/140.0 - 20.0/200.0, // 60 half right, 40 wrong; 20 wrong
	} {
		m := measure(metric)
		if m.Value == nil || math.Abs(*m.Value-want) > 1e-9 {
			t.Errorf("%s: %s, want %g", metric, show(m), want)
		}
	}
	r.Scope = "site/elsewhere"
	if m := measure("brier_rise"); m.Value != nil {
		t.Errorf("predictions of another site were counted: %s", show(m))
	}
}

func show(m rollout.Measure) string {
	if m.Value == nil {
		return m.Why
	}
	return fmt.Sprint(*m.Value)
}

// A canary whose predictions turn out worse than the rest's is aborted.
func TestAbortByMetric(t *testing.T) {
	t.Parallel()
	r := startWith(t, config.Store{Path: filepath.Join(t.TempDir(), "state.db")}, broker.ClickHouse("analyst"))
	f := connect(t, r.Config.APListen, "metric", "m", 4)
	defer withdraw(t, "champion/site/m")
	first := send(t, release.Champion, "site/m", 1, nil)
	eventually(t, says("version 1 everywhere"), func() bool { return f.Have(first) == 4 })
	second := send(t, release.Champion, "site/m", 2, func(record map[string]any) {
		record["rollout"] = map[string]any{"share": 0.25, "soak_s": 600, "activate_in_s": 0, "metric": "brier_rise",
			"limit": 0.1}
	}, first)
	eventually(t, says("soaking"), func() bool { return rolloutOf(t, r, second).Step == "soaking" })
	now := time.Now().UnixMicro()
	predict(t, "metric-0001", "m", first, now, 60, "Good", "Good", "Good", 0)
	predict(t, "metric-0002", "m", second, now, 60, "Good", "Good", "Good", 900)
	eventually(t, says("aborted"), func() bool { return rolloutOf(t, r, second).Step == "aborted" })
	eventually(t, says("version 1 everywhere again"), func() bool { return f.Have(first) == 4 })
	if detail := rolloutOf(t, r, second).Detail; !strings.Contains(detail, "brier_rise is 0.81, the limit is 0.1") {
		t.Error(detail)
	}
}
