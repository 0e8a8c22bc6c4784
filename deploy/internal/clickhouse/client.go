// Package clickhouse reads the abort metrics of rollouts.
package clickhouse

import (
	"cmp"
	"context"
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
)

// queryTimeout is for a whole answer; ClickHouse itself gives up at maxExecution.
const queryTimeout = 10 * time.Second

// maxExecution is in seconds, as ClickHouse's setting max_execution_time: a reading is due every five.
const maxExecution = "8"

// Client asks over ClickHouse's HTTP interface.
type Client struct {
	config config.ClickHouse
	http   *http.Client
}

// New is a client; it connects when asked something.
func New(c config.ClickHouse) *Client {
	return &Client{c, &http.Client{Timeout: queryTimeout}}
}

// minBaseline is how far back the rest's predictions reach at least: a short soak would leave too few to compare with.
const minBaseline = 10 * time.Minute

// Measure reads the abort metric of a rollout. That it cannot be read, or that there is too little to say, is in Why.
func (c *Client) Measure(ctx context.Context, r *rollout.Rollout) rollout.Measure {
	site, _ := strings.CutPrefix(r.Scope, "site/")
	if r.Scope == "fleet" {
		site = ""
	}
	baseline := max(minBaseline, time.Duration(r.SoakS*float64(time.Second)))
	value, err := c.row(ctx, rollout.AbortMetrics[r.Metric].Query(), map[string]string{
		"bundle": strconv.FormatUint(bundle.ID(r.Hash), 10), "site": site,
		"policy":  cmp.Or(r.Policy, bundle.RwndFair),
		"started": strconv.FormatInt(r.StartedUS, 10), "since": strconv.FormatInt(r.StartedUS-baseline.Microseconds(),
			10)})
	if err != nil {
		return rollout.Measure{Why: err.Error()}
	}
	return rollout.Measure{Value: &value}
}

func (c *Client) row(ctx context.Context, sql string, parameters map[string]string) (float64, error) {
	query := url.Values{"database": {c.config.Database}, "max_execution_time": {maxExecution},
		"output_format_json_quote_64bit_integers": {"0"},
		"output_format_json_quote_denormals":      {"1"}}
	for name, value := range parameters {
		query.Set("param_"+name, value)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(c.config.URL,
		"/")+"/?"+query.Encode(), strings.NewReader(sql))
	if err != nil {
		return 0, err
	}
	if c.config.User != "" {
		request.Header.Set("X-ClickHouse-User", c.config.User)
	}
	if c.config.PasswordFile != "" {
		password, err := config.Secret(c.config.PasswordFile)
		if err != nil {
			return 0, err
		}
		request.Header.Set("X-ClickHouse-Key", password)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("ClickHouse: %.200s", strings.TrimSpace(string(body)))
	}
	return decode(body)
}

func decode(body []byte) (float64, error) {
	var answer struct {
		Data [][]any `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Data) != 1 || len(answer.Data[0]) != 3 {
		return 0, fmt.Errorf("ClickHouse's answer is not one row of three: %.200s", body)
	}
	members, _ := answer.Data[0][0].(float64)
	rest, _ := answer.Data[0][1].(float64)
	value, isNumber := answer.Data[0][2].(float64)
	switch {
	case members < rollout.MinPredictions || rest < rollout.MinPredictions:
		return 0, fmt.Errorf("too few predictions with a known outcome: %.0f of the bundle, %.0f of the rest, it "+
			"takes %d of each", members, rest, rollout.MinPredictions)
	case !isNumber || math.IsNaN(value) || math.IsInf(value, 0):
		return 0, fmt.Errorf("none of the %.0f predictions was of a case that the metric counts", members)
	}
	return value, nil
}
