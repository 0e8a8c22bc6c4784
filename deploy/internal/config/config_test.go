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

const enrolment = `enrol_listen: 127.0.0.1:3
enrol: {url: "https://push:3", ca_cert: c, ca_key: k, root: r, mac_masters: m}
`

func TestLoad(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"enrolment": {good + enrolment, ""},
		"enrolment without a listener": {good + strings.Replace(enrolment, "enrol_listen: 127.0.0.1:3", "", 1),
			"enrol_listen"},
		"a listener without enrolment": {good + "enrol_listen: 127.0.0.1:3\n", "missing: enrol"},
		"enrolment without keys": {good + strings.Replace(enrolment, "mac_masters: m", "", 1),
			"enrol.mac_masters"},
		"enrolment at no address": {good + strings.Replace(enrolment, "https:", "http:", 1), "enrol.url"},
		"certificates for ever": {good + strings.Replace(enrolment, "root: r",
			"root: r, certificate_days: 10000", 1), "certificate_days"},
		"half of admin_tls":         {good + "admin_tls: {cert: c}\n", "admin_tls"},
		"good":                      {good, ""},
		"empty":                     {"", "EOF"},
		"a setting that is unknown": {good + "colour: red\n", "colour"},
		"a setting that is missing": {strings.Replace(good, "trusted_keys: keys", "", 1), "trusted_keys"},
		"no store":                  {strings.Replace(good, "{path: s}", "{}", 1), "store needs either"},
		"two stores": {strings.Replace(good, "{path: s}", "{path: s, postgres_dsn_file: d}", 1),
			"store needs either"},
		"a store that never gives up": {strings.Replace(good, "{path: s}", "{path: s, timeout: 1h}", 1),
			"store.timeout is"},
		"a store with a time of its own": {strings.Replace(good, "{path: s}", "{path: s, timeout: 500ms}", 1), ""},
		"a ClickHouse without url": {strings.Replace(good, "clickhouse: null", "clickhouse: {user: x}", 1),
			"clickhouse needs"},
	} {
		path := filepath.Join(t.TempDir(), "deploy.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := Load(path)
		if c.want == "" && (err != nil || loaded.Replica == "") || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := Load("nowhere"); err == nil {
		t.Error("a file that is not there was read")
	}
}
