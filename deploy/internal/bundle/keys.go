package bundle

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Key is a trusted public key, and what it may sign.
type Key struct {
	Public ed25519.PublicKey
	Name   string
	Grant  Grant
}

// Keys are trusted keys by key_id.
type Keys map[uint64]Key

// KeyID is the first 8 bytes, big-endian, of the SHA-256 of a raw public key.
func KeyID(key ed25519.PublicKey) uint64 {
	sum := sha256.Sum256(key)
	return binary.BigEndian.Uint64(sum[:8])
}

const maxKeyName = 63 // characters, as an AP keeps

// ReadKeys reads a file of trusted keys: lines `ed25519 BASE64 NAME` with role=, scope= and max_mode=, `#` begins a
// comment. A line without attributes is an older one: its key may sign nothing.
func ReadKeys(path string) (Keys, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("trusted keys: %w", err)
	}
	keys := Keys{}
	for i, line := range strings.Split(string(text), "\n") {
		key, err := readKey(line)
		if err == nil && key != nil {
			if _, twice := keys[KeyID(key.Public)]; twice {
				err = errors.New("this key is there twice")
			} else {
				keys[KeyID(key.Public)] = *key
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: there is no key in it; every release would be refused", path)
	}
	return keys, nil
}

// readKey is the key of a line; nil for one that is empty or a comment.
func readKey(line string) (*Key, error) {
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil, nil
	}
	isText := strings.IndexFunc(line, func(c rune) bool { return c != '\t' && c != '\r' && (c < ' ' || c > '~') }) < 0
	if !isText || len(words) < 3 || words[0] != "ed25519" || len(words[2]) > maxKeyName {
		return nil, fmt.Errorf("not a key; a line is: ed25519 BASE64-OF-32-BYTES NAME %s", lineNeeds)
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(words[1])
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("`%s` is not the base64 of a 32-byte public key", words[1])
	}
	key := &Key{Public: raw, Name: words[2]}
	if len(words) > 3 {
		key.Grant, err = parseGrant(words[3:])
	}
	return key, err
}
