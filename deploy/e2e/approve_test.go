package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oal/deploy/internal/config"
	"oal/deploy/internal/release"
)

// A champion waits at the push service until somebody who may approve does; a killed service still waits, and knows.
func TestApprove(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	r, err := broker.NewReplica(folder, keysFile, config.Store{Path: file("state.db")}, nil)
	must(t, err)
	sum := sha256.Sum256([]byte("dan's token"))
	must(t, os.WriteFile(file("dan"), []byte("dan's token\n"), 0o600))
	must(t, os.WriteFile(file("users"), []byte("dan approver "+hex.EncodeToString(sum[:])), 0o600))
	must(t, r.Change(func(c *config.Config) { c.AdminUsersFile, c.Approvals = file("users"), "" })) // the default
	run(t, r)
	f := connect(t, r.Config.APListen, "approve", "p", 3)
	defer withdraw(t, "champion/site/p")
	hash := send(t, release.Champion, "site/p", 1, nil)
	eventually(t, says("held"), func() bool { return rolloutOf(t, r, hash).Step == "held" })
	r.Kill()
	must(t, r.Start())
	id := rolloutOf(t, r, hash).ID
	if out, err := r.Ctl("approve", id, "--reason", "x"); err == nil || !strings.Contains(out, "for approver") {
		t.Errorf("%v %s", err, out)
	}
	if out, err := r.Ctl("approve", id, "--token-file", file("dan")); err == nil || !strings.Contains(out, "--reason") {
		t.Errorf("%v %s", err, out)
	}
	if n := f.Have(hash); n != 0 {
		t.Errorf("%d APs have what nobody approved", n)
	}
	if out, err := r.Ctl("approve", id, "--reason", "seen", "--token-file", file("dan")); err != nil {
		t.Errorf("%v %s", err, out)
	}
	eventually(t, says("everywhere"), func() bool { return f.Have(hash) == 3 })
	steps(t, r, id, "held", "approved", "started", "completed")
	if audit := ctl(t, r, "audit"); !strings.Contains(audit, "seen") || !strings.Contains(audit, "dan") {
		t.Error(audit)
	}
}
