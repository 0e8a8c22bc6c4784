package bundle

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"google.golang.org/protobuf/encoding/protowire"
)

// Mode is what the control policy in a bundle lets APs do; a greater one may do more.
type Mode int

const (
	Off     Mode = iota // nothing; as a bundle without a control policy
	Shadow              // predict and report
	Enforce             // act on users' traffic
)

func (m Mode) String() string {
	return [...]string{"off", "shadow", "enforce"}[m]
}

// readMode is the mode of a Policy. What this service cannot read may do everything: to refuse it is the AP's.
func readMode(message []byte) (mode Mode) {
	err := fields(message, 1, nil, func(number protowire.Number, f field) bool {
		if number != 1 {
			return true
		}
		mode = Mode(f.number)
		return f.kind == protowire.VarintType && f.number <= uint64(Enforce)
	})
	if err != nil {
		return Enforce
	}
	return mode
}

// contents is a hash over what decides: program, models, law and the policy that they belong to. Bundles that differ
// only in target, serial, rollback and the numbers of their control policy have the same one.
type contents struct{ sum hash.Hash }

func newContents() contents { return contents{sha256.New()} }

func (c contents) add(number protowire.Number, f field) {
	switch number {
	case fieldProgram, fieldTree, fieldWindow, fieldModels, fieldLaw, fieldOfPolicy:
		var head [16]byte
		binary.BigEndian.PutUint64(head[:], uint64(number))
		binary.BigEndian.PutUint64(head[8:], uint64(len(f.bytes)))
		c.sum.Write(head[:])
		c.sum.Write(f.bytes)
	}
}

func (c contents) hex() string { return hex.EncodeToString(c.sum.Sum(nil)) }
