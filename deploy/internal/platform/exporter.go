package platform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"oal/deploy/internal/pki"
)

// Exporter is a process of the exporter of an AP: a capture is what it sees, everything else is real.
type Exporter struct {
	ID      string
	folder  string
	capture string
	process
}

// NewExporter writes the certificate and the configuration of an AP with its files in a folder; nothing runs yet.
func (k *Kafka) NewExporter(folder string, authority *pki.Authority, id, site, service, trustedKeys string) (*Exporter,
	error) {
	top := filepath.Join(Folder(), "..")
	e := &Exporter{ID: id, folder: folder, capture: filepath.Join(folder, "capture.oalcap"),
		process: process{Log: filepath.Join(folder, "log"), binary: filepath.Join(top, "ap-exporter", "build",
			"ap-exporter")}}
	state := filepath.Join(folder, "state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, err
	}
	if err := authority.WriteLeaf(folder, id, "ap"); err != nil {
		return nil, err
	}
	section := func(kind string, options ...string) string {
		text := "config " + kind + "\n"
		for i := 0; i < len(options); i += 2 {
			text += fmt.Sprintf("\toption %s '%s'\n", options[i], options[i+1])
		}
		return text
	}
	text := section("exporter", "ap_id", id, "site", site, "status_socket", e.socket()) +
		section("replay", "file", filepath.Join(top, "lab", "captures", "congested.oalcap")) +
		section("file", "path", e.capture) +
		section("agent", "url", "https://"+service, "ca", filepath.Join(k.PKI, "ca.crt"), "cert",
			filepath.Join(folder, id+".crt"),
			"key", filepath.Join(folder, id+".key"), "trusted_keys", trustedKeys, "state_dir", state, "wait_s", "60",
			"retry_max_s", "1", "neighbours_s", "1")
	return e, os.WriteFile(e.config(), []byte(text), 0o600)
}

func (e *Exporter) config() string { return filepath.Join(e.folder, "config") }
func (e *Exporter) socket() string { return filepath.Join(e.folder, "socket") }

// Start runs the process; Status says when it answers.
func (e *Exporter) Start() error {
	return e.run("make -C ap-exporter setup build", "run", "-c", e.config())
}

// ExporterStatus is what a running exporter says of itself, as far as tests ask.
type ExporterStatus struct {
	Ticks     int64
	TableRows map[string]int64 `json:"table_rows"`
	Agent     struct {
		Polls      int64
		PollErrors int64 `json:"poll_errors"`
		Neighbours struct{ Asked, Told, Unchanged, Errors, Refused int64 }
		APs        []struct {
			ID     string `json:"ap_id"`
			Killed bool
			// KilledPolicies are those that are off by themselves, with a space between them.
			KilledPolicies string `json:"killed_policies"`
		}
	}
}

// Status of the running exporter.
func (e *Exporter) Status() (s ExporterStatus, err error) {
	out, err := exec.Command(e.binary, "status", "-s", e.socket()).Output()
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	return s, err
}

// Rows of a table in its capture, as far as they are written.
func (e *Exporter) Rows(table string) (rows []map[string]any, err error) {
	out, err := exec.Command(e.binary, "dump", e.capture).Output()
	if err != nil {
		return nil, err
	}
	for _, line := range bytes.Split(out, []byte("\n")) {
		var row map[string]any
		if json.Unmarshal(line, &row) == nil && row["table"] == table {
			rows = append(rows, row)
		}
	}
	return rows, nil
}
