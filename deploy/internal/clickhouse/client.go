// Package clickhouse reads rollout metrics.
package clickhouse

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/config"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/tlsconf"
)

// queryTimeout is for a whole answer; ClickHouse itself gives up at maxExecution.
const queryTimeout = 10 * time.Second

// maxExecution is in seconds, as ClickHouse's setting max_execution_time: six are one reading, due every 15.
const maxExecution = "8"

// Client asks over ClickHouse's HTTP interface.
type Client struct {
	config config.ClickHouse
	http   *http.Client
	now    func() time.Time
}

// New is a client; it connects when asked something.
func New(c config.ClickHouse) (*Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if c.CAFile != "" {
		roots, _, err := tlsconf.Roots("clickhouse.ca_file", c.CAFile)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &Client{c, &http.Client{Timeout: queryTimeout, Transport: transport}, time.Now}, nil
}

const (
	// minBaseline is how far back before a rollout the comparison reaches at least: a short soak leaves too little.
	minBaseline = 30 * time.Minute
	// measureTimeout is for all metrics of a rollout; a reading that took longer would be old when it came.
	measureTimeout = 30 * time.Second
)

// Measure reads what a rollout is watched for. That something cannot be read, or that there is too little to say, is in
// its Why; a service that does not answer is asked once.
func (c *Client) Measure(ctx context.Context, r *rollout.Rollout) rollout.Measure {
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	m := rollout.Measure{Readings: map[string]rollout.Reading{}}
	parameters := c.parameters(r)
	away := ""
	for _, guard := range r.Watched() {
		query, known := rollout.MetricQueries[guard.Metric]
		switch {
		case away != "":
			m.Readings[guard.Metric] = rollout.Reading{Why: away}
		case !known:
			m.Readings[guard.Metric] = rollout.Reading{Why: "this service does not know how"}
		default:
			row, err := c.row(ctx, query.SQL, parameters)
			if err != nil {
				away = err.Error()
				m.Readings[guard.Metric] = rollout.Reading{Why: away}
				continue
			}
			m.Readings[guard.Metric] = readingOf(row, query, r.MinAPs())
		}
	}
	if m.OnsetsWhy = away; away == "" && r.MinOnsets() > 0 {
		row, err := c.row(ctx, rollout.OnsetsQuery, parameters)
		switch {
		case err != nil:
			m.OnsetsWhy = err.Error()
		case len(row) != 1 || math.IsNaN(row[0]):
			m.OnsetsWhy = "ClickHouse's answer is not one number"
		default:
			m.Onsets = int(row[0])
		}
	}
	return m
}

func (c *Client) parameters(r *rollout.Rollout) map[string]string {
	// What has the bundle is compared with the rest of its site; that of one AP, as that of the fleet, with all others.
	site, isSite := strings.CutPrefix(r.Scope, "site/")
	if !isSite {
		site = ""
	}
	since := r.SinceUS()
	baseline := r.StartedUS - max(minBaseline.Microseconds(), c.now().UnixMicro()-since, int64(r.SoakS*1e6))
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return map[string]string{"bundle": strconv.FormatUint(bundle.ID(r.Hash), 10), "site": site,
		"policy": cmp.Or(r.Policy, bundle.RwndFair), "started": number(r.StartedUS), "since": number(since),
		"baseline": number(baseline)}
}

// readingOf says what the row of a metric's query is worth.
func readingOf(row []float64, query rollout.MetricQuery, minAPs int) rollout.Reading {
	if len(row) != 5 {
		return rollout.Reading{Why: "ClickHouse's answer is not one row of five numbers"}
	}
	aps, evidence, restAPs, rest, value := row[0], row[1], row[2], row[3], row[4]
	least := float64(query.Min)
	switch {
	case aps < float64(minAPs) || evidence < least:
		return rollout.Reading{Why: fmt.Sprintf("too little: %.0f %s of %.0f APs with the bundle, it takes %d of %d",
			evidence, query.Unit, aps, query.Min, minAPs)}
	case query.Rest && rest < least:
		return rollout.Reading{Why: fmt.Sprintf("too little to compare with: %.0f %s of %.0f other APs, it takes %d",
			rest, query.Unit, restAPs, query.Min)}
	case math.IsNaN(value) || math.IsInf(value, 0):
		return rollout.Reading{Why: fmt.Sprintf("none of the %.0f %s was of a case that the metric counts", evidence,
			query.Unit)}
	}
	return rollout.Reading{Value: &value}
}

func (c *Client) row(ctx context.Context, sql string, parameters map[string]string) ([]float64, error) {
	query := url.Values{"database": {c.config.Database}, "max_execution_time": {maxExecution},
		"output_format_json_quote_64bit_integers": {"0"},
		"output_format_json_quote_denormals":      {"1"}}
	for name, value := range parameters {
		query.Set("param_"+name, value)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(c.config.URL,
		"/")+"/?"+query.Encode(), strings.NewReader(sql))
	if err != nil {
		return nil, err
	}
	if c.config.User != "" {
		request.Header.Set("X-ClickHouse-User", c.config.User)
	}
	if c.config.PasswordFile != "" {
		password, err := config.Secret(c.config.PasswordFile)
		if err != nil {
			return nil, err
		}
		request.Header.Set("X-ClickHouse-Key", password)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ClickHouse: %.200s", strings.TrimSpace(string(body)))
	}
	return decode(body)
}

// decode reads one row of numbers; those that are none are NaN.
func decode(body []byte) ([]float64, error) {
	var answer struct {
		Data [][]any `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Data) != 1 {
		return nil, fmt.Errorf("ClickHouse's answer is not one row: %.200s", body)
	}
	row := make([]float64, len(answer.Data[0]))
	for i, cell := range answer.Data[0] {
		number, is := cell.(float64)
		if !is {
			number = math.NaN()
		}
		row[i] = number
	}
	return row, nil
}
