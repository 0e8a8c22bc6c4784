package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const good = `
ap_listen: 127.0.0.1:1
admin_listen: 127.0.0.1:2
admin_token_file: t
tls: {cert: c, key: k, client_ca: a}
kafka: {bootstrap: b}
trusted_keys: keys
store: {path: s}
clickhouse: null
`

func TestLoad(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"good":                      {good, ""},
		"empty":                     {"", "EOF"},
		"a setting that is unknown": {good + "colour: red\n", "colour"},
		"a setting that is missing": {strings.Replace(good, "trusted_keys: keys", "", 1), "trusted_keys"},
		"no store":                  {strings.Replace(good, "{path: s}", "{}", 1), "store needs either"},
		"two stores":                {strings.Replace(good, "{path: s}", "{path: s, postgres_dsn_file: d}", 1), "store needs either"},
		"a ClickHouse without url":  {strings.Replace(good, "clickhouse: null", "clickhouse: {user: x}", 1), "clickhouse needs"},
	} {
		path := filepath.Join(t.TempDir(), "deploy.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := Load(path)
		if c.want == "" && (err != nil || loaded.Replica == "") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := Load("nowhere"); err == nil {
		t.Error("a file that is not there was read")
	}
}
