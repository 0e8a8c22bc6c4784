// Package bundle reads what the push service needs of a signed bundle, and checks its signature.
// Both formats are in schema/README.md, "Bundles"; what is inside a model is the AP's to check.
package bundle

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// MaxBytes is settings.max_bundle_bytes: a larger signed bundle is refused unread.
	MaxBytes      = 262144
	maxRollbackTo = 4           // bundles that one may name; settings of the format, as those below
	hashBytes     = sha256.Size // of a bundle's payload
	maxText       = 127         // bytes of a name
	domain        = "OALB1"     // stands before what is signed: no signature of another kind is taken for it
)

// Source says who made a bundle.
type Source string

const (
	Registry Source = "registry"
	Online   Source = "online"
)

// RwndFair is the policy of every bundle of format 1, and of whatever names none.
const RwndFair = "rwnd-fair"

// PolicyName is what the name of a policy, a folder of policies/, looks like.
var PolicyName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

// Bundle is what the push service knows of a bundle.
type Bundle struct {
	Hash       string // SHA-256 of the payload, lower-case hex: the ETag
	Serial     int64  // microseconds since 1970
	Target     string // fleet, site/SITE or ap/AP_ID
	Source     Source
	Model      string
	Version    uint32
	RollbackTo []string // hashes, hex
	OfPolicy   string   // the policy that it belongs to; empty: rwnd-fair
	Mode       Mode     // of its control policy
	Models     string   // hash of what decides, hex: renewals with other numbers have the same
	KeyScope   string   // of the key that signed it: it is for nobody outside, whatever its target
}

// Error says why a bundle is refused; Reason is one of settings.bundle_reasons.
type Error struct{ Reason, Detail string }

func (e *Error) Error() string { return e.Reason + ": " + e.Detail }

func refuse(reason, format string, args ...any) error {
	return &Error{reason, fmt.Sprintf(format, args...)}
}

// ID is the number that stands for a bundle in rows: the first 8 bytes of its hash without the highest bit, 0 for no
// hash.
func ID(hash string) uint64 {
	if len(hash) < 16 {
		return 0
	}
	n, err := strconv.ParseUint(hash[:16], 16, 64)
	if err != nil {
		return 0
	}
	return n &^ (1 << 63)
}

// Open checks the envelope, its signature and whether the key may sign that, and reads the manifest. Errors are *Error.
func Open(signed []byte, keys Keys) (*Bundle, error) {
	if len(signed) > MaxBytes {
		return nil, refuse("oversized", "%d bytes, the limit is %d", len(signed), MaxBytes)
	}
	payload, key, err := verify(signed, keys)
	if err != nil {
		return nil, err
	}
	b, err := manifest(payload)
	if err != nil {
		return nil, err
	}
	if why := key.refuses(b); why != "" {
		return nil, refuse("not_permitted", "%s", why)
	}
	b.KeyScope = key.Grant.Scope
	return b, nil
}

func verify(signed []byte, keys Keys) ([]byte, *Key, error) {
	var payload, signature []byte
	var keyID uint64
	err := fields(signed, 3, nil, func(number protowire.Number, f field) bool {
		switch number {
		case 1:
			payload = f.bytes
			return f.kind == protowire.BytesType
		case 2:
			keyID = f.number
			return f.kind == protowire.Fixed64Type
		case 3:
			signature = f.bytes
			return f.kind == protowire.BytesType
		}
		return true
	})
	switch {
	case err != nil:
		return nil, nil, refuse("malformed", "the envelope is not a SignedBundle: %v", err)
	case len(payload) == 0:
		return nil, nil, refuse("malformed", "the envelope has no payload")
	case len(signature) == 0:
		return nil, nil, refuse("unsigned", "there is no signature")
	}
	key, known := keys[keyID]
	if !known {
		return nil, nil, refuse("unknown_key", "key %016x is not among the trusted keys", keyID)
	}
	if len(signature) != ed25519.SignatureSize ||
		!ed25519.Verify(key.Public, append([]byte(domain), payload...), signature) {
		return nil, nil, refuse("bad_signature", "the signature is not that of key %016x over this payload", keyID)
	}
	return payload, &key, nil
}

