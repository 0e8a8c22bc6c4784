// Package config reads the service's configuration file.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sort"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Config is the file; README.md documents it. Secrets are in files of their own.
type Config struct {
	APListen         string      `yaml:"ap_listen"`
	TLS              TLS         `yaml:"tls"`
	AdminListen      string      `yaml:"admin_listen"`
	AdminTokenFile   string      `yaml:"admin_token_file"`
	Kafka            Kafka       `yaml:"kafka"`
	TrustedKeys      string      `yaml:"trusted_keys"`
	Store            Store       `yaml:"store"`
	ClickHouse       *ClickHouse `yaml:"clickhouse"`
	Limits           Limits      `yaml:"limits"`
	EnrolListen      string      `yaml:"enrol_listen"`
	Enrol            *Enrol      `yaml:"enrol"`
	AdminUsersFile   string      `yaml:"admin_users_file"`
	AdminTLS         *AdminTLS   `yaml:"admin_tls"`
	MetricsTokenFile string      `yaml:"metrics_token_file"`
	Approvals        string      `yaml:"approvals"`    // required (default) or none
	CanaryShare      float64     `yaml:"canary_share"` // of the APs in scope that needs no approval; default 0.1
	Replica          string      `yaml:"replica"`      // name of this replica; default: the host's name and ap_listen
}

type TLS struct {
	Cert     string `yaml:"cert"`
	Key      string `yaml:"key"`
	ClientCA string `yaml:"client_ca"`
}

// Enrol is how APs get certificates; without it none are issued.
type Enrol struct {
	URL             string `yaml:"url"`     // of enrol_listen as APs reach it
	CACert          string `yaml:"ca_cert"` // the issuing CA
	CAKey           string `yaml:"ca_key"`
	Root            string `yaml:"root"`
	MACMasters      string `yaml:"mac_masters"`
	CertificateDays int    `yaml:"certificate_days"`
}

// AdminTLS makes the admin interface speak TLS.
type AdminTLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

type Kafka struct {
	Bootstrap string `yaml:"bootstrap"`
	CA        string `yaml:"ca"`
	Cert      string `yaml:"cert"`
	Key       string `yaml:"key"`
}

type Store struct {
	Path            string        `yaml:"path"`
	PostgresDSNFile string        `yaml:"postgres_dsn_file"`
	Timeout         time.Duration `yaml:"timeout"` // of every call, such as 3s; default 3s
}

type ClickHouse struct {
	URL          string `yaml:"url"`
	User         string `yaml:"user"`
	PasswordFile string `yaml:"password_file"`
	Database     string `yaml:"database"`
	CAFile       string `yaml:"ca_file"` // of the authority behind an https URL; empty: those of the system
}

// Limits of what an AP may ask; the zero value means the defaults.
type Limits struct {
	RequestsPerS float64 `yaml:"requests_per_s"` // of one AP, lasting; default 10
	Burst        int     `yaml:"burst"`          // of one AP, at once; default 30
	MaxConns     int     `yaml:"max_connections"`
}

// What Approvals may be.
const (
	Required = "required"
	None     = "none"
)

const (
	defaultStoreTimeout = 3 * time.Second        // a call takes milliseconds; more than this is a store that is away
	minStoreTimeout     = 100 * time.Millisecond // less is a typing error
	maxStoreTimeout     = 5 * time.Second        // a killed replica's APs count as gone after six

	defaultCanaryShare     = 0.1 // release.DefaultShare: what a canary has that names none
	defaultCertificateDays = 30  // days: an AP that was away for weeks still gets in
	maxCertificateDays     = 825 // days: some TLS libraries refuse longer ones
)

// Load reads and checks a file.
func Load(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	c := &Config{}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(c); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	if c.Replica == "" {
		host, _ := os.Hostname()
		c.Replica = host + "/" + c.APListen
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

func (c *Config) check() error {
	var missing []string
	for name, value := range map[string]string{"ap_listen": c.APListen, "tls.cert": c.TLS.Cert, "tls.key": c.TLS.Key,
		"tls.client_ca": c.TLS.ClientCA, "admin_listen": c.AdminListen, "admin_token_file": c.AdminTokenFile,
		"kafka.bootstrap": c.Kafka.Bootstrap, "trusted_keys": c.TrustedKeys} {
		if value == "" {
			missing = append(missing, name)
		}
	}
	if e := c.Enrol; e != nil {
		for name, value := range map[string]string{"enrol_listen": c.EnrolListen, "enrol.url": e.URL,
			"enrol.ca_cert": e.CACert, "enrol.ca_key": e.CAKey,
			"enrol.root": e.Root, "enrol.mac_masters": e.MACMasters} {
			if value == "" {
				missing = append(missing, name)
			}
		}
	} else if c.EnrolListen != "" {
		missing = append(missing, "enrol")
	}
	if c.AdminTLS != nil && (c.AdminTLS.Cert == "" || c.AdminTLS.Key == "") {
		missing = append(missing, "admin_tls.cert and admin_tls.key")
	}
	if len(missing) > 0 {
		sort.Strings(missing)
		return fmt.Errorf("these settings are missing: %s", strings.Join(missing, ", "))
	}
	if (c.Store.Path == "") == (c.Store.PostgresDSNFile == "") {
		return errors.New("store needs either path (embedded, one replica) or postgres_dsn_file")
	}
	if c.Store.Timeout == 0 {
		c.Store.Timeout = defaultStoreTimeout
	}
	if c.Store.Timeout < minStoreTimeout || c.Store.Timeout > maxStoreTimeout {
		return fmt.Errorf("store.timeout is %s to %s", minStoreTimeout, maxStoreTimeout)
	}
	if e := c.Enrol; e != nil {
		if e.CertificateDays == 0 {
			e.CertificateDays = defaultCertificateDays
		}
		if e.CertificateDays < 1 || e.CertificateDays > maxCertificateDays {
			return fmt.Errorf("enrol.certificate_days is 1 to %d", maxCertificateDays)
		}
		if u, err := url.Parse(e.URL); err != nil || u.Scheme != "https" || u.Host == "" {
			return errors.New("enrol.url is https://HOST:PORT, as APs reach enrol_listen")
		}
	}
	if c.Approvals == "" {
		c.Approvals = Required
	}
	if c.CanaryShare == 0 {
		c.CanaryShare = defaultCanaryShare
	}
	if c.Approvals != Required && c.Approvals != None || c.CanaryShare < 0 || c.CanaryShare > 1 {
		return errors.New("approvals is required or none, canary_share 0 to 1")
	}
	if c.ClickHouse != nil && (c.ClickHouse.URL == "" || c.ClickHouse.Database == "") {
		return errors.New("clickhouse needs url and database; leave clickhouse out to do without metrics of " +
			"predictions")
	}
	return nil
}

// Secret reads a file that holds one secret, which must not be empty.
func Secret(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return secret, nil
}
