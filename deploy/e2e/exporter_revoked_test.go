package e2e

import (
	"path/filepath"
	"testing"

	"oal/deploy/internal/config"
)

// Revoked, the exporter is refused; restored, it goes on with what it has.
func TestExporterIsRevoked(t *testing.T) {
	t.Parallel()
	r := enrolling(t, config.Store{Path: filepath.Join(t.TempDir(), "state.db")}, keysFile)
	h := newHut(t, r, "hut-8", "hut")
	if out, err := h.enrol(ctl(t, r, "ticket", h.id, "--site", h.site)); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	h.start(t)
	is := func(connected, revoked bool) func() bool {
		return func() bool {
			v := apView{}
			return r.Get("/v1/aps/"+h.id, &v) == nil && v.Connected == connected && v.Revoked == revoked
		}
	}
	eventually(t, says("it asks"), is(true, false))
	ctl(t, r, "revoke", h.id, "--reason", "tested")
	eventually(t, says("it is refused"), func() bool { return h.status().Agent.PollErrors > 0 })
	eventually(t, says("it counts as gone"), is(false, true))
	ctl(t, r, "restore", h.id)
	eventually(t, says("it asks again"), is(true, false))
}
