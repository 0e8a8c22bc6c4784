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

// predict inserts n predictions of a bundle, 1 µs apart, as the stream job does.
func predict(t *testing.T, ap, site, hash string, fromUS int64, n int, predicted, now, truth string,
	congestedPermille int) {
	t.Helper()
	predictOf(t, "rwnd-fair", ap, site, hash, fromUS, n, predicted, now, truth, congestedPermille)
}

func predictOf(t *testing.T, policy, ap, site, hash string, fromUS int64, n int, predicted, now, truth string,
	congestedPermille int) {
	t.Helper()
	insert(t, fmt.Sprintf(`prediction (ap_id, site, ts, bundle, predicted, congested_permille, class_now, class,
		complete, policy) SELECT '%s', '%s', fromUnixTimestamp64Micro(%d + number), %d, '%s', %d, '%s', '%s', 1, '%s'
		FROM numbers(%d)`, ap, site, fromUS, bundle.ID(hash), predicted, congestedPermille, now, truth, policy, n))
}

// insert runs INSERT INTO what, as ClickHouse's administrator.
func insert(t *testing.T, what string) {
	t.Helper()
	admin := broker.ClickHouse("admin")
	password, err := config.Secret(admin.PasswordFile)
	must(t, err)
	request, err := http.NewRequest("POST", admin.URL+"/?"+url.Values{"database": {"oal"}}.Encode(),
		strings.NewReader("INSERT INTO "+what))
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

func meter() *clickhouse.Client {
	client, err := clickhouse.New(*broker.ClickHouse("analyst"))
	if err != nil {
		panic(err) // of a file that it does not name
	}
	return client
}

// measure reads one metric of a rollout.
func measure(r *rollout.Rollout, metric string) rollout.Reading {
	asked := *r
	asked.Guards = []release.Guard{{Metric: metric, Limit: 1}}
	return meter().Measure(context.Background(), &asked).Readings[metric]
}

// Each metric over predictions of which the answer is plain.
func TestRolloutMetrics(t *testing.T) {
	t.Parallel()
	now := time.Now().UnixMicro()
	r := &rollout.Rollout{Hash: strings.Repeat("1f", 32), Scope: "site/lab", StartedUS: now,
		Plan: []release.Step{{Share: 0.5, MinAPs: 1}}}
	rest := strings.Repeat("2e", 32)
	predict(t, "m-1", "lab", r.Hash, now+10000, 1200, "Good", "Good", "Good", 0)
	if m := measure(r, "brier_rise"); m.Value != nil ||
		!strings.Contains(m.Why, "too little: 1200 predictions with a known outcome of 1 APs with the bundle") {
		t.Errorf("%+v", m)
	}
	predict(t, "m-1", "lab", r.Hash, now+20000, 1800, "Poor", "Good", "Poor", 500) // onsets that it saw coming
	predict(t, "m-3", "lab", r.Hash, now+30000, 1200, "Good", "Good", "Poor", 0)   // and some that it did not
	predict(t, "m-1", "lab", r.Hash, now-50000, 2970, "Bad", "Good", "Good", 1000) // before the rollout: not counted
	predict(t, "m-1", "lab", rest, now-90000, 3000, "Good", "Good", "Good", 0)     // the rest
	predict(t, "m-2", "lab", rest, now+10000, 2400, "Bad", "Acceptable", "Bad", 1000)
	predict(t, "m-2", "lab", rest, now+40000, 600, "Good", "Good", "Bad", 0)
	another := strings.Repeat("3d", 32) // a bundle of another policy: nothing to compare with
	predictOf(t, "example", "m-2", "lab", another, now+10000, 15000, "Bad", "Good", "Bad", 1000)
	for metric, want := range map[string]float64{
		"onset_recall_drop":   0.8 - 0.6,
		"macro_accuracy_drop": 1 - 1,                           // Good is the only class that came true for both
		"brier_rise":          (60*0.25+40)/140.0 - 20.0/200.0, // 60 half right, 40 wrong; 20 wrong
	} {
		m := measure(r, metric)
		if m.Value == nil || math.Abs(*m.Value-want) > 1e-9 {
			t.Errorf("%s: %s, want %g", metric, show(m), want)
		}
	}
	r.Plan[0].MinOnsets = 1
	m := meter().Measure(context.Background(), r)
	if m.Onsets < 2 || m.Onsets > 4 { // two APs, within ten seconds, or on both sides of a border
		t.Errorf("%d onsets", m.Onsets)
	}
	r.Plan[0].MinAPs = 3
	if m := measure(r, "brier_rise"); m.Value != nil || !strings.Contains(m.Why, "of 2 APs with the bundle, it takes "+
		"3000 of 3") {
		t.Errorf("two APs are enough for three: %s", show(m))
	}
	r.Scope = "site/elsewhere"
	if m := measure(r, "brier_rise"); m.Value != nil {
		t.Errorf("predictions of another site were counted: %s", show(m))
	}
}

// A bundle that acts on what it foresees, and so prevents it, is not worse than one that only looks on.
func TestRolloutMetricsUnderControl(t *testing.T) {
	t.Parallel()
	now := time.Now().UnixMicro()
	r := &rollout.Rollout{Hash: strings.Repeat("6b", 32), Scope: "site/acts", StartedUS: now, Mode: "enforce",
		Plan: []release.Step{{Share: 0.5, MinAPs: 1, MinOnsets: 1}}}
	rest := strings.Repeat("7c", 32)
	// Both foresee 8 of 10 onsets. The bundle acts on its 800 alarms: nothing came true of them, and they are marked.
	predict(t, "c-1", "acts", r.Hash, now+10000, 3600, "Good", "Good", "Good", 0)
	predict(t, "c-1", "acts", r.Hash, now+20000, 200, "Good", "Good", "Poor", 0)
	insert(t, fmt.Sprintf(`prediction (ap_id, site, ts, bundle, predicted, congested_permille, class_now, class,
		complete, policy, under_control) SELECT 'c-1', 'acts', fromUnixTimestamp64Micro(%d + number), %d, 'Poor', 1000,
		'Good', 'Good', 0, 'rwnd-fair', 'yes' FROM numbers(800)`, now+30000, bundle.ID(r.Hash)))
	predict(t, "c-2", "acts", rest, now+10000, 3600, "Good", "Good", "Good", 0)
	predict(t, "c-2", "acts", rest, now+20000, 200, "Good", "Good", "Poor", 0)
	predict(t, "c-2", "acts", rest, now+30000, 800, "Poor", "Good", "Poor", 1000)
	for _, metric := range []string{"onset_recall_drop", "macro_accuracy_drop", "brier_rise"} {
		if m := measure(r, metric); m.Value == nil || math.Abs(*m.Value) > 1e-9 {
			t.Errorf("%s: %s, want 0: both foresee the same", metric, show(m))
		}
	}
	if m := meter().Measure(context.Background(), r); m.Onsets < 1 {
		t.Errorf("%d onsets: those that it foresaw and kept away count", m.Onsets)
	}
	// One that foresees nothing does not act either, and is worse.
	blind := &rollout.Rollout{Hash: strings.Repeat("8d", 32), Scope: "site/acts", StartedUS: now, Mode: "enforce",
		Plan: r.Plan}
	predict(t, "c-3", "acts", blind.Hash, now+10000, 3600, "Good", "Good", "Good", 0)
	predict(t, "c-3", "acts", blind.Hash, now+20000, 1000, "Good", "Good", "Poor", 0)
	if m := measure(blind, "onset_recall_drop"); m.Value == nil || *m.Value < 0.5 {
		t.Errorf("%s, want .8 and more", show(m))
	}
	if m := measure(blind, "brier_rise"); m.Value == nil || *m.Value < 0.1 {
		t.Errorf("%s, want .16", show(m))
	}
}

// What users get, with the release and without, before it and since.
func TestHarmMetrics(t *testing.T) {
	t.Parallel()
	const minute = int64(60e6)
	started := time.Now().Add(-20*time.Minute).UnixMicro() / minute * minute
	r := &rollout.Rollout{Hash: strings.Repeat("5a", 32), Scope: "site/harm", StartedUS: started, Mode: "enforce",
		Plan: []release.Step{{Share: 0.5, MinAPs: 3}}}
	members, others := "['h-1', 'h-2', 'h-3']", "['h-4', 'h-5', 'h-6']"
	// each AP of a list, each minute of a range: with its number `n` and time `t`
	over := func(aps string, from, minutes int) string {
		return fmt.Sprintf(`(SELECT arrayJoin(%s) AS ap, fromUnixTimestamp(%d + 60 * number) AS at FROM numbers(%d))`,
			aps, started/1e6+int64(60*from), minutes)
	}
	bytes := func(aps string, from, minutes, offered int) {
		insert(t, fmt.Sprintf(`label_1m (ap_id, site, t, tiles, offered_pkts, offered_bytes, lost_bytes)
			SELECT ap, 'harm', at, 60, 100, %d, 1000 FROM `, offered+1000)+over(aps, from, minutes))
	}
	trips := func(aps string, from, minutes, us int) {
		insert(t, fmt.Sprintf(`flow_1m (ap_id, t, flow_id, direction, rtt_down_us_sum, rtt_down_rows)
			SELECT ap, at, 7, 0, 600 * %d, 600 FROM `, us)+over(aps, from, minutes))
	}
	control := func(aps string, reverts int) {
		insert(t, fmt.Sprintf(`control_1m (ap_id, t, boot_id, backend, rows, enforce_rows, guard_reverts,
			guard_reverts_first) SELECT ap, at, 1, 3, 60, 60, %d, 10 FROM `, 10+reverts)+over(aps, 1, 15))
	}
	if m := measure(r, "guard_reverts_rise"); m.Value != nil || !strings.Contains(m.Why, "too little: 0 minutes") {
		t.Errorf("nothing is known, and the guard is quiet: %s", show(m))
	}
	insert(t, fmt.Sprintf(`bundle_status (ap_id, ts, bundle, state)
		SELECT arrayJoin(%s), fromUnixTimestamp64Micro(%d), %d, 1`, members, started+1000, bundle.ID(r.Hash)))
	bytes(members, -20, 20, 60e6)
	bytes(members, 1, 15, 30e6) // half
	trips(members, -20, 20, 20000)
	trips(members, 1, 15, 40000)
	control(members, 3)
	if m := measure(r, "throughput_drop"); m.Value != nil || !strings.Contains(m.Why, "too little to compare with") {
		t.Errorf("there is nobody to compare with: %s", show(m))
	}
	bytes(others, -20, 20, 10e6)
	bytes(others, 1, 15, 9e6) // the hour has become quieter
	bytes("['h-new']", 1, 15, 9e9)
	trips(others, -20, 20, 20000)
	trips(others, 1, 15, 25000)
	want := func(metric string, value float64) {
		t.Helper()
		if m := measure(r, metric); m.Value == nil || math.Abs(*m.Value-value) > 1e-4 {
			t.Errorf("%s: %s, want %g", metric, show(m), value)
		}
	}
	want("throughput_drop", 1-0.5/0.9)
	want("rtt_rise", 2/1.25-1)
	want("guard_reverts_rise", 12) // 3 in 15 minutes, of each
	control(others, 1)
	want("guard_reverts_rise", 8)
	r.Plan[0].MinAPs = 4
	if m := measure(r, "rtt_rise"); m.Value != nil || !strings.Contains(m.Why, "of 3 APs with the bundle") {
		t.Errorf("three APs are enough for four: %s", show(m))
	}
	r.Mode = "shadow"
	if watched := r.Watched(); len(watched) != 0 {
		t.Errorf("a bundle that acts on nobody's traffic is watched for %v", watched)
	}
}

func show(m rollout.Reading) string {
	if m.Value == nil {
		return m.Why
	}
	return fmt.Sprint(*m.Value)
}

// A canary whose predictions turn out worse than the rest's is aborted.
func TestAbortByRolloutMetric(t *testing.T) {
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
	predict(t, "metric-0001", "m", first, now, 3000, "Good", "Good", "Good", 0)
	predict(t, "metric-0002", "m", second, now, 3000, "Good", "Good", "Good", 900)
	eventually(t, says("aborted"), func() bool { return rolloutOf(t, r, second).Step == "aborted" })
	eventually(t, says("version 1 everywhere again"), func() bool { return f.Have(first) == 4 })
	if detail := rolloutOf(t, r, second).Detail; !strings.Contains(detail, "brier_rise is 0.81, the limit is 0.1") {
		t.Error(detail)
	}
}
