package clickhouse

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/release"
	"oal/deploy/internal/rollout"
)

// watched is a rollout with two guards; each asks for three APs.
func watched() *rollout.Rollout {
	return &rollout.Rollout{Hash: strings.Repeat("1f", 32), Scope: "fleet", StartedUS: 1e15, Step: rollout.Soaking,
		Plan:   []release.Step{{Share: 0.1, MinAPs: 3, MinOnsets: 5}, {Share: 1}},
		Guards: []release.Guard{{Metric: "brier_rise", Limit: 0.1}, {Metric: "onset_recall_drop", Limit: 0.1}}}
}

// answer is a client of a ClickHouse that says this of metrics and of onsets; asked counts the questions.
func answer(t *testing.T, code int, metric, onsets string) (c *Client, asked *int) {
	t.Helper()
	asked = new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked++
		sql, _ := io.ReadAll(r.Body)
		w.WriteHeader(code)
		said := metric
		if strings.Contains(string(sql), "toStartOfInterval") {
			said = onsets
		}
		_, _ = io.WriteString(w, said)
	}))
	t.Cleanup(server.Close)
	c, err := New(config.ClickHouse{URL: server.URL, Database: "oal"})
	if err != nil {
		t.Fatal(err)
	}
	return c, asked
}

func row(cells string) string { return `{"data": [[` + cells + `]]}` }

func TestMeasure(t *testing.T) {
	c, asked := answer(t, 200, row(`3, 3000, 1, 3000, 0.25`), row(`7`))
	m := c.Measure(t.Context(), watched())
	if *asked != 3 || m.Onsets != 7 || m.OnsetsWhy != "" || len(m.Readings) != 2 {
		t.Fatalf("%d questions, %+v", *asked, m)
	}
	for name, reading := range m.Readings {
		if reading.Value == nil || *reading.Value != 0.25 {
			t.Errorf("%s: %+v", name, reading)
		}
	}
}

// A server is believed when the file names its authority, and else not.
func TestTheServersCertificateIsChecked(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, row(`3, 3000, 1, 3000, 0.25`))
	}))
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	file := filepath.Join(t.TempDir(), "ca.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for ca, believed := range map[string]bool{file: true, "": false} {
		c, err := New(config.ClickHouse{URL: server.URL, Database: "oal", CAFile: ca})
		if err != nil {
			t.Fatal(err)
		}
		reading := c.Measure(t.Context(), watched()).Readings["brier_rise"]
		if believed != (reading.Value != nil) || !believed && !strings.Contains(reading.Why, "x509") {
			t.Errorf("ca_file %q: %+v", ca, reading)
		}
	}
	_, err := New(config.ClickHouse{URL: server.URL, CAFile: "nowhere"})
	if err == nil || !strings.Contains(err.Error(), "clickhouse.ca_file") {
		t.Error(err)
	}
}

// What is not there is no zero: each says why it cannot be read.
func TestWhatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct{ metric, why string }{
		"too few APs":         {row(`2, 9000, 1, 3000, 0.1`), "of 2 APs with the bundle, it takes 3000 of 3"},
		"too few predictions": {row(`3, 2999, 1, 3000, 0.1`), "too little: 2999 predictions"},
		"nobody else":         {row(`3, 3000, 0, 0, 0.1`), "too little to compare with: 0 predictions"},
		"no case of it":       {row(`3, 3000, 1, 3000, "nan"`), "none of the 3000 predictions"},
		"a null":              {row(`3, 3000, 1, 3000, null`), "none of the 3000 predictions"},
		"other columns":       {row(`0.1`), "not one row of five numbers"},
		"two rows":            {`{"data": [[1], [2]]}`, "not one row"},
		"no JSON":             {`Ok.`, "not one row"},
	} {
		client, _ := answer(t, 200, c.metric, row(`"nan"`))
		m := client.Measure(t.Context(), watched())
		for _, reading := range m.Readings {
			if reading.Value != nil || !strings.Contains(reading.Why, c.why) {
				t.Errorf("%s: %+v", name, reading)
			}
		}
		if m.OnsetsWhy == "" {
			t.Errorf("%s: onsets are %d", name, m.Onsets)
		}
	}
}

func TestAServiceThatIsAwayIsAskedOnce(t *testing.T) {
	c, asked := answer(t, 503, "shutting down", "")
	m := c.Measure(t.Context(), watched())
	if *asked != 1 || !strings.Contains(m.OnsetsWhy, "shutting down") {
		t.Errorf("%d questions, %+v", *asked, m)
	}
	for name, reading := range m.Readings {
		if reading.Value != nil || !strings.Contains(reading.Why, "shutting down") {
			t.Errorf("%s: %+v", name, reading)
		}
	}
}

// What is compared with what: of a site within it, of the fleet and of a single AP with all the others.
func TestTheRestOfAScope(t *testing.T) {
	client := &Client{now: time.Now}
	for scope, site := range map[string]string{"fleet": "", "site/lab": "lab", "ap/ap-1": ""} {
		r := watched()
		if r.Scope = scope; client.parameters(r)["site"] != site {
			t.Errorf("%s: site is %q", scope, client.parameters(r)["site"])
		}
	}
}
