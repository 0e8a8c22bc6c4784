package admin

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"oal/deploy/internal/store"
)

// copyTimeout is for the whole of a state: its pages cannot be reused meanwhile.
const copyTimeout = 5 * time.Minute

// state copies the embedded store, as it is at one moment, while the service runs.
func (a *Server) state(w http.ResponseWriter, r *http.Request) {
	err := a.Store.Snapshot(r.Context(), func(size int64, state io.WriterTo) error {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(copyTimeout))
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		w.Header().Set("Cache-Control", "no-store")
		_, err := state.WriteTo(w)
		return err
	})
	switch {
	case errors.Is(err, store.ErrNoSnapshot):
		failure(w, http.StatusConflict, err.Error())
	case err != nil: // who asked sees that it is shorter than it should be
		a.Logger.Error("the state was not copied whole", "error", err)
	}
}
