// Package bundle reads the few fields of a signed bundle that the push service needs, and checks its signature.
// The format is in schema/README.md, "Bundles"; what is inside a model is the AP's to check.
package bundle

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// MaxBytes is settings.max_bundle_bytes: a larger signed bundle is refused unread.
	MaxBytes      = 262144
	maxRollbackTo = 4                   // bundles that one may name; settings of the format, as those below
	hashBytes     = sha256.Size         // of a bundle's payload
	maxText       = 127                 // bytes of a name
	domain        = "OALB1"             // stands before what is signed: no signature of another kind is taken for it
	rollbackTo    = protowire.Number(7) // the field of a Bundle that may come several times
	bundleFields  = 12                  // highest number of a field that is known
	signedFields  = 3                   // likewise of a SignedBundle
)

// Source says who made a bundle.
type Source string

const (
	Registry Source = "registry"
	Online   Source = "online"
)

// Bundle is what the push service knows of a bundle.
type Bundle struct {
	Hash       string // SHA-256 of the payload, lower-case hex: the ETag
	Serial     int64  // microseconds since 1970
	Target     string // fleet, site/SITE or ap/AP_ID
	Source     Source
	Model      string
	Version    uint32
	RollbackTo []string // hashes, hex
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

// Open checks the envelope and its signature and reads the manifest. Errors are *Error.
func Open(signed []byte, keys Keys) (*Bundle, error) {
	if len(signed) > MaxBytes {
		return nil, refuse("oversized", "%d bytes, the limit is %d", len(signed), MaxBytes)
	}
	payload, err := verify(signed, keys)
	if err != nil {
		return nil, err
	}
	return manifest(payload)
}

func verify(signed []byte, keys Keys) ([]byte, error) {
	var payload, signature []byte
	var keyID uint64
	err := fields(signed, signedFields, 0, func(number protowire.Number, f field) bool {
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
		return nil, refuse("malformed", "the envelope is not a SignedBundle: %v", err)
	case len(payload) == 0:
		return nil, refuse("malformed", "the envelope has no payload")
	case len(signature) == 0:
		return nil, refuse("unsigned", "there is no signature")
	}
	key, known := keys[keyID]
	if !known {
		return nil, refuse("unknown_key", "key %016x is not among the trusted keys", keyID)
	}
	if len(signature) != ed25519.SignatureSize || !ed25519.Verify(key, append([]byte(domain), payload...), signature) {
		return nil, refuse("bad_signature", "the signature is not that of key %016x over this payload", keyID)
	}
	return payload, nil
}

func manifest(payload []byte) (*Bundle, error) {
	sum := sha256.Sum256(payload)
	b := &Bundle{Hash: hex.EncodeToString(sum[:])}
	var format, source uint64
	var program, tree bool
	err := fields(payload, bundleFields, rollbackTo, func(number protowire.Number, f field) bool {
		isBytes, isVarint := f.kind == protowire.BytesType, f.kind == protowire.VarintType
		switch number {
		case 1:
			format = f.number
			return isVarint && f.number < 1<<32
		case 2:
			b.Serial = protowire.DecodeZigZag(f.number)
			return isVarint
		case 3:
			b.Target = string(f.bytes)
			return isBytes && isText(f.bytes)
		case 4:
			source = f.number
			return isVarint && f.number < 1<<32
		case 5:
			b.Model = string(f.bytes)
			return isBytes && isText(f.bytes)
		case 6:
			b.Version = uint32(f.number)
			return isVarint && f.number < 1<<32
		case rollbackTo:
			b.RollbackTo = append(b.RollbackTo, hex.EncodeToString(f.bytes))
			return isBytes && len(f.bytes) == hashBytes && len(b.RollbackTo) <= maxRollbackTo
		case 8:
			program = true
			return isBytes
		case 9:
			tree = true
			return isBytes
		}
		return true
	})
	b.Source = map[uint64]Source{1: Registry, 2: Online}[source]
	switch {
	case err != nil:
		return nil, refuse("malformed", "the payload is not a Bundle: %v", err)
	case b.Serial <= 0 || b.Target == "":
		return nil, refuse("malformed", "serial %d, target %q: both must be there", b.Serial, b.Target)
	case b.Source == "":
		return nil, refuse("unsupported_format", "source %d, this service knows 1 and 2", source)
	case format != 1:
		return nil, refuse("unsupported_format", "format %d, this service knows 1", format)
	case !program || !tree:
		return nil, refuse("unsupported_format", "a bundle needs a feature program and a tree")
	}
	return b, nil
}

type field struct {
	kind   protowire.Type
	number uint64 // of a varint or fixed field
	bytes  []byte
}

func isText(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return len(b) <= maxText
}

// fields calls see for each field of a message; see returns false for one that has a wrong type or value. A field that
// is known comes once, except the one named repeated: readers that take the first and readers that take the last must
// agree.
func fields(message []byte, known, repeated protowire.Number, see func(protowire.Number, field) bool) error {
	var came [bundleFields + 1]bool
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		f := field{kind: kind}
		switch kind {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			f.number, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if !see(number, f) {
			return fmt.Errorf("field %d has the wrong type, size or number of values", number)
		}
		if number <= known && number != repeated {
			if came[number] {
				return fmt.Errorf("field %d comes twice", number)
			}
			came[number] = true
		}
	}
	return nil
}
