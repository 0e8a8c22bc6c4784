package account

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func line(name, role, token string) string {
	sum := sha256.Sum256([]byte(token))
	return fmt.Sprintf("%s %s %s\n", name, role, hex.EncodeToString(sum[:]))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestUsers(t *testing.T) {
	folder := t.TempDir()
	token, users := filepath.Join(folder, "token"), filepath.Join(folder, "users")
	write(t, token, "root token\n")
	failures := 0
	if _, err := Open(token, users, nil); err == nil {
		t.Error("a file of users that is not there was read")
	}
	write(t, users, "# who\n"+line("ann", "viewer", "a")+line("bob", "operator", "b")+"\n"+line("cyd", "admin", "c"))
	u, err := Open(token, users, func(error) { failures++ })
	if err != nil {
		t.Fatal(err)
	}
	is := func(token, name string, role Role) {
		t.Helper()
		if got := u.Of(token); got.Name != name || got.Role != role {
			t.Errorf("%q is of %s, %s", token, got.Name, got.Role)
		}
	}
	is("root token", "admin", Admin)
	is("a", "ann", Viewer)
	is("b", "bob", Operator)
	is("c", "cyd", Admin)
	is("", "", None)
	is("root token\n", "", None)
	write(t, users, line("ann", "operator", "new"))
	is("new", "ann", Operator)
	is("a", "", None)
	is("b", "", None)
	write(t, token, "another")
	is("another", "admin", Admin)
	is("root token", "", None)
	write(t, users, "half")
	is("new", "ann", Operator)
	if failures != 1 {
		t.Errorf("%d failures", failures)
	}
}

// An approver sees and approves; nobody else approves, the admin neither.
func TestMay(t *testing.T) {
	may := map[Role][]Role{Viewer: {Viewer}, Operator: {Viewer, Operator}, Admin: {Viewer, Operator, Admin},
		Approver: {Viewer, Approver}}
	for role := None; role <= Approver; role++ {
		for what := Viewer; what <= Approver; what++ {
			if role.May(what) != slices.Contains(may[role], what) {
				t.Errorf("%s may do what is for %s: %t", role, what, role.May(what))
			}
		}
	}
}

func TestBadUsers(t *testing.T) {
	folder := t.TempDir()
	token, users := filepath.Join(folder, "token"), filepath.Join(folder, "users")
	write(t, token, "x")
	good := line("ann", "viewer", "a")
	for _, text := range []string{"ann", good + good, line("ann", "king", "a"), line("admin", "viewer", "a"),
		line("a/b", "viewer", "a"), "ann viewer 00\n", "ann viewer " + strings.Repeat("x", 64)} {
		write(t, users, text)
		if _, err := Open(token, users, nil); err == nil || !strings.Contains(err.Error(), "users:") {
			t.Errorf("%q: %v", text, err)
		}
	}
	write(t, token, "\n")
	if _, err := Open(token, "", nil); err == nil {
		t.Error("an empty token was taken")
	}
}
