package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os/user"
	"text/tabwriter"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/fleet"
	"oal/deploy/internal/rollout"
	"oal/deploy/internal/store"
)

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
	o := options{}
	flags := flag.NewFlagSet("ctl "+command, flag.ContinueOnError)
	path := flags.String("config", "", "configuration file of the service (required)")
	tokenFile := flags.String("token-file", "", "file of your own token; default admin_token_file of the configuration")
	flags.StringVar(&o.site, "site", "", "only this site; with ticket: the AP's site")
	flags.StringVar(&o.state, "state", "", "only APs whose latest report is this: applied, rejected, restored, waiting")
	flags.StringVar(&o.reason, "reason", "", "kept in the history; needed by approve, kill, unkill and revoke")
	flags.StringVar(&o.who, "who", userName(), "kept with a kill, beside the user of the token")
	flags.StringVar(&o.policy, "policy", "", "with kill and unkill: of this policy alone; default all of them")
	flags.DurationVar(&o.ttl, "ttl", 24*time.Hour, "how long a ticket can be used")
	flags.BoolVar(&o.emergency, "emergency", false, "with approve: as admin, without a second person")
	flags.IntVar(&o.limit, "limit", 50, "lines of history or audit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	settings, err := config.Load(*path)
	if err != nil {
		return err
	}
	c, err := newClient(settings, *tokenFile, out)
	if err != nil {
		return err
	}
	return c.run(command, id, o)
}

// options of all commands.
type options struct {
	site, state, reason, who, policy string
	ttl                              time.Duration
	limit                            int
	emergency                        bool
}

func (c *client) run(command, id string, o options) error {
	ap, rollout := "/v1/aps/"+url.PathEscape(id), "/v1/rollouts/"+url.PathEscape(id)
	switch command {
	case "fleet":
		return c.fleet(o.site, o.state)
	case "ap":
		return c.raw("GET", ap, nil)
	case "rollouts":
		return c.rollouts()
	case "abort":
		return c.raw("POST", rollout+"/abort", map[string]string{"reason": o.reason})
	case "expand":
		return c.raw("POST", rollout+"/expand", nil)
	case "approve":
		if o.reason == "" {
			return fmt.Errorf("ctl approve needs --reason TEXT")
		}
		if o.emergency {
			return c.raw("POST", rollout+"/approve-in-emergency", map[string]string{"reason": o.reason})
		}
		return c.raw("POST", rollout+"/approve", map[string]string{"reason": o.reason})
	case "kill", "unkill":
		return c.setKill(command, fleet.Target{Scope: id, Policy: o.policy}, o.who, o.reason)
	case "kills":
		return c.kills()
	case "ticket":
		return c.ticket(id, o.site, o.ttl)
	case "tickets":
		return c.tickets()
	case "withdraw":
		return c.raw("DELETE", "/v1/tickets/"+url.PathEscape(id), nil)
	case "revoke", "restore":
		if command == "revoke" && o.reason == "" {
			return fmt.Errorf("ctl revoke needs --reason TEXT")
		}
		var answer json.RawMessage
		if err := c.call("POST", ap+"/"+command, map[string]string{"reason": o.reason}, &answer); err != nil {
			return err
		}
		return errors.Join(c.print(answer), c.unstored(answer))
	case "access":
		return c.access()
	case "audit":
		return c.audit(o.limit)
	case "history":
		return c.history(o.limit)
	case "backup":
		return c.backup(id)
	}
	return fmt.Errorf("no such command: ctl %s; there are %s", command, commands)
}

const commands = "fleet, ap, rollouts, abort, expand, approve, kill, unkill, kills, ticket, tickets, withdraw, " +
	"revoke, restore, access, audit, history and backup"

// needs is what a command is given first.
var needs = map[string]string{"ap": "an id", "abort": "an id", "expand": "an id", "approve": "an id",
	"kill": scopes, "unkill": scopes,
	"ticket":   "an AP's id",
	"withdraw": "the id of a ticket", "revoke": "an AP's id", "restore": "an AP's id", "backup": "a file to write"}

const scopes = "a scope: fleet, site/SITE or ap/AP_ID"

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// setKill turns the kill switch.
func (c *client) setKill(command string, t fleet.Target, who, reason string) error {
	if err := t.Check(); err != nil {
		return err
	}
	if reason == "" {
		return fmt.Errorf("ctl %s needs --reason TEXT", command)
	}
	path, query := "/v1/control/kill/"+t.Scope, url.Values{}
	if t.Policy != "" {
		query.Set("policy", t.Policy)
	}
	if command == "kill" {
		var answer json.RawMessage
		body := map[string]string{"who": who, "reason": reason}
		if err := c.call("PUT", path+"?"+query.Encode(), body, &answer); err != nil {
			return err
		}
		return errors.Join(c.print(answer), c.unstored(answer))
	}
	query.Set("who", who)
	query.Set("reason", reason)
	return c.raw("DELETE", path+"?"+query.Encode(), nil)
}

