package listen

import (
	"net"
	"net/http"
	"sync/atomic"
)

// Conns counts the connections of a listener, and closes those beyond the limit at once: memory is bounded whoever
// knocks.
type Conns struct {
	Max     int64
	Refused func()
	Changed func(open int64) // nil: nobody wants to know
	open    atomic.Int64
}

// State is an http.Server's ConnState.
func (c *Conns) State(_ net.Conn, state http.ConnState) {
	var open int64
	switch state {
	case http.StateNew:
		open = c.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		open = c.open.Add(-1)
	default:
		return
	}
	if c.Changed != nil {
		c.Changed(open)
	}
}

// Listen is the listener with the limit.
func (c *Conns) Listen(l net.Listener) net.Listener { return &bounded{l, c} }

type bounded struct {
	net.Listener
	conns *Conns
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil || b.conns.open.Load() < b.conns.Max {
			return conn, err
		}
		b.conns.Refused()
		_ = conn.Close()
	}
}
