package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"oal/deploy/internal/account"
	"oal/deploy/internal/enrol"
	"oal/deploy/internal/store"
)

// ticket prints the one string that the AP is given.
func (c *client) ticket(id, site string, ttl time.Duration) error {
	var answer struct{ Text string }
	if err := c.call("POST", "/v1/tickets", map[string]any{"ap_id": id, "site": site, "ttl_s": int64(ttl.Seconds())},
		&answer); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.out, answer.Text)
	return err
}

func (c *client) tickets() error {
	var answer struct{ Tickets []enrol.Ticket }
	if err := c.call("GET", "/v1/tickets", nil, &answer); err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TICKET\tAP\tSITE\tBY\tMADE\tUNTIL")
	for _, t := range answer.Tickets {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.APID, t.Site, t.Who, ago(t.CreatedUS),
			time.UnixMicro(t.ExpiresUS).Format(time.DateTime))
	}
	return w.Flush()
}

func (c *client) access() error {
	var answer struct {
		Revoked []struct {
			APID    string `json:"ap_id"`
			SinceUS int64  `json:"since_us"`
			Who     string
			Reason  string
			Sent    bool
			Stored  bool
		}
		StaleSinceUS int64 `json:"stale_since_us"`
	}
	if err := c.call("GET", "/v1/access", nil, &answer); err != nil {
		return err
	}
	if err := c.stale(answer.StaleSinceUS); err != nil {
		return err
	}
	if len(answer.Revoked) == 0 {
		_, err := fmt.Fprintln(c.out, "no AP is revoked")
		return err
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "REVOKED\tSINCE\tBY\tREASON\tSTORED\tSTREAM JOBS TOLD")
	for _, r := range answer.Revoked {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%t\t%t\n", r.APID, ago(r.SinceUS), r.Who, r.Reason, r.Stored, r.Sent)
	}
	return w.Flush()
}

func (c *client) audit(limit int) error {
	var answer struct{ Lines []store.Audit }
	if err := c.call("GET", fmt.Sprintf("/v1/audit?limit=%d", limit), nil, &answer); err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tUSER\tROLE\tFROM\tACTION\tTARGET\tANSWER\tNOTE")
	for _, l := range answer.Lines {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", time.UnixMicro(l.TSUS).Format(time.DateTime), l.User, l.Role,
			l.Address, l.Action, l.Target, l.Code, l.Note)
	}
	return w.Flush()
}

// newUser makes a token, and the line of admin_users_file that knows it.
func newUser(args []string, out, secret io.Writer) error {
	if len(args) != 2 || account.ParseRole(args[1]) == account.None {
		return fmt.Errorf("user needs a name and a role: %s", account.RoleNames)
	}
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		return err
	}
	token := base64.RawURLEncoding.EncodeToString(raw)
	sum := sha256.Sum256([]byte(token))
	if _, err := fmt.Fprintf(out, "%s %s %s\n", args[0], args[1], hex.EncodeToString(sum[:])); err != nil {
		return err
	}
	_, err := fmt.Fprintf(secret, "token, shown this once: %s\n", token)
	return err
}