func (c *client) kills() error {
	var answer struct {
		Kills []struct {
			fleet.Kill
			fleet.KillCounts
			Stored bool
		}
		StaleSinceUS int64 `json:"stale_since_us"`
	}
	if err := c.call("GET", "/v1/control/kill", nil, &answer); err != nil {
		return err
	}
	if err := c.stale(answer.StaleSinceUS); err != nil {
		return err
	}
	if len(answer.Kills) == 0 {
		_, err := fmt.Fprintln(c.out, "nothing is switched off")
		return err
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "OFF\tSINCE\tWHO\tFOR\tREASON\tAPS\tCONNECTED\tHEARD\tSTORED")
	for _, k := range answer.Kills {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%t\n", k.Target, ago(k.SinceUS), k.Who, k.Note, k.Reason,
			k.APs, k.Connected, k.Heard, k.Stored)
	}
	return w.Flush()
}

// raw prints the answer as JSON.
func (c *client) raw(method, path string, body any) error {
	var answer json.RawMessage
	if err := c.call(method, path, body, &answer); err != nil {
		return err
	}
	return c.print(answer)
}

// stale says that what follows is from memory.
func (c *client) stale(sinceUS int64) error {
	if sinceUS == 0 {
		return nil
	}
	_, err := fmt.Fprintf(c.out, "stale since %s: the store does not answer; this is what the replica knows\n",
		time.UnixMicro(sinceUS).Format(time.DateTime))
	return err
}

// unstored says that what was asked for is in force at one replica alone, if the answer has it so.
func (c *client) unstored(answer json.RawMessage) error {
	var is struct{ Stored bool }
	if err := json.Unmarshal(answer, &is); err != nil || is.Stored {
		return err
	}
	_, err := fmt.Fprintln(c.out, "not stored yet: in force at this replica, and gone with its process. It is stored, "+
		"and told to the other replicas, when the store answers again; ask each of them to have it at once")
	return err
}

func (c *client) print(answer json.RawMessage) error {
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, answer, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.out, pretty.String())
	return err
}

// fleet prints a line for each AP, and one for each policy other than rwnd-fair that it has or should have.
func (c *client) fleet(site, state string) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "AP\tSITE\tSLOT\tMODEL\tVERSION\tDESIRED\tAPPLIED\tSTATE\tREASON\tCONNECTED\tSEEN\tPOLICY")
	line := func(a *fleet.View, policy string, want fleet.Wanted, has fleet.Held) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%.12s\t%.12s\t%s\t%s\t%t\t%s\t%s\n", a.ID, a.Site, want.Slot, want.Model,
			want.Version, want.Desired, has.Applied, has.State, has.Reason, a.Connected, ago(a.LastSeenUS), policy)
	}
	for after, more := "", true; more; more = after != "" {
		var page struct {
			APs  []fleet.View
			Next string
		}
		query := url.Values{"after": {after}, "limit": {"1000"}, "site": {site}, "state": {state}}
		if err := c.call("GET", "/v1/fleet?"+query.Encode(), nil, &page); err != nil {
			return err
		}
		for i := range page.APs {
			a := &page.APs[i]
			line(a, "", a.Wanted, a.Held)
			for _, p := range a.Policies {
				line(a, p.Policy, p.Wanted, p.Held)
			}
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
	fmt.Fprintln(w, "ID\tSLOT\tSCOPE\tMODEL\tVERSION\tSTEP\tSHARE\tAPS\tAPPLIED\tREJECTED\tSTARTED\tPOLICY\tDETAIL")
	for _, r := range answer.Rollouts {
		share := fmt.Sprintf("%g", r.Share)
		if r.All {
			share = "all"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\n", r.ID, r.Slot, r.Scope, r.Model,
			r.Version, r.Step, share, r.APs, r.Applied, r.Rejected, ago(r.StartedUS), r.Policy, r.Detail)
	}
	return w.Flush()
}

func (c *client) history(limit int) error {
	var answer struct{ Entries []store.Entry }
	if err := c.call("GET", fmt.Sprintf("/v1/history?limit=%d", limit), nil, &answer); err != nil {
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
