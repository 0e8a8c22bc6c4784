// Package sim is a fleet of simulated APs: real TLS, real long polls, real signature checks; no radio.
package sim

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"oal/deploy/internal/bundle"
)

// AP is one simulated AP: one goroutine, one connection.
type AP struct {
	ID, Site string
	Fleet    *Fleet
	cert     tls.Certificate
	source   net.IP // loopback address that it connects from: each gives another 28,000 ports

	inForce map[string]bundle.Bundle // by policy
	killed  bool                     // control is off
	// killedPolicies are those that are off by themselves, with a space between them
	killedPolicies string
	conn           *tls.Conn
	reader         *bufio.Reader
}

// run polls until the context ends.
func (a *AP) run(ctx context.Context) {
	defer a.close()
	backoff := 200 * time.Millisecond
	for ctx.Err() == nil {
		err := a.poll(ctx)
		if err == nil {
			backoff = 200 * time.Millisecond
			continue
		}
		a.close()
		wait := backoff/2 + rand.N(backoff)
		var later *retryLater
		if errors.As(err, &later) {
			wait = later.after
		} else if ctx.Err() == nil {
			a.Fleet.failed(a.ID, err)
		}
		backoff = min(2*backoff, 10*time.Second)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

type retryLater struct{ after time.Duration }

func (r *retryLater) Error() string { return "sent away for " + r.after.String() }

// poll is one long poll and what follows from its answer.
func (a *AP) poll(ctx context.Context) error {
	if err := a.connect(ctx); err != nil {
		return err
	}
	conn := a.conn // it runs beside the end of this poll, which may have closed the connection
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	request := "GET /v1/aps/" + a.ID + "/bundle HTTP/1.1\r\nHost: push\r\nUser-Agent: ap-exporter/sim\r\nOAL-Site: " +
		a.Site +
		"\r\nPrefer: wait=" + strconv.Itoa(a.Fleet.WaitS) + "\r\n"
	request += "OAL-Control: " + map[bool]string{false: "on", true: "off"}[a.killed] + "\r\n"
	if a.Fleet.ByPolicy {
		request += "OAL-Killed: " + a.killedPolicies + "\r\n"
	}
	request += a.tags()
	response, body, err := a.exchange(request + "\r\n")
	if err != nil {
		return err
	}
	if control := response.Header.Get("OAL-Control"); control != "" && (control == "off") != a.killed {
		a.killed = !a.killed
		a.Fleet.turned(a.ID, a.killed)
	}
	if killed, said := response.Header["Oal-Killed"]; said && killed[0] != a.killedPolicies {
		a.killedPolicies = killed[0]
		a.Fleet.turnedPolicies(a.ID, strings.Fields(a.killedPolicies))
	}
	if policies, said := response.Header["Oal-Policies"]; said {
		a.giveUp(strings.Fields(policies[0]))
	}
	switch response.StatusCode {
	case http.StatusOK:
		return a.take(body, response.Header)
	case http.StatusNotModified, http.StatusNoContent:
		return nil
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return &retryLater{time.Duration(seconds) * time.Second}
	}
	return fmt.Errorf("%s: %s", response.Status, body)
}

// tags say what it has: of rwnd-fair, or of every policy if it knows of several.
func (a *AP) tags() string {
	policies := slices.Sorted(maps.Keys(a.inForce))
	var list []string
	for _, policy := range policies {
		list = append(list, `"`+a.inForce[policy].Hash+`"`)
	}
	lines := ""
	if a.Fleet.Several {
		lines = "OAL-Policies: " + strings.Join(policies, " ") + "\r\n"
	}
	if len(list) > 0 {
		lines += "If-None-Match: " + strings.Join(list, ", ") + "\r\n"
	}
	return lines
}

// giveUp forgets the bundles of all other policies but rwnd-fair's.
func (a *AP) giveUp(but []string) {
	for policy := range a.inForce {
		if policy != bundle.RwndFair && !slices.Contains(but, policy) {
			delete(a.inForce, policy)
			a.Fleet.gaveUp(a.ID, policy)
		}
	}
}

// take checks a bundle as an AP would, as far as an AP without models can, and reports.
func (a *AP) take(signed []byte, header http.Header) error {
	tag, policy := strings.Trim(header.Get("ETag"), `"`), header.Get("OAL-Policy")
	b, err := bundle.Open(signed, a.Fleet.Keys)
	reason := ""
	var refused *bundle.Error
	switch {
	case errors.As(err, &refused):
		reason = refused.Reason
	case b.Hash != tag:
		return fmt.Errorf("ETag %s, the bundle's hash is %s", tag, b.Hash)
	case !b.Reaches(a.ID, a.Site):
		reason = "not_permitted"
	case b.Target != "fleet" && b.Target != "site/"+a.Site && b.Target != "ap/"+a.ID:
		reason = "wrong_target"
	case b.OfPolicy != bundle.RwndFair && !a.Fleet.Several:
		reason = "unsupported_format"
	case b.Serial <= a.inForce[b.OfPolicy].Serial && !slices.Contains(a.inForce[b.OfPolicy].RollbackTo, b.Hash):
		reason = "replayed"
	}
	if reason == "" && a.Fleet.Rejects != nil {
		reason = a.Fleet.Rejects(a.ID, b)
	}
	if reason != "" {
		return a.report(policy, tag, 0, "rejected", reason)
	}
	if at, _ := strconv.ParseInt(header.Get("OAL-Activate-At"), 10, 64); at != 0 {
		if err := a.report(policy, b.Hash, b.Serial, "waiting", "none"); err != nil {
			return err
		}
		time.Sleep(time.Until(time.UnixMicro(at)))
	}
	if a.inForce == nil {
		a.inForce = map[string]bundle.Bundle{}
	}
	a.inForce[b.OfPolicy] = *b
	a.Fleet.applied(a.ID, b)
	return a.report(policy, b.Hash, b.Serial, "applied", "none")
}

// report tells what became of a bundle. policy is empty in an AP that knows of none but rwnd-fair.
func (a *AP) report(policy, hash string, serial int64, state, reason string) error {
	said := map[string]any{"bundle": hash, "serial": serial, "state": state, "reason": reason,
		"ts_us": time.Now().UnixMicro(), "boot_id": "18446744073709551615", "agent": "sim"}
	if policy != "" {
		said["policy"] = policy
	}
	body, err := json.Marshal(said)
	if err != nil {
		return err
	}
	response, answer, err := a.exchange(
		fmt.Sprintf("POST /v1/aps/%s/status HTTP/1.1\r\nHost: push\r\nContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n%s", a.ID, len(body), body))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("status: %s: %s", response.Status, answer)
	}
	return nil
}

func (a *AP) connect(ctx context.Context) error {
	if a.conn != nil {
		return nil
	}
	dialer := net.Dialer{Timeout: 20 * time.Second}
	if a.source != nil {
		dialer.LocalAddr = &net.TCPAddr{IP: a.source}
	}
	plain, err := dialer.DialContext(ctx, "tcp", a.Fleet.Address)
	if err != nil {
		return err
	}
	conn := tls.Client(plain, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.Fleet.Roots, ServerName: "localhost",
		Certificates: []tls.Certificate{a.cert}})
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return err
	}
	a.conn, a.reader = conn, bufio.NewReaderSize(conn, 1024)
	return nil
}

// exchange sends a request and reads the whole answer.
func (a *AP) exchange(request string) (*http.Response, []byte, error) {
	_ = a.conn.SetDeadline(time.Now().Add(time.Duration(a.Fleet.WaitS)*time.Second + 60*time.Second))
	if _, err := io.WriteString(a.conn, request); err != nil {
		return nil, nil, err
	}
	method, _, _ := strings.Cut(request, " ")
	response, err := http.ReadResponse(a.reader, &http.Request{Method: method})
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, bundle.MaxBytes+1))
	return response, body, err
}

func (a *AP) close() {
	if a.conn != nil {
		_ = a.conn.Close()
		a.conn, a.reader = nil, nil
	}
}
