package platform

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"

	"oal/deploy/internal/config"
)

// Replica is a process of the push service.
type Replica struct {
	Config *config.Config
	Path   string // of its configuration
	Token  string
	enrol  string // a free address for it
	process
}

// Change writes the configuration again, as it is to be at the next start.
func (r *Replica) Change(change func(c *config.Config)) error {
	change(r.Config)
	text, err := yaml.Marshal(r.Config)
	if err != nil {
		return err
	}
	return os.WriteFile(r.Path, text, 0o600)
}

// Run runs another command of the service's program.
func (r *Replica) Run(args ...string) (string, error) {
	out, err := exec.Command(r.binary, args...).CombinedOutput()
	return string(out), err
}

// NewReplica writes the configuration of a replica with its files in a folder; nothing runs yet.
func (k *Kafka) NewReplica(folder, trustedKeys string, store config.Store, clickHouse *config.ClickHouse) (*Replica,
	error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	file := func(name string) string { return filepath.Join(k.PKI, name) }
	r := &Replica{Token: "test token", Path: filepath.Join(folder, "deploy.yaml"),
		process: process{Log: filepath.Join(folder, "log"), binary: filepath.Join(Folder(), "build", "oal-deploy")}}
	r.Config = &config.Config{APListen: ports[0], AdminListen: ports[1], AdminTokenFile: filepath.Join(folder, "token"),
		TLS:         config.TLS{Cert: file("deploy.crt"), Key: file("deploy.key"), ClientCA: file("ca.crt")},
		Kafka:       k.Client("deploy"),
		TrustedKeys: trustedKeys, Store: store, ClickHouse: clickHouse,
		Approvals: config.None} // what approvals hold up is tested by itself
	r.enrol = ports[2]
	if err := r.Change(func(*config.Config) {}); err != nil {
		return nil, err
	}
	return r, os.WriteFile(r.Config.AdminTokenFile, []byte(r.Token), 0o600)
}

// Enrols has the replica enrol APs with the platform's authority, from its next start on.
func (k *Kafka) Enrols(r *Replica) error {
	file := func(name string) string { return filepath.Join(k.PKI, name) }
	return r.Change(func(c *config.Config) {
		c.EnrolListen = r.enrol
		c.Enrol = &config.Enrol{URL: "https://" + r.enrol, CACert: file("ap-ca.crt"), CAKey: file("ap-ca.key"),
			Root:       file("ca.crt"),
			MACMasters: filepath.Join(k.state, "secrets", "mac-masters"), CertificateDays: 30}
	})
}

func freePorts(n int) ([]string, error) {
	var addresses []string
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close() // held until all are chosen
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}

// Start runs the process and returns when it is ready.
func (r *Replica) Start() error {
	if err := r.run("make -C deploy build", "serve", "--config", r.Path); err != nil {
		return err
	}
	deadline := time.Now().Add(60 * time.Second)
	for time.Now().Before(deadline) {
		select {
		case <-r.ended:
			text, _ := os.ReadFile(r.Log)
			return fmt.Errorf("the replica ended:\n%s", text)
		case <-time.After(20 * time.Millisecond):
		}
		if response, err := r.client().Get(r.base() + "/readyz"); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
	text, _ := os.ReadFile(r.Log)
	r.Kill()
	return fmt.Errorf("the replica was not ready within a minute:\n%s", text)
}

// Usage is the CPU time and the resident memory of the process, and the largest there was.
func (r *Replica) Usage() (cpuS float64, rss, peak int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
	if err != nil {
		return 0, 0, 0, err
	}
	var utime, stime int64
	after := text[len(fmt.Sprintf("%d (oal-deploy) ", r.cmd.Process.Pid)):]
	var skip string
	var skipN int64
	if _, err = fmt.Sscan(string(after), &skip, &skipN, &skipN, &skipN, &skipN, &skipN, &skipN, &skipN, &skipN, &skipN,
		&skipN, &utime, &stime); err != nil {
		return 0, 0, 0, err
	}
	rss, peak, err = memory(r.cmd.Process.Pid)
	return float64(utime+stime) / 100, rss, peak, err // USER_HZ is 100 on every Linux that Go runs on
}

func (r *Replica) base() string {
	if r.Config.AdminTLS != nil {
		return "https://" + r.Config.AdminListen
	}
	return "http://" + r.Config.AdminListen
}

func (r *Replica) client() *http.Client {
	if r.Config.AdminTLS == nil {
		return http.DefaultClient
	}
	roots := x509.NewCertPool()
	if pem, err := os.ReadFile(r.Config.TLS.ClientCA); err == nil {
		roots.AppendCertsFromPEM(pem)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots},
		DisableKeepAlives: true}}
}

// Get asks the admin interface.
func (r *Replica) Get(path string, answer any) error {
	return r.call(http.MethodGet, path, nil, answer)
}

// Post asks it to do something.
func (r *Replica) Post(path string, answer any) error {
	return r.call(http.MethodPost, path, nil, answer)
}

// Metrics is the text for Prometheus.
func (r *Replica) Metrics() (string, error) {
	request, err := http.NewRequest(http.MethodGet, r.base()+"/metrics", nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+r.Token)
	response, err := r.client().Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("metrics: %s: %s", response.Status, text)
	}
	return string(text), err
}

// PostBody asks it to do something, with a body.
func (r *Replica) PostBody(path string, body, answer any) error {
	return r.call(http.MethodPost, path, body, answer)
}

// SetKill turns control of all policies off in a scope by the kill switch, or on again.
func (r *Replica) SetKill(scope string, off bool, who, reason string) error {
	return r.SetKillOf("", scope, off, who, reason)
}

// SetKillOf does it with one policy.
func (r *Replica) SetKillOf(policy, scope string, off bool, who, reason string) error {
	var answer json.RawMessage
	path, query := "/v1/control/kill/"+scope+"?", url.Values{}
	if policy != "" {
		query.Set("policy", policy)
	}
	if off {
		return r.call(http.MethodPut, path+query.Encode(), map[string]string{"who": who, "reason": reason}, &answer)
	}
	query.Set("who", who)
	query.Set("reason", reason)
	return r.call(http.MethodDelete, path+query.Encode(), nil, &answer)
}

// Ctl runs the service's own client.
func (r *Replica) Ctl(args ...string) (string, error) {
	out, err := exec.Command(r.binary, append(append([]string{"ctl"}, args...), "--config", r.Path)...).CombinedOutput()
	return string(out), err
}

func (r *Replica) call(method, path string, body, answer any) error {
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, r.base()+path, payload)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+r.Token)
	response, err := r.client().Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	return json.Unmarshal(text, answer)
}
