package bundle

import (
	"crypto/ed25519"
	"encoding/hex"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Sign encodes a bundle with the given contents (the encoded messages of program and tree) in its signed envelope: one
// of rwnd-fair in format 1, one of any other policy in format 2, with law direct.
// The simulator and the tests make releases with it; real ones come from the trainer and the registry.
func Sign(b Bundle, program, tree []byte, key ed25519.PrivateKey) []byte {
	source := map[Source]uint64{Registry: 1, Online: 2}[b.Source]
	format := uint64(1)
	if b.OfPolicy != "" && b.OfPolicy != RwndFair {
		format = 2
	}
	var p []byte
	number := func(field protowire.Number, value uint64) {
		if value != 0 {
			p = protowire.AppendVarint(protowire.AppendTag(p, field, protowire.VarintType), value)
		}
	}
	bytes := func(field protowire.Number, value []byte) {
		p = protowire.AppendBytes(protowire.AppendTag(p, field, protowire.BytesType), value)
	}
	number(1, format)
	number(2, protowire.EncodeZigZag(b.Serial))
	bytes(3, []byte(b.Target))
	number(4, source)
	bytes(5, []byte(b.Model))
	number(6, uint64(b.Version))
	for _, hash := range b.RollbackTo {
		raw, _ := hex.DecodeString(hash)
		bytes(7, raw)
	}
	bytes(8, program)
	if format == 1 {
		bytes(9, tree)
	}
	if b.Mode != Off {
		bytes(11, protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(b.Mode)))
	}
	if format == 2 {
		bytes(13, message(text(1, "class"), text(2, "tree"), text(3, string(tree))))
		bytes(14, message(text(1, "direct"), text(2, "flow"), text(3, "rwnd"),
			text(4, "\x00\x00\xc0\xa9\x07\xe0\xd4\x03"))) // 0, 0, 60000, 30000
		bytes(15, []byte(b.OfPolicy))
	}
	return envelope(p, KeyID(key.Public().(ed25519.PublicKey)), ed25519.Sign(key, append([]byte(domain), p...)))
}

func message(fields ...[]byte) []byte { return slices.Concat(fields...) }

func text(number protowire.Number, value string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

func envelope(payload []byte, keyID uint64, signature []byte) []byte {
	e := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), payload)
	e = protowire.AppendFixed64(protowire.AppendTag(e, 2, protowire.Fixed64Type), keyID)
	return protowire.AppendBytes(protowire.AppendTag(e, 3, protowire.BytesType), signature)
}
