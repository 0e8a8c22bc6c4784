package sim

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/release"
)

// Signer makes releases, as the trainer and the registry do; the models in them are random bytes of the given size.
type Signer struct {
	Key     ed25519.PrivateKey // the registry's
	Trainer ed25519.PrivateKey // of online trees
	Size    int                // of the tree in bytes
}

// NewSigner makes the keys, and the file of trusted keys that names them.
func NewSigner(trustedKeys string) (*Signer, error) {
	text, s := "", &Signer{Size: 3500}
	for role, key := range map[string]*ed25519.PrivateKey{"registry": &s.Key, "trainer": &s.Trainer} {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		*key = private
		text += fmt.Sprintf("ed25519 %s simulated-%s role=%s scope=fleet max_mode=enforce\n",
			base64.StdEncoding.EncodeToString(public), role, role)
	}
	return s, os.WriteFile(trustedKeys, []byte(text), 0o600)
}

// Keys are those that trust this signer.
func (s *Signer) Keys() bundle.Keys {
	keys := trusting(s.Key, bundle.Registry)
	maps.Copy(keys, trusting(s.Trainer, bundle.Online))
	return keys
}

func trusting(key ed25519.PrivateKey, sources ...bundle.Source) bundle.Keys {
	public := key.Public().(ed25519.PublicKey)
	return bundle.Keys{bundle.KeyID(public): {Public: public, Name: "simulated", Grant: bundle.Grant{
		Role: "simulated", Sources: sources, Scope: bundle.Fleet, MaxMode: bundle.Enforce}}}
}

// Release makes a record of ap.bundles.v1. Serial and time of release are nowUS. It returns the bundle's hash too.
func (s *Signer) Release(slot release.Slot, scope string, version uint32, nowUS int64,
	change func(record map[string]any), rollbackTo ...string) (key string, value []byte, hash string) {
	return s.ReleaseOf(bundle.RwndFair, slot, scope, version, nowUS, change, rollbackTo...)
}

// ReleaseOf is Release for a policy; what is not of rwnd-fair is of format 2.
func (s *Signer) ReleaseOf(policy string, slot release.Slot, scope string, version uint32, nowUS int64,
	change func(record map[string]any), rollbackTo ...string) (key string, value []byte, hash string) {
	tree := make([]byte, s.Size)
	_, _ = rand.Read(tree)
	return s.of(bundle.Bundle{OfPolicy: policy, Version: version}, slot, scope, tree, nowUS, change, rollbackTo...)
}

// Models is Release for version 1 with a tree of one's choice, and with a control policy of a mode.
func (s *Signer) Models(slot release.Slot, scope, tree string, mode bundle.Mode, nowUS int64,
	change func(record map[string]any)) (key string, value []byte, hash string) {
	return s.of(bundle.Bundle{OfPolicy: bundle.RwndFair, Version: 1, Mode: mode}, slot, scope, []byte(tree), nowUS,
		change)
}

func (s *Signer) of(b bundle.Bundle, slot release.Slot, scope string, tree []byte, nowUS int64,
	change func(record map[string]any), rollbackTo ...string) (key string, value []byte, hash string) {
	policy, version := b.OfPolicy, b.Version
	source, by := bundle.Registry, s.Key
	if slot == release.Online {
		source, by = bundle.Online, s.Trainer
	}
	model := "congestion"
	if policy != bundle.RwndFair {
		model = policy
	}
	b.Serial, b.Target, b.Source, b.Model, b.RollbackTo = nowUS, scope, source, model, rollbackTo
	signed := bundle.Sign(b, []byte{8, 1}, tree, by)
	opened, err := bundle.Open(signed, trusting(by, source)) // of a key that others may not trust with that
	if err != nil {
		panic(err) // it was just signed
	}
	b = *opened
	record := map[string]any{"slot": slot, "scope": scope, "bundle": signed, "hash": b.Hash, "serial": b.Serial,
		"source": source,
		"model":  b.Model, "version": version, "run_id": "", "feature_hash": 0, "created_us": nowUS, "pinned": false,
		"reason": "", "rollout": nil}
	if policy != bundle.RwndFair {
		record["policy"] = policy
	}
	if change != nil {
		change(record)
	}
	value, err = json.Marshal(record)
	if err != nil {
		panic(err)
	}
	return release.Key(slot, scope, policy), value, b.Hash
}
