package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/issue"
	"oal/deploy/internal/platform"
)

// topics in the order of the contract: a MAC is good for one.
var topics = []string{"ap.samples.v1", "ap.packets.v1", "ap.events.v1"}

// hut is the real exporter of an AP, or of a host, with nothing but a configuration.
type hut struct{ folder, config, id, site, program string }

func (h hut) file(name string) string { return filepath.Join(h.folder, name) }

func newHut(t *testing.T, r *platform.Replica, id, site string) hut {
	t.Helper()
	return newExporter(t, r, id, site, "ap-exporter", fmt.Sprintf("config replay\n\toption file '%s'\n",
		filepath.Join(platform.Folder(), "..", "lab", "captures", "congested.oalcap")))
}

// newHost is a server: its rows are of this machine's own connections, those of the tests.
func newHost(t *testing.T, r *platform.Replica, id, site string) hut {
	t.Helper()
	return newExporter(t, r, id, site, "host/oal-host", "config tcp\n\toption loopback '1'\n")
}

func newExporter(t *testing.T, r *platform.Replica, id, site, program, collector string) hut {
	t.Helper()
	h := hut{folder: t.TempDir(), id: id, site: site, program: program}
	h.config = h.file("config")
	must(t, os.WriteFile(h.config, fmt.Appendf(nil, `config exporter
	option ap_id '%[1]s'
	option site '%[2]s'
	option status_socket '%[3]s/socket'
%[4]sconfig kafka
	option brokers '%[5]s'
	option ca '%[3]s/ca.pem'
	option certificate '%[3]s/ap.pem'
	option key '%[3]s/ap.key'
	option mac_keys '%[3]s/mac-keys'
config agent
	option url 'https://%[6]s'
	option ca '%[3]s/ca.pem'
	option cert '%[3]s/ap.pem'
	option key '%[3]s/ap.key'
	option trusted_keys '%[3]s/trusted-keys'
	option retry_max_s '1'
`, id, site, h.folder, collector, broker.Bootstrap, r.Config.APListen), 0o600))
	return h
}

func (h hut) command(args ...string) *exec.Cmd {
	return exec.Command(filepath.Join(platform.Folder(), "..", "ap-exporter", "build", h.program), args...)
}

// enrol runs the command with the ticket on its standard input.
func (h hut) enrol(ticket string) (string, error) {
	cmd := h.command("enrol", "-c", h.config, "-")
	cmd.Stdin = strings.NewReader(ticket + "\n")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (h hut) start(t *testing.T) {
	t.Helper()
	cmd, log := h.command("run", "-c", h.config), &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("log of the exporter:\n%s", log)
		}
	})
}

type hutStatus struct {
	Agent struct {
		Polls      int64
		PollErrors int64 `json:"poll_errors"`
		APs        []struct {
			Killed         bool
			KilledPolicies string `json:"killed_policies"`
			Policies       map[string]struct{ Bundle string }
			Certificate    struct {
				DaysLeft        int64 `json:"days_left"`
				Renewed, Errors int64
				LastError       string `json:"last_error"`
			}
		}
	}
	Sinks struct{ Kafka struct{ Delivered int64 } }
}

func (h hut) status() (s hutStatus) {
	if out, err := h.command("status", "-c", h.config).Output(); err == nil {
		_ = json.Unmarshal(out, &s)
	}
	return s
}

// signed counts records of the running AP at a topic of Kafka, the first few: those whose header is the MAC of its key,
// and others.
func (h hut) signed(t *testing.T, masters issue.Masters, topic string) (good, bad int) {
	t.Helper()
	domain := append([]byte("oal batch v1\x00"), byte(slices.Index(topics, topic)))
	client, err := broker.Read(topic)
	must(t, err)
	defer client.Close()
	for deadline := time.Now().Add(40 * time.Second); good+bad < 20 && time.Now().Before(deadline); {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		fetches := client.PollRecords(ctx, 1000)
		cancel()
		for _, record := range fetches.Records() {
			if string(record.Key) != h.id {
				continue
			}
			ok := false
			for _, header := range record.Headers {
				if header.Key == "oal-mac" && len(header.Value) == 17 {
					sum := hmac.New(sha256.New, issue.BatchKey(masters[header.Value[0]], h.id, h.site))
					sum.Write(append(slices.Clone(domain), record.Value...))
					ok = hmac.Equal(sum.Sum(nil)[:16], header.Value[1:])
				}
			}
			if ok {
				good++
			} else {
				bad++
			}
		}
	}
	return good, bad
}

// nearlyOver replaces its certificate by one of the platform's authority with an eleventh of its life left.
func (h hut) nearlyOver(t *testing.T, r *platform.Replica) {
	t.Helper()
	authority, err := tls.LoadX509KeyPair(r.Config.Enrol.CACert, r.Config.Enrol.CAKey)
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore: time.Now().Add(-20 * time.Hour), NotAfter: time.Now().Add(2 * time.Hour),
		Subject:  pkix.Name{Organization: []string{"oal"}, OrganizationalUnit: []string{"ap"}, CommonName: h.id},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	site, err := url.Parse("urn:oal:site:" + h.site)
	must(t, err)
	template.URIs = []*url.URL{site}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, key.Public(), authority.PrivateKey)
	must(t, err)
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Leaf.Raw})...)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	must(t, os.WriteFile(h.file("ap.pem"), chain, 0o600))
	must(t, os.WriteFile(h.file("ap.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

// The exporter enrols with a ticket, polls and writes to Kafka with what it got, signs its batches, and renews its
// certificate while it runs.
func TestExporterEnrolsAndRenews(t *testing.T) {
	t.Parallel()
	r := enrolling(t, config.Store{Path: filepath.Join(t.TempDir(), "state.db")}, keysFile)
	masters, err := issue.ReadMasters(r.Config.Enrol.MACMasters)
	must(t, err)
	h := newHut(t, r, "hut-7", "hut")
	ticket := ctl(t, r, "ticket", h.id, "--site", h.site)
	if out, err := h.enrol(ticket); err != nil || !strings.Contains(out, "AP hut-7 at site hut is enrolled") {
		t.Fatalf("%v %s", err, out)
	}
	before, err := os.ReadFile(h.file("ap.pem"))
	must(t, err)
	if out, err := h.enrol(ticket); err == nil || !strings.Contains(out, "has been used or has lapsed") {
		t.Errorf("the ticket a second time: %v %s", err, out)
	}
	if after, _ := os.ReadFile(h.file("ap.pem")); !bytes.Equal(before, after) {
		t.Error("a refused enrolment changed the certificate")
	}
	h.nearlyOver(t, r)
	h.start(t)
	eventually(t, func() string { return fmt.Sprintf("renewed: %+v", h.status()) }, func() bool {
		s := h.status()
		return len(s.Agent.APs) == 1 && s.Agent.APs[0].Certificate.Renewed == 1 &&
			s.Agent.APs[0].Certificate.DaysLeft >= 28
	})
	at := h.status()
	eventually(t, func() string {
		return fmt.Sprintf("it goes on with the new certificate: %+v, was %+v", h.status(), at)
	}, func() bool {
		s := h.status()
		return s.Sinks.Kafka.Delivered > at.Sinks.Kafka.Delivered+10 && s.Agent.Polls > 0 && s.Agent.PollErrors == 0
	})
	if good, bad := h.signed(t, masters, "ap.samples.v1"); good < 20 || bad > 0 {
		t.Errorf("%d batches with its MAC, %d without", good, bad)
	}
}
