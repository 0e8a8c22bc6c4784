package bundle

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
)

// Keys are trusted public keys by key_id.
type Keys map[uint64]ed25519.PublicKey

// KeyID is the first 8 bytes, big-endian, of the SHA-256 of a raw public key.
func KeyID(key ed25519.PublicKey) uint64 {
	sum := sha256.Sum256(key)
	return binary.BigEndian.Uint64(sum[:8])
}

// ReadKeys reads a file of trusted keys: lines `ed25519 BASE64 NAME`, `#` begins a comment.
func ReadKeys(path string) (Keys, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("trusted keys: %w", err)
	}
	keys := Keys{}
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 2 || words[0] != "ed25519" {
			return nil, fmt.Errorf("%s:%d: a line is `ed25519 BASE64 NAME`", path, i+1)
		}
		raw, err := base64.StdEncoding.DecodeString(words[1])
		if err != nil || len(raw) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("%s:%d: `%s` is not the base64 of a 32-byte public key", path, i+1, words[1])
		}
		keys[KeyID(raw)] = raw
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: there is no key in it; every release would be refused", path)
	}
	return keys, nil
}
