package bundle

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

var (
	key     = ed25519.NewKeyFromSeed(make([]byte, 32))
	trusted = Keys{KeyID(key.Public().(ed25519.PublicKey)): {Public: key.Public().(ed25519.PublicKey), Name: "test",
		Grant: Grant{Role: "registry", Sources: []Source{Registry}, Scope: Fleet, MaxMode: Enforce}}}
	before  = strings.Repeat("ab", 32)
	example = Bundle{Serial: 1790000000000000, Target: "site/lab", Source: Registry, Model: "congestion", Version: 7,
		RollbackTo: []string{before}}
)

func TestOpenReadsWhatWasSigned(t *testing.T) {
	got, err := Open(Sign(example, []byte{8, 1}, []byte{1}, key), trusted)
	if err != nil {
		t.Fatal(err)
	}
	if got.Serial != example.Serial || got.Target != example.Target || got.Source != Registry ||
		got.Model != example.Model ||
		got.Version != 7 || len(got.RollbackTo) != 1 || got.RollbackTo[0] != before || len(got.Hash) != 64 {
		t.Errorf("read %+v", got)
	}
}

func TestOpenReadsThePolicy(t *testing.T) {
	for given, want := range map[string]string{"": RwndFair, RwndFair: RwndFair, "example": "example"} {
		b := example
		b.OfPolicy = given
		got, err := Open(Sign(b, []byte{8, 1}, []byte{1}, key), trusted)
		if err != nil || got.OfPolicy != want {
			t.Errorf("%q: %+v, %v", given, got, err)
		}
	}
}

// Renewals have other numbers and the same models; a mode that is unknown counts as the greatest.
func TestModeAndModels(t *testing.T) {
	open := func(b Bundle, tree string) *Bundle {
		got, err := Open(Sign(b, []byte{8, 1}, []byte(tree), key), trusted)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := open(example, "tree")
	renewed := example
	renewed.Serial, renewed.Target, renewed.RollbackTo, renewed.Mode = example.Serial+1, "fleet", nil, Enforce
	if got := open(renewed, "tree"); got.Models != first.Models || got.Mode != Enforce || first.Mode != Off {
		t.Errorf("%+v, before %+v", got, first)
	}
	if open(example, "other").Models == first.Models {
		t.Error("another tree has the same hash")
	}
	ofPolicy := example
	ofPolicy.OfPolicy, ofPolicy.Mode = "example", Shadow
	if got := open(ofPolicy, "tree"); got.Models == first.Models || got.Mode != Shadow {
		t.Errorf("of another policy: %+v", got)
	}
	for _, bad := range [][]byte{{0xff}, {8, 3}, {8, 1, 8, 0}, {10, 0}} {
		if readMode(bad) != Enforce {
			t.Errorf("% x is of mode %s", bad, readMode(bad))
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	good := Sign(example, []byte{8, 1}, []byte{1}, key)
	payload := func(fields ...[]byte) []byte {
		var p []byte
		for _, f := range fields {
			p = append(p, f...)
		}
		return envelope(p, KeyID(key.Public().(ed25519.PublicKey)), ed25519.Sign(key, append([]byte(domain), p...)))
	}
	number := func(field protowire.Number, n uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), n)
	}
	text := func(field protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, field, protowire.BytesType), s)
	}
	changed := append([]byte(nil), good...)
	changed[len(changed)-1] ^= 1
	other := ed25519.NewKeyFromSeed([]byte(strings.Repeat("x", 32)))
	many := example
	many.RollbackTo = []string{before, before, before, before, before}
	short := example
	short.RollbackTo = []string{"abcd"}
	for name, c := range map[string]struct {
		reason string
		signed []byte
	}{
		"more than the limit":          {"oversized", make([]byte, MaxBytes+1)},
		"nothing":                      {"malformed", nil},
		"a cut in the payload":         {"malformed", good[:20]},
		"garbage":                      {"malformed", []byte("this is not a bundle")},
		"payload of the wrong type":    {"malformed", number(1, 5)},
		"no signature":                 {"unsigned", good[:len(good)-66]},
		"a key that is not trusted":    {"unknown_key", Sign(example, []byte{8, 1}, []byte{1}, other)},
		"another signature":            {"bad_signature", changed},
		"a payload that is no message": {"malformed", payload([]byte{0xff})},
		"a serial of the wrong type":   {"malformed", payload(number(1, 1), text(2, "x"))},
		"five bundles to go back to":   {"malformed", Sign(many, []byte{8, 1}, []byte{1}, key)},
		"a hash that is not 32 bytes":  {"malformed", Sign(short, []byte{8, 1}, []byte{1}, key)},
		"format 2": {"unsupported_format", payload(number(1, 2), number(2, 2), text(3, "fleet"),
			number(4, 1), text(8, ""), text(9, ""))},
		"no tree": {"unsupported_format", payload(number(1, 1), number(2, 2), text(3, "fleet"),
			number(4, 1), text(8, ""))},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(c.signed, trusted)
			var refused *Error
			if !errors.As(err, &refused) || refused.Reason != c.reason {
				t.Errorf("want %s, got %v", c.reason, err)
			}
		})
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(Sign(example, []byte{8, 1}, []byte{1}, key))
	other := example
	other.OfPolicy = "example"
	f.Add(Sign(other, []byte{8, 1}, []byte{1}, key))
	f.Add([]byte{0x0a, 0x05, 1, 2})
	f.Fuzz(func(t *testing.T, signed []byte) {
		if b, err := Open(signed, trusted); err == nil && b.Hash == "" {
			t.Error("accepted without a hash")
		}
		_, _ = manifest(signed)
	})
}

func TestID(t *testing.T) {
	for hash, want := range map[string]uint64{"ffffffffffffffff00": 0x7fffffffffffffff,
		"0123456789abcdef": 0x0123456789abcdef, "": 0, "zzzzzzzzzzzzzzzz": 0} {
		if got := ID(hash); got != want {
			t.Errorf("ID(%q) = %x, want %x", hash, got, want)
		}
	}
}

func TestReadKeys(t *testing.T) {
	line := "ed25519 " + base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
	for text, want := range map[string]string{
		"# all\n" + line + " old # note\n\n":                      "",
		line + "\n":                                               ":1: not a key",
		line + " a\n\n" + line + " b\n":                           ":3: this key is there twice",
		line + " a role=trainer scope=site/lab max_mode=shadow\n": "",
		line + " a role=trainer\n":                                ":1: scope is missing",
		"":                                                        "no key",
		"rsa AAAA name\n":                                         ":1: not a key",
		"ed25519 AAAA name\n":                                     ":1: `AAAA`",
	} {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := ReadKeys(path)
		if want == "" && (err != nil || len(keys) != 1) || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, %v; want %q", text, keys, err, want)
		}
	}
}
