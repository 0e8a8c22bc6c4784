package bundle

import (
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
)

const golden = "../../../schema/golden/"

// The reasons that this service finds; those after them are the AP's to find, in a bundle that is otherwise good.
var atTheDoor = map[string]bool{"oversized": true, "malformed": true, "unsigned": true, "unknown_key": true,
	"bad_signature": true, "unsupported_format": true, "not_permitted": true}

func TestGoldenBundles(t *testing.T) { goldenBundles(t, "bundles") }

func TestGoldenBundlesOfFormat2(t *testing.T) { goldenBundles(t, "bundles2") }

// goldenBundles holds a container against the lines about it.
func goldenBundles(t *testing.T, name string) {
	keys, err := ReadKeys(golden + "bundles.keys")
	if err != nil {
		t.Fatal(err)
	}
	for id, key := range keys { // what they may sign is not the question here
		key.Grant = Grant{Role: "any", Sources: []Source{Registry, Online}, Scope: Fleet, MaxMode: Enforce}
		keys[id] = key
	}
	data, err := os.ReadFile(golden + name + ".bin")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(golden + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		words := strings.Fields(line)
		signed := next(t, &data)
		t.Run(words[0], func(t *testing.T) {
			b, err := Open(signed, keys)
			var refused *Error
			switch {
			case words[2] == "ok" && err == nil:
				if serial, _ := strconv.ParseInt(words[4], 10, 64); b.Hash != words[3] || b.Serial != serial {
					t.Errorf("hash %s, serial %d; want %s, %d", b.Hash, b.Serial, words[3], serial)
				}
				want := RwndFair
				if name == "bundles2" {
					want = words[7]
				}
				if b.OfPolicy != want {
					t.Errorf("of policy %s, want %s", b.OfPolicy, want)
				}
			case strings.HasPrefix(words[0], "malformed_policy"): // inside a part, which only the AP opens
				if err != nil {
					t.Errorf("line %d: %v", i+1, err)
				}
			case atTheDoor[words[2]]:
				if !errors.As(err, &refused) || refused.Reason != words[2] {
					t.Errorf("line %d: want %s, got %v", i+1, words[2], err)
				}
			case err != nil:
				t.Errorf("line %d: a bundle that is %s for an AP: %v", i+1, words[2], err)
			}
		})
	}
	if len(data) != 0 {
		t.Errorf("%d bytes are left", len(data))
	}
}

// next takes one record off the container: a byte, the length in 4 bytes (little-endian), the record.
func next(t *testing.T, data *[]byte) []byte {
	t.Helper()
	d := *data
	if len(d) < 5 || uint32(len(d)-5) < binary.LittleEndian.Uint32(d[1:]) {
		t.Fatal("the container ends early")
	}
	end := 5 + binary.LittleEndian.Uint32(d[1:])
	*data = d[end:]
	return d[5:end]
}

// Which bundles a key may sign, for whoever keeps them for others, and for AP ap-1 at site lab.
func TestGoldenKeys(t *testing.T) {
	keys, err := ReadKeys(golden + "keys.trusted")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(golden + "keys.bin")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(golden + "keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		words := strings.Fields(line)
		b, err := Open(next(t, &data), keys)
		var refused *Error
		errors.As(err, &refused)
		switch want := words[2]; {
		case atTheDoor[want] && (refused == nil || refused.Reason != want):
			t.Errorf("%s: want %s, got %v", words[0], want, err)
		case !atTheDoor[want] && err != nil:
			t.Errorf("%s: %v", words[0], err)
		case err == nil && b.Reaches("ap-1", "lab") != (words[1] != "not_permitted"):
			t.Errorf("%s: at the AP it is %s, here its key's scope is %s", words[0], words[1], b.KeyScope)
		}
	}
}

// What each line of a file of trusted keys says.
func TestGoldenKeyLines(t *testing.T) {
	text, err := os.ReadFile(golden + "keys.lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		want, line, _ := strings.Cut(line, "\t")
		key, err := readKey(line)
		got := "old"
		switch {
		case err != nil:
			got = "refused"
		case key == nil:
			got = "nothing"
		case key.Grant.Role != "":
			got = key.Grant.String()
		}
		if got != want {
			t.Errorf("line %d: %s, want %s: %v", i+1, got, want, err)
		}
	}
}
