package neighbour

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"oal/deploy/internal/metric"
)

type fixture struct {
	*Table
	metrics *metric.Set
	now     time.Time
}

func start() *fixture {
	x := &fixture{metrics: metric.New(), now: time.UnixMicro(1790000000000000)}
	x.Table = New(x.metrics, func() time.Time { return x.now }, slog.New(slog.DiscardHandler))
	return x
}

func (x *fixture) take(key, value string) { x.Take(key, []byte(value)) }

func (x *fixture) ids(id string, frequencyMHz uint16) string {
	body, _, known := x.For(id, "lab", frequencyMHz, "")
	if !known {
		return "unknown"
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return err.Error()
	}
	var ids []string
	for _, ap := range a.APs {
		ids = append(ids, ap.ID)
	}
	return strings.Join(ids, " ")
}

func record(aps ...string) string {
	var list []string
	for _, ap := range aps {
		list = append(list, fmt.Sprintf(
			`{"ap_id":%q,"stations":2,"tx_kbps":5,"tx_airtime_permille":6,"busy_permille":7,"loss_permille":8,`+
				`"backlog_bytes":9}`, ap))
	}
	return `{"site":"lab","frequency_mhz":5180,"t_us":1789999999000000,"more":[],"aps":[` + strings.Join(list, ",") +
		`]}`
}

func TestAnAPIsToldOfTheOthers(t *testing.T) {
	x := start()
	x.take("lab/5180", record("b", "a", "c"))
	body, tag, _ := x.For("a", "lab", 5180, "")
	want := `{"site":"lab","frequency_mhz":5180,"t_us":1789999999000000,"aps":[` +
		`{"ap_id":"b","stations":2,"tx_kbps":5,"tx_airtime_permille":6,"busy_permille":7,"loss_permille":8,` +
		`"backlog_bytes":9,"age_ms":1000},` +
		`{"ap_id":"c","stations":2,"tx_kbps":5,"tx_airtime_permille":6,"busy_permille":7,"loss_permille":8,` +
		`"backlog_bytes":9,"age_ms":1000}]}`
	if string(body) != want {
		t.Errorf("%s", body)
	}
	if body, again, known := x.For("a", "lab", 5180, tag); body != nil || again != tag || !known {
		t.Error("an AP that has it is sent it again")
	}
	if x.ids("a", 2412) != "unknown" || x.ids("d", 5180) != "b a c" {
		t.Error("another channel, another AP")
	}
	x.take("lab/5180", record("c", "a"))
	if body, next, _ := x.For("a", "lab", 5180, tag); body == nil || next == tag || x.ids("a", 5180) != "c" {
		t.Error("news is not told")
	}
	x.now = x.now.Add(staleAfter)
	if x.ids("a", 5180) != "unknown" {
		t.Error("figures of a platform that stands still are told")
	}
	x.now = x.now.Add(-2 * staleAfter) // an AP's time cannot be before the record's
	if body, _, _ := x.For("a", "lab", 5180, ""); !strings.Contains(string(body), `"age_ms":0`) {
		t.Errorf("%s", body)
	}
	x.Take("lab/5180", nil)
	if x.ids("a", 5180) != "unknown" || testutil.ToFloat64(x.metrics.Channels) != 0 {
		t.Error("it was withdrawn")
	}
}

func TestTheLargestAnswerIsSmall(t *testing.T) {
	x := start()
	r := Record{Site: strings.Repeat("s", 64), FrequencyMHz: math.MaxUint16, TUS: x.now.Add(-staleAfter).UnixMicro()}
	for i := range maxAPs {
		r.APs = append(r.APs, AP{fmt.Sprintf("%064d", i), math.MaxUint16, math.MaxUint32, math.MaxUint16,
			math.MaxUint16, math.MaxUint16, math.MaxUint32})
	}
	value, _ := json.Marshal(&r)
	x.Take(Key(r.Site, r.FrequencyMHz), value)
	body, _, known := x.For("me", r.Site, r.FrequencyMHz, "")
	if !known || len(body) > MaxAnswerBytes || strings.Count(string(body), "ap_id") != MaxNeighbours {
		t.Errorf("%d bytes", len(body))
	}
}

func TestDamagedRecordsChangeNothing(t *testing.T) {
	x := start()
	x.take("lab/5180", record("a", "b"))
	good := record("c", "d")
	bad := map[string]string{"": "lab/5180", "{": "lab/5180", "[]": "lab/5180", "null": "lab/5180", good: "lab/2412",
		record(make([]string, maxAPs+1)...):                                              "lab/5180",
		strings.Replace(good, `"t_us":1789999999000000`, `"t_us":0`, 1):                  "lab/5180",
		strings.Replace(good, `"stations":2`, `"stations":-1`, 1):                        "lab/5180",
		strings.Replace(good, `"stations":2`, `"stations":65536`, 1):                     "lab/5180",
		strings.Replace(good, `"tx_kbps":5`, `"tx_kbps":"5"`, 1):                         "lab/5180",
		strings.Replace(good, `"site":"lab"`, `"site":"l/b"`, 1):                         "l/b/5180",
		strings.Replace(good, `"frequency_mhz":5180`, `"frequency_mhz":0`, 1):            "lab/0",
		strings.Replace(good, `"more":[]`, `"more":"`+strings.Repeat("x", 70000)+`"`, 1): "lab/5180"}
	for value, key := range bad {
		x.take(key, value)
	}
	if n := testutil.ToFloat64(x.metrics.Neighbours.WithLabelValues("refused")); int(n) != len(bad) {
		t.Errorf("%g of %d are refused", n, len(bad))
	}
	if got := x.ids("a", 5180); got != "b" {
		t.Error(got)
	}
	x.take("lab/5180", record("a", "no name", "", "e", "e", strings.Repeat("x", 65)))
	if got := x.ids("a", 5180); got != "e" {
		t.Errorf("who cannot be an AP of ours, or is there twice: %s", got)
	}
}
