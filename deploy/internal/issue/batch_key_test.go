package issue

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The keys are those of the reference in Python, and so of the exporter and the stream job.
func TestKeysAreThoseOfTheGoldenFile(t *testing.T) {
	file, err := os.Open("../../../schema/golden/macs.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if words[0] != "key" {
			continue
		}
		master, err := hex.DecodeString(words[2])
		if err != nil {
			t.Fatal(err)
		}
		site := strings.TrimSuffix(words[4], "-")
		if got := hex.EncodeToString(BatchKey(master, words[3], site)); got != words[5] {
			t.Errorf("%s at %s: %s, want %s", words[3], words[4], got, words[5])
		}
		path := filepath.Join(t.TempDir(), "masters")
		text := fmt.Sprintf("%s %s # the newest\n", words[1], base64.StdEncoding.EncodeToString(master))
		if words[1] != "1" {
			text += "1 " + base64.StdEncoding.EncodeToString(make([]byte, 32)) + "\n"
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		masters, err := ReadMasters(path)
		if err != nil {
			t.Fatal(err)
		}
		key, _ := hex.DecodeString(words[5])
		if got, want := masters.Line(words[3], site), fmt.Sprintf("%s %s %s %s\n", words[3], words[4], words[1],
			base64.StdEncoding.EncodeToString(key)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		n++
	}
	if n < 3 {
		t.Errorf("%d keys in the golden file", n)
	}
}

func TestMastersThatAreNone(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, text := range []string{"", "# nothing\n", "0 " + good, "256 " + good, "x " + good, "1", "1 " + good[:20],
		"1 " + good + " more", "1 " + good + "\n1 " + good, "1 ?"} {
		path := filepath.Join(t.TempDir(), "masters")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if m, err := ReadMasters(path); err == nil {
			t.Errorf("%q gave %v", text, m)
		}
	}
	if _, err := ReadMasters("nowhere"); err == nil {
		t.Error("a file that is not there was read")
	}
}
