package bundle

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a message.
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
// is known, which is up to that number, comes once, except those named repeated: readers that take the first and
// readers that take the last must agree.
func fields(message []byte, known protowire.Number, repeated []protowire.Number,
	see func(protowire.Number, field) bool) error {
	var came uint64 // a bit for each known field: numbers are below 64
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
		if number <= known && !slices.Contains(repeated, number) {
			if came&(1<<number) != 0 {
				return fmt.Errorf("field %d comes twice", number)
			}
			came |= 1 << number
		}
	}
	return nil
}
