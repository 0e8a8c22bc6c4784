package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/user"
	"text/tabwriter"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/fleet"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/store"
)

// client of the admin interface.
type client struct {
	base, token string
	out         io.Writer
}

func ctl(args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("ctl needs a command: %s", commands)
	}
	command, args := args[0], args[1:]
	var id string
	if what := needs[command]; what != "" {
		if len(args) == 0 || args[0] == "" || args[0][0] == '-' {
			return fmt.Errorf("ctl %s needs %s", command, what)
		}
		id, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("ctl "+command, flag.ContinueOnError)
	path := flags.String("config", "", "configuration file of the service (required)")
	site := flags.String("site", "", "only this site")
	state := flags.String("state", "", "only APs whose latest report is this: applied, rejected, restored, waiting")
	reason := flags.String("reason", "", "kept in the history; needed by kill and unkill")
	who := flags.String("who", userName(), "kept with a kill, and in the history")
	if err := flags.Parse(args); err != nil {
		return err
	}
	settings, err := config.Load(*path)
	if err != nil {
		return err
	}
	token, err := config.Secret(settings.AdminTokenFile)
	if err != nil {
		return err
	}
	c := &client{"http://" + settings.AdminListen, token, out}
	switch command {
	case "fleet":
		return c.fleet(*site, *state)
	case "ap":
		return c.raw("GET", "/v1/aps/"+url.PathEscape(id), nil)
	case "rollouts":
		return c.rollouts()
	case "abort":
		return c.raw("POST", "/v1/rollouts/"+url.PathEscape(id)+"/abort", map[string]string{"reason": *reason})
	case "expand":
		return c.raw("POST", "/v1/rollouts/"+url.PathEscape(id)+"/expand", nil)
	case "kill", "unkill":
		return c.turn(command, id, *who, *reason)
	case "kills":
		return c.kills()
	case "history":
		return c.history()
	}
	return fmt.Errorf("no such command: ctl %s; there are %s", command, commands)
}

const commands = "fleet, ap, rollouts, abort, expand, kill, unkill, kills and history"

// needs is what a command is told first.
var needs = map[string]string{"ap": "an id", "abort": "an id", "expand": "an id", "kill": scopes, "unkill": scopes}

const scopes = "a scope: fleet, site/SITE or ap/AP_ID"

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

func (c *client) call(method, path string, body, answer any) error {
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, c.base+path, payload)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := (&http.Client{Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		return fmt.Errorf("the service does not answer: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var failure struct{ Error string }
		_ = json.NewDecoder(response.Body).Decode(&failure)
		return fmt.Errorf("%s: %s", response.Status, failure.Error)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// turn turns the kill switch.
func (c *client) turn(command, scope, who, reason string) error {
	if err := fleet.CheckScope(scope); err != nil {
		return err
	}
	if who == "" || reason == "" {
		return fmt.Errorf("ctl %s needs --reason TEXT and --who NAME", command)
	}
	path := "/v1/control/kill/" + scope
	if command == "kill" {
		return c.raw("PUT", path, map[string]string{"who": who, "reason": reason})
	}
	return c.raw("DELETE", path+"?"+url.Values{"who": {who}, "reason": {reason}}.Encode(), nil)
}

func (c *client) kills() error {
	var answer struct {
		Kills []struct {
			fleet.Kill
			fleet.KillCounts
		}
	}
	if err := c.call("GET", "/v1/control/kill", nil, &answer); err != nil {
		return err
	}
	if len(answer.Kills) == 0 {
		_, err := fmt.Fprintln(c.out, "nothing is switched off")
		return err
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "OFF\tSINCE\tWHO\tREASON\tAPS\tCONNECTED\tHEARD")
	for _, k := range answer.Kills {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\n", k.Scope, ago(k.SinceUS), k.Who, k.Reason, k.APs, k.Connected, k.Heard)
	}
	return w.Flush()
}

// raw prints the answer as JSON.
func (c *client) raw(method, path string, body any) error {
	var answer json.RawMessage
	if err := c.call(method, path, body, &answer); err != nil {
		return err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, answer, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.out, pretty.String())
	return err
}

func (c *client) fleet(site, state string) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AP\tSITE\tSLOT\tMODEL\tVERSION\tDESIRED\tAPPLIED\tSTATE\tREASON\tCONNECTED\tSEEN")
	for after, more := "", true; more; more = after != "" {
		var page struct {
			APs  []fleet.View
			Next string
		}
		query := url.Values{"after": {after}, "limit": {"1000"}, "site": {site}, "state": {state}}
		if err := c.call("GET", "/v1/fleet?"+query.Encode(), nil, &page); err != nil {
			return err
		}
		for _, a := range page.APs {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%.12s\t%.12s\t%s\t%s\t%t\t%s\n", a.ID, a.Site, a.Slot, a.Model, a.Version, a.Desired, a.Applied,
				a.State, a.Reason, a.Connected, ago(a.LastSeenUS))
		}
		after = page.Next
	}
	return w.Flush()
}

func (c *client) rollouts() error {
	var answer struct{ Rollouts []rollout.Rollout }
	if err := c.call("GET", "/v1/rollouts", nil, &answer); err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSLOT\tSCOPE\tMODEL\tVERSION\tSTEP\tSHARE\tAPS\tAPPLIED\tREJECTED\tSTARTED\tDETAIL")
	for _, r := range answer.Rollouts {
		share := fmt.Sprintf("%g", r.Share)
		if r.All {
			share = "all"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", r.ID, r.Slot, r.Scope, r.Model, r.Version, r.Step, share, r.APs,
			r.Applied, r.Rejected, ago(r.StartedUS), r.Detail)
	}
	return w.Flush()
}

func (c *client) history() error {
	var answer struct{ Entries []store.Entry }
	if err := c.call("GET", "/v1/history?limit=50", nil, &answer); err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tKIND\tWHAT\tDETAIL")
	for _, e := range answer.Entries {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", time.UnixMicro(e.TSUS).Format(time.DateTime), e.Kind, e.Key, e.Detail)
	}
	return w.Flush()
}

func ago(us int64) string {
	if us == 0 {
		return "never"
	}
	return time.Since(time.UnixMicro(us)).Truncate(time.Second).String() + " ago"
}
