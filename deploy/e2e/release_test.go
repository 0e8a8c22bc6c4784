package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/kafka"
	"oal/deploy/internal/release"
	"oal/deploy/internal/sim"
)

// A champion goes to everyone, an online tree to its AP; what is not signed by a trusted key goes to nobody.
func TestReleases(t *testing.T) {
	r := start(t, config.Store{Path: filepath.Join(t.TempDir(), "state.db")})
	f := connect(t, r.Config.APListen, "rel", "lab", 5)
	champion := send(t, release.Champion, "fleet", 1, nil)
	defer withdraw(t, "champion/fleet", "online/ap/rel-0002")
	eventually(t, func() string { return "the champion everywhere" }, func() bool { return f.Have(champion) == 5 })
	tree := send(t, release.Online, "ap/rel-0002", 1, nil)
	eventually(t, says("the online tree at its AP"), func() bool { return f.InForce("rel-0002") == tree })

	refusals := []kafka.Record{{Key: "champion/fleet", Value: []byte("{")}, {Key: "nonsense", Value: []byte("{}")}}
	_, forged, _ := signer.Release(release.Online, "ap/rel-0003", 9, time.Now().UnixMicro(),
		func(record map[string]any) {
			signed := record["bundle"].([]byte)
			signed[len(signed)-1] ^= 1 // the last byte of the signature
		})
	key, unsigned, _ := signer.Release(release.Champion, "fleet", 9, time.Now().UnixMicro(),
		func(record map[string]any) {
			signed := record["bundle"].([]byte)
			record["bundle"] = signed[:len(signed)-66] // without the field of the signature
		})
	thief := &sim.Signer{Key: signer.Trainer, Trainer: signer.Trainer, Size: 100} // of the trainer's key
	stolenKey, stolen, _ := thief.Release(release.Champion, "fleet", 9, time.Now().UnixMicro(), nil)
	_, future, _ := signer.Release(release.Online, "ap/rel-0003", 9, time.Now().Add(time.Hour).UnixMicro(), nil)
	refusals = append(refusals, kafka.Record{Key: "online/ap/rel-0003", Value: forged}, kafka.Record{Key: key,
		Value: unsigned}, kafka.Record{Key: stolenKey, Value: stolen},
		kafka.Record{Key: "online/ap/rel-0003", Value: future})
	must(t, releaser.Send(refusals...))
	later := send(t, release.Online, "ap/rel-0004", 2, nil)
	defer withdraw(t, "online/ap/rel-0004")
	eventually(t, says("a good release after bad ones"), func() bool { return f.InForce("rel-0004") == later })
	if f.InForce("rel-0001") != champion || f.InForce("rel-0003") != champion {
		t.Error("a refused release changed what an AP has")
	}
	for _, reason := range []string{"bad_record", "unsigned", "bad_signature", "not_permitted", "future"} {
		eventually(t, says("the history names "+reason), func() bool {
			return slices.ContainsFunc(history(t, r, "refused"), func(e historyEntry) bool {
				return strings.Contains(e.Detail, reason)
			})
		})
	}
	steps(t, r, rolloutOf(t, r, champion).ID, "started", "completed")
}

// A refused record pushes the good one out of the compacted topic; the service still knows it after a restart.
func TestRestartAfterRefusedRelease(t *testing.T) {
	t.Parallel()
	r := start(t, config.Store{Path: filepath.Join(t.TempDir(), "state.db")})
	f := connect(t, r.Config.APListen, "refused", "lab", 2)
	champion := send(t, release.Champion, "site/lab", 3, nil)
	defer withdraw(t, "champion/site/lab")
	eventually(t, says("the champion everywhere"), func() bool { return f.Have(champion) == 2 })
	must(t, releaser.Send(kafka.Record{Key: "champion/site/lab", Value: []byte(`{"bundle": "AAAA"}`)}))
	eventually(t, says("the refusal in the history"), func() bool {
		return slices.ContainsFunc(history(t, r, "refused"),
			func(e historyEntry) bool { return e.Key == "champion/site/lab" })
	})
	r.Kill()
	must(t, r.Start())
	late := connect(t, r.Config.APListen, "refused-late", "lab", 1)
	eventually(t, says("the champion at a new AP"), func() bool { return late.Have(champion) == 1 })
}
