package api

import (
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/config"
)

// A request that promises more than comes is answered, and its connection ends: it waits for nothing for ever.
func TestABodyThatNeverComes(t *testing.T) {
	x := start(t, config.Limits{RequestsPerS: 1000, Burst: 1000})
	server := New(x.server.Parts)
	server.bodyTimeout = 50 * time.Millisecond
	address, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop(t.Context())
	cert, err := x.authority.Issue("a", "ap")
	if err != nil {
		t.Fatal(err)
	}
	report := fmt.Sprintf(`{"bundle": "%s", "state": "applied"}`, strings.Repeat("a", 64))
	for name, c := range map[string]struct {
		line, length, body string
		code               int
	}{
		"a poll with a body":     {"GET /v1/aps/a/bundle", "Content-Length: 10", "", 400},
		"a chunked poll":         {"GET /v1/aps/a/bundle", "Transfer-Encoding: chunked", "", 400},
		"a report cut off":       {"POST /v1/aps/a/status", "Content-Length: 999", "{", 400},
		"a report, and the rest": {"POST /v1/aps/a/status", "Content-Length: 999", report, 204},
		"a report of another AP": {"POST /v1/aps/b/status", "Content-Length: 999", "{", 403},
	} {
		conn, err := tls.Dial("tcp", address.String(), &tls.Config{RootCAs: x.authority.Pool(), ServerName: "localhost",
			Certificates: []tls.Certificate{cert}})
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n%s", c.line, c.length, c.body); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(got), fmt.Sprint("HTTP/1.1 ", c.code)) {
			t.Errorf("%s: %v, %.40q", name, err, got)
		}
		conn.Close()
	}
	if h := server.http; h.ReadHeaderTimeout == 0 || h.IdleTimeout == 0 || h.WriteTimeout < maxWait {
		t.Errorf("a listener without its times: %+v", h)
	}
}
