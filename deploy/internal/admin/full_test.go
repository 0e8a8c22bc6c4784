package admin

import (
	"bytes"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oal/deploy/internal/store"
)

// On a full disk a kill and a revocation are in force and not stored, and what opens something answers 503 and changes
// nothing; when there is room again all of it works, and what was in force is stored.
func TestDiskFull(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mount("oal-test", folder, "tmpfs", 0, "size=768k"); err != nil {
		t.Fatalf("a small file system needs root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	x := startIn(t, filepath.Join(folder, "state.db"))
	filler := filepath.Join(folder, "filler")
	fill := func() {
		t.Helper()
		file, err := os.OpenFile(filler, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for size := 64 << 10; size > 0; {
			if _, err := file.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
				size /= 2
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	do := func(method, path, body string) (int, string) {
		request := httptest.NewRequest(method, path, strings.NewReader(body))
		request.Header.Set("Authorization", "Bearer "+token)
		recorder := httptest.NewRecorder()
		x.handler.ServeHTTP(recorder, request)
		return recorder.Code, recorder.Body.String()
	}
	long := strings.Repeat("x", 480)
	for name, action := range map[string]func(i int) (int, string){
		"kill": func(i int) (int, string) {
			return do("PUT", "/v1/control/kill/fleet", `{"reason": "`+fmt.Sprint(i)+long+`"}`)
		},
		"revoke": func(i int) (int, string) {
			return do("POST", fmt.Sprintf("/v1/aps/many-%d/revoke", i), `{"reason": "`+long+`"}`)
		},
		"ticket": func(i int) (int, string) { return do("POST", "/v1/tickets", fmt.Sprintf(`{"ap_id": "new-%d"}`, i)) },
	} {
		fill()
		before, code, text := "", 0, ""
		see := func() string {
			return x.ask("GET", "/v1/control/kill", "", 200) + x.ask("GET", "/v1/access", "", 200) +
				x.ask("GET", "/v1/tickets", "", 200)
		}
		// Pages that older transactions left free are used up first.
		full := func() bool { return code == 503 || strings.Contains(text, `"stored":false`) }
		for i := 0; i < 3000 && !full(); i++ {
			before = see()
			if code, text = action(i); code != 200 && code != 503 {
				t.Fatalf("%s: %d %s", name, code, text)
			}
		}
		switch now := see(); {
		case name == "ticket" && (code != 503 || !strings.Contains(text, "nothing was changed")):
			t.Fatalf("%s on a full disk: %d %s", name, code, text)
		case name == "ticket" && now != before:
			t.Errorf("%s answered 503 and changed something:\n%s\nit was\n%s", name, now, before)
		case name != "ticket" && (code != 200 || now == before || !strings.Contains(now, `"stored":false`)):
			t.Fatalf("%s on a full disk: %d %s, then\n%s", name, code, text, now)
		}
		if name == "kill" {
			if code, text := do("DELETE", "/v1/control/kill/fleet?reason=over", ""); code != 503 ||
				!strings.Contains(text, "control stays off") || len(x.parts.Kills.Kills()) != 1 {
				t.Errorf("a kill was taken back on a full disk: %d %s", code, text)
			}
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if code, text = action(9999); code != 200 || full() {
			t.Errorf("%s when there is room: %d %s", name, code, text)
		}
		kills, err := x.store.Kills(t.Context())
		access, err2 := x.store.Access(t.Context())
		if err := errors.Join(err, err2); err != nil || len(kills) != len(x.parts.Kills.Kills()) ||
			len(access) != len(x.parts.Access.All()) {
			t.Errorf("%s: the store holds %d kills and %d revocations: %v", name, len(kills), len(access), err)
		}
	}
	if !bytes.Contains(x.log.Bytes(), []byte(`"code":503`)) {
		t.Error("the log of the service does not have what the store could not take")
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(copied, []byte(x.ask("GET", "/v1/state", "", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := store.CheckSnapshot(copied); err != nil {
		t.Errorf("the store is damaged after all that: %v", err)
	}
}
