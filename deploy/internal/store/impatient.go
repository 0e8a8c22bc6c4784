package store

import (
	"context"
	"net"
	"sync"
	"time"
)

// impatient is a connection on which no read or write waits longer than a time: a server that is gone without a word,
// behind a network that drops packets, would otherwise hold it until TCP gives up, which takes minutes. pgx reads only
// while it expects an answer.
type impatient struct {
	net.Conn
	timeout time.Duration

	lock        sync.Mutex // guards read and write, and keeps the last deadline that was meant in force
	read, write time.Time  // as pgx set them; zero: none
}

// dial connects for pgx.
func dial(timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: timeout}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &impatient{Conn: conn, timeout: timeout}, nil
	}
}

// within is the earlier of a deadline that was asked for and the one of a call that begins now.
func (c *impatient) within(asked time.Time) time.Time {
	latest := time.Now().Add(c.timeout)
	if !asked.IsZero() && asked.Before(latest) {
		return asked
	}
	return latest
}

func (c *impatient) Read(b []byte) (int, error) {
	c.lock.Lock()
	err := c.Conn.SetReadDeadline(c.within(c.read))
	c.lock.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *impatient) Write(b []byte) (int, error) {
	c.lock.Lock()
	err := c.Conn.SetWriteDeadline(c.within(c.write))
	c.lock.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *impatient) SetDeadline(t time.Time) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.read, c.write = t, t
	return c.Conn.SetDeadline(t)
}

func (c *impatient) SetReadDeadline(t time.Time) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.read = t
	return c.Conn.SetReadDeadline(t)
}

func (c *impatient) SetWriteDeadline(t time.Time) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.write = t
	return c.Conn.SetWriteDeadline(t)
}