// Fields of a Bundle, by their number.
const (
	fieldFormat     = 1
	fieldSerial     = 2
	fieldTarget     = 3
	fieldSource     = 4
	fieldModel      = 5
	fieldVersion    = 6
	fieldRollbackTo = 7
	fieldProgram    = 8
	fieldTree       = 9
	fieldWindow     = 10
	fieldPolicy     = 11
	fieldGolden     = 12
	fieldModels     = 13
	fieldLaw        = 14
	fieldOfPolicy   = 15
)

// manifest reads a payload. The order of its checks is that of schema/README.md.
func manifest(payload []byte) (*Bundle, error) {
	sum := sha256.Sum256(payload)
	b := &Bundle{Hash: hex.EncodeToString(sum[:])}
	var format, source uint64
	var given [fieldOfPolicy + 1]bool
	var models []model
	var ofLaw *law
	decides := newContents()
	err := fields(payload, fieldOfPolicy, []protowire.Number{fieldRollbackTo, fieldModels}, func(
		number protowire.Number, f field) bool {
		isBytes, isVarint := f.kind == protowire.BytesType, f.kind == protowire.VarintType
		if number <= fieldOfPolicy {
			given[number] = true
		}
		decides.add(number, f)
		switch number {
		case fieldFormat:
			format = f.number
			return isVarint && f.number < 1<<32
		case fieldSerial:
			b.Serial = protowire.DecodeZigZag(f.number)
			return isVarint
		case fieldTarget:
			b.Target = string(f.bytes)
			return isBytes && isText(f.bytes)
		case fieldSource:
			source = f.number
			return isVarint && f.number < 1<<32
		case fieldModel:
			b.Model = string(f.bytes)
			return isBytes && isText(f.bytes)
		case fieldVersion:
			b.Version = uint32(f.number)
			return isVarint && f.number < 1<<32
		case fieldRollbackTo:
			b.RollbackTo = append(b.RollbackTo, hex.EncodeToString(f.bytes))
			return isBytes && len(f.bytes) == hashBytes && len(b.RollbackTo) <= maxRollbackTo
		case fieldProgram, fieldTree, fieldWindow, fieldGolden:
			return isBytes
		case fieldPolicy:
			b.Mode = readMode(f.bytes)
			return isBytes
		case fieldModels:
			m, err := readModel(f.bytes)
			models = append(models, m)
			return isBytes && err == nil
		case fieldLaw:
			l, err := readLaw(f.bytes)
			ofLaw = l
			return isBytes && err == nil
		case fieldOfPolicy:
			b.OfPolicy = string(f.bytes)
			return isBytes && isText(f.bytes)
		}
		return true
	})
	b.Models = decides.hex()
	b.Source = map[uint64]Source{1: Registry, 2: Online}[source]
	switch {
	case err != nil:
		return nil, refuse("malformed", "the payload is not a Bundle: %v", err)
	case b.Serial <= 0 || b.Target == "":
		return nil, refuse("malformed", "serial %d, target %q: both must be there", b.Serial, b.Target)
	case b.Source == "":
		return nil, refuse("unsupported_format", "source %d, this service knows 1 and 2", source)
	case format != 1 && format != 2:
		return nil, refuse("unsupported_format", "format %d, this service knows 1 and 2", format)
	case !given[fieldProgram] || format == 1 && !given[fieldTree]:
		return nil, refuse("unsupported_format", "a bundle needs a feature program and a tree")
	}
	if format == 1 {
		if len(models) > 0 || ofLaw != nil || b.OfPolicy != "" {
			return nil, refuse("malformed", "models, law or of_policy in a bundle of format 1")
		}
		b.OfPolicy = RwndFair
		return b, nil
	}
	kinds, why := kindsOf(models)
	if why == "" {
		why = ofLaw.wrong(kinds)
	}
	switch {
	case why != "":
		return nil, refuse("unsupported_format", "%s", why)
	case slices.Contains([]bool{given[fieldTree], given[fieldWindow], given[fieldGolden]}, true):
		return nil, refuse("malformed", "tree, window or golden in a bundle of format 2")
	case !PolicyName.MatchString(b.OfPolicy):
		return nil, refuse("malformed", "of_policy `%s`; it has 1 to 31 small letters, digits and dashes, a letter "+
			"first", b.OfPolicy)
	}
	return b, nil
}
