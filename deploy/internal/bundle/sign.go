package bundle

import (
	"crypto/ed25519"
	"encoding/hex"

	"google.golang.org/protobuf/encoding/protowire"
)

// Sign encodes a bundle with the given contents (the encoded messages of program and tree) in its signed envelope.
// The simulator and the tests make releases with it; real ones come from the trainer and the registry.
func Sign(b Bundle, program, tree []byte, key ed25519.PrivateKey) []byte {
	source := map[Source]uint64{Registry: 1, Online: 2}[b.Source]
	var p []byte
	number := func(field protowire.Number, value uint64) {
		if value != 0 {
			p = protowire.AppendVarint(protowire.AppendTag(p, field, protowire.VarintType), value)
		}
	}
	bytes := func(field protowire.Number, value []byte) {
		p = protowire.AppendBytes(protowire.AppendTag(p, field, protowire.BytesType), value)
	}
	number(1, 1)
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
	bytes(9, tree)
	return envelope(p, KeyID(key.Public().(ed25519.PublicKey)), ed25519.Sign(key, append([]byte(domain), p...)))
}

func envelope(payload []byte, keyID uint64, signature []byte) []byte {
	e := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), payload)
	e = protowire.AppendFixed64(protowire.AppendTag(e, 2, protowire.Fixed64Type), keyID)
	return protowire.AppendBytes(protowire.AppendTag(e, 3, protowire.BytesType), signature)
}
