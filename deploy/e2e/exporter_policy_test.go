package e2e

import (
	"crypto/ed25519"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/config"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/platform"
	"oal/deploy/internal/release"
)

// fields calls with every field of a message, its tag included, and the value of one of bytes.
func fields(t *testing.T, message []byte, with func(number protowire.Number, whole, value []byte)) {
	t.Helper()
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			t.Fatal("not a message")
		}
		n := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if n < 0 {
			t.Fatal("not a message")
		}
		var value []byte
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message[tag:])
		}
		with(number, message[:tag+n], value)
		message = message[tag+n:]
	}
}

// realBundle is a bundle that an exporter takes: the first golden one of its format, for a scope and a policy, signed.
func realBundle(t *testing.T, policy, scope string, serial int64) (signed []byte) {
	t.Helper()
	name := "bundles2.bin"
	if policy == bundle.RwndFair {
		name = "bundles.bin"
	}
	data, err := os.ReadFile(filepath.Join(platform.Folder(), "..", "schema", "golden", name))
	must(t, err)
	var golden, payload []byte
	fields(t, data[5:5+binary.LittleEndian.Uint32(data[1:])], func(number protowire.Number, _, value []byte) {
		if number == 1 {
			golden = value
		}
	})
	text := func(number protowire.Number, value string) {
		payload = protowire.AppendString(protowire.AppendTag(payload, number, protowire.BytesType), value)
	}
	fields(t, golden, func(number protowire.Number, whole, _ []byte) {
		switch number {
		case 2:
			payload = protowire.AppendVarint(protowire.AppendTag(payload, 2, protowire.VarintType),
				protowire.EncodeZigZag(serial))
		case 3:
			text(3, scope)
		case 15:
			text(15, policy)
		default:
			payload = append(payload, whole...)
		}
	})
	signed = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), payload)
	signed = protowire.AppendFixed64(protowire.AppendTag(signed, 2, protowire.Fixed64Type),
		bundle.KeyID(signer.Key.Public().(ed25519.PublicKey)))
	return protowire.AppendBytes(protowire.AppendTag(signed, 3, protowire.BytesType),
		ed25519.Sign(signer.Key, append([]byte("OALB1"), payload...)))
}

// sendReal releases a bundle that an exporter takes, to one AP.
func sendReal(t *testing.T, policy, scope string) (hash string) {
	t.Helper()
	nowUS := time.Now().UnixMicro()
	signed := realBundle(t, policy, scope, nowUS)
	b, err := bundle.Open(signed, signer.Keys())
	must(t, err)
	key, value, _ := signer.ReleaseOf(policy, release.Champion, scope, b.Version, nowUS, func(record map[string]any) {
		record["bundle"], record["hash"], record["model"], record["source"] = signed, b.Hash, b.Model, b.Source
	})
	must(t, releaser.Send(kafka.Record{Key: key, Value: value}))
	return b.Hash
}

// The exporter has each policy that is released to it, and gives up one that is withdrawn; the service knows.
func TestExporterHasSeveralPolicies(t *testing.T) {
	t.Parallel()
	r := enrolling(t, config.Store{Path: filepath.Join(t.TempDir(), "state.db")}, keysFile)
	h := newHut(t, r, "hut-9", "hut")
	if out, err := h.enrol(ctl(t, r, "ticket", h.id, "--site", h.site)); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	scope := "ap/" + h.id
	defer withdraw(t, "champion/"+scope, "champion/"+scope+"/example", "champion/"+scope+"/other")
	fair, example := sendReal(t, bundle.RwndFair, scope), sendReal(t, "example", scope)
	h.start(t)
	has := func(want map[string]string) func() bool {
		return func() bool {
			var view struct {
				Applied  string
				Policies []struct{ Policy, Applied string }
			}
			s := h.status()
			if len(s.Agent.APs) != 1 || r.Get("/v1/aps/"+h.id, &view) != nil {
				return false
			}
			here, there := map[string]string{}, map[string]string{bundle.RwndFair: view.Applied}
			for policy, held := range s.Agent.APs[0].Policies {
				here[policy] = held.Bundle
			}
			for _, held := range view.Policies {
				there[held.Policy] = held.Applied
			}
			return maps.Equal(here, want) && maps.Equal(there, want)
		}
	}
	eventually(t, says("both policies"), has(map[string]string{bundle.RwndFair: fair, "example": example}))
	other := sendReal(t, "other", scope)
	eventually(t, says("a third"),
		has(map[string]string{bundle.RwndFair: fair, "example": example, "other": other}))
	withdraw(t, "champion/"+scope+"/example")
	eventually(t, says("one is given up"), has(map[string]string{bundle.RwndFair: fair, "other": other}))
	example = sendReal(t, "example", scope)
	eventually(t, says("it comes back"),
		has(map[string]string{bundle.RwndFair: fair, "example": example, "other": other}))
}
