// Package release is a record of ap.bundles.v1: a signed bundle of a policy, in a slot for a scope.
package release

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"oal/deploy/internal/bundle"
)

// Slot is what a bundle is released as.
type Slot string

const (
	Champion   Slot = "champion"
	Canary     Slot = "canary"
	Challenger Slot = "challenger"
	Online     Slot = "online"
)

// Name is what an AP id or a site may look like; 64 is the limit of a certificate's CN.
var Name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Hash is what the hash of a bundle looks like.
var Hash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Release is one release, checked.
type Release struct {
	Slot      Slot
	Scope     string
	Bundle    bundle.Bundle
	Signed    []byte // what an AP gets
	RunID     string
	CreatedUS int64
	Pinned    bool  // no online trees in its scope
	Rank      int64 // serial of the bundle with which its models came; 0: of this one
	// hash of the fleet's bundle that this one has the models of, with its scope's own policy; empty: it is none
	VariantOf string
	Reason    string
	// PromotedBy is who asked for it in MLflow, where the registry knows; empty: unknown.
	PromotedBy string
	Plan       *Plan // nil: everyone at once
	Raw        []byte
}

// Policy is the one that the release belongs to: that of its bundle.
func (r *Release) Policy() string { return cmp.Or(r.Bundle.OfPolicy, bundle.RwndFair) }

func (r *Release) Key() string { return Key(r.Slot, r.Scope, r.Policy()) }

// Order compares releases for one AP: the greatest is wanted. A bundle that only has a newer policy has the place of
// the one before.
func (r *Release) Order() int64 {
	if r.Rank != 0 {
		return r.Rank
	}
	return r.Bundle.Serial
}

// ID names the rollout of this release. The same bundle released again is another rollout.
func (r *Release) ID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", r.Key(), r.Bundle.Hash, r.CreatedUS))
	return hex.EncodeToString(sum[:6])
}

type record struct {
	Slot      Slot   `json:"slot"`
	Scope     string `json:"scope"`
	Policy    string `json:"policy"` // empty: rwnd-fair
	Bundle    []byte `json:"bundle"`
	Hash      string `json:"hash"`
	Serial    int64  `json:"serial"`
	Source    string `json:"source"`
	RunID     string `json:"run_id"`
	CreatedUS int64  `json:"created_us"`
	Pinned    bool   `json:"pinned"`
	Reason    string `json:"reason"`
	Rank      int64  `json:"rank"`
	VariantOf string `json:"variant_of"`
	Promoter  string `json:"promoted_by"`
	Rollout   *Plan  `json:"rollout"`
}

// maxSerialAheadUS is settings.max_serial_ahead_us: a release whose serial is further ahead of the clock is none.
const maxSerialAheadUS = 300e6

// Ahead refuses a release whose serial is far ahead of the clock: until then no other would be newer at the APs that
// have it. The error is an *Error.
func (r *Release) Ahead(nowUS int64) error {
	if ahead := r.Bundle.Serial - nowUS; ahead > maxSerialAheadUS {
		return &Error{"future", fmt.Sprintf("serial %d is %d s ahead of this service's clock, the limit is %d s: is "+
			"the signer's clock wrong, or its key stolen?", r.Bundle.Serial, ahead/1e6, int64(maxSerialAheadUS/1e6))}
	}
	return nil
}

// Error says why a record is refused; Reason is one of settings.bundle_reasons, bad_record, or future.
type Error struct{ Reason, Detail string }

func (e *Error) Error() string { return e.Reason + ": " + e.Detail }

func refuse(format string, args ...any) error {
	return &Error{"bad_record", fmt.Sprintf(format, args...)}
}

// Parse checks a record and the bundle in it. Errors are *Error. A record without value is not for it: that is a
// withdrawal.
func Parse(key string, value []byte, keys bundle.Keys) (*Release, error) {
	slot, scope, policy, err := ParseKey(key)
	if err != nil {
		return nil, refuse("%v", err)
	}
	var r record
	if err := json.Unmarshal(value, &r); err != nil {
		return nil, refuse("the value is not a release: %v", err)
	}
	r.Policy = cmp.Or(r.Policy, bundle.RwndFair)
	if r.Slot != slot || r.Scope != scope || r.Policy != policy {
		return nil, refuse("the record says %s, scope %s, policy %s; its key %s", r.Slot, r.Scope, r.Policy, key)
	}
	b, err := bundle.Open(r.Bundle, keys)
	if err != nil {
		var refused *bundle.Error
		errors.As(err, &refused)
		return nil, &Error{refused.Reason, refused.Detail}
	}
	if err := agree(&r, b); err != nil {
		return nil, err
	}
	plan, err := checkPlan(slot, r.Rollout)
	if err != nil {
		return nil, err
	}
	out := &Release{Slot: slot, Scope: scope, Bundle: *b, Signed: r.Bundle, RunID: r.RunID, CreatedUS: r.CreatedUS,
		Pinned: r.Pinned, Rank: r.Rank, VariantOf: r.VariantOf, Reason: r.Reason, Plan: plan,
		PromotedBy: r.Promoter}
	if slot != Online {
		out.Raw = bytes.Clone(value) // kept in the store, so that an abort can put it back after compaction removed it
	}
	return out, nil
}

// agree compares what the record says of its bundle with what is signed.
func agree(r *record, b *bundle.Bundle) error {
	source := bundle.Registry
	if r.Slot == Online {
		source = bundle.Online
	}
	switch {
	case b.OfPolicy != r.Policy:
		return refuse("the release is of policy %s, its bundle of %s", r.Policy, b.OfPolicy)
	case b.Target != r.Scope && b.Target != "fleet":
		return &Error{"wrong_target", fmt.Sprintf("the bundle is for %s, the release for %s", b.Target, r.Scope)}
	case r.Hash != b.Hash:
		return refuse("the record names hash %.64s, the bundle has %s", r.Hash, b.Hash)
	case r.Serial != b.Serial:
		return refuse("the record names serial %d, the bundle has %d", r.Serial, b.Serial)
	case r.Rank < 0 || r.Rank > b.Serial:
		return refuse("rank is %d, it must be from 1 to the serial, %d", r.Rank, b.Serial)
	case r.VariantOf != "" && (r.Scope == "fleet" || !Hash.MatchString(r.VariantOf)):
		return refuse("variant_of is %.80s, it must be the hash of the fleet's bundle, and the scope a site or an AP",
			r.VariantOf)
	case b.Source != source || r.Source != string(source):
		return refuse("slot %s takes bundles of source %s; the record says %s, the bundle %s", r.Slot, source, r.Source,
			b.Source)
	}
	return nil
}
