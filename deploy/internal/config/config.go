// Package config reads the service's configuration file.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"oal/deploy/internal/api"
)

// Config is the file; README.md documents it. Secrets are in files of their own.
type Config struct {
	APListen       string      `yaml:"ap_listen"`
	TLS            TLS         `yaml:"tls"`
	AdminListen    string      `yaml:"admin_listen"`
	AdminTokenFile string      `yaml:"admin_token_file"`
	Kafka          Kafka       `yaml:"kafka"`
	TrustedKeys    string      `yaml:"trusted_keys"`
	Store          Store       `yaml:"store"`
	ClickHouse     *ClickHouse `yaml:"clickhouse"`
	Limits         api.Limits  `yaml:"limits"`
	Replica        string      `yaml:"replica"` // name of this replica; default: the host's name and ap_listen
}

type TLS struct {
	Cert     string `yaml:"cert"`
	Key      string `yaml:"key"`
	ClientCA string `yaml:"client_ca"`
}

type Kafka struct {
	Bootstrap string `yaml:"bootstrap"`
	CA        string `yaml:"ca"`
	Cert      string `yaml:"cert"`
	Key       string `yaml:"key"`
}

type Store struct {
	Path            string `yaml:"path"`
	PostgresDSNFile string `yaml:"postgres_dsn_file"`
}

type ClickHouse struct {
	URL          string `yaml:"url"`
	User         string `yaml:"user"`
	PasswordFile string `yaml:"password_file"`
	Database     string `yaml:"database"`
}

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
	if len(missing) > 0 {
		return fmt.Errorf("these settings are missing: %s", strings.Join(missing, ", "))
	}
	if (c.Store.Path == "") == (c.Store.PostgresDSNFile == "") {
		return errors.New("store needs either path (embedded, one replica) or postgres_dsn_file")
	}
	if c.ClickHouse != nil && (c.ClickHouse.URL == "" || c.ClickHouse.Database == "") {
		return errors.New("clickhouse needs url and database; leave clickhouse out to do without metrics of predictions")
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
