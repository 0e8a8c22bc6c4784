package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"flag"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

const step = 10 * time.Millisecond // between two entries of a transfer's progress

// transfer is what one download was: when it was asked for, and how much had come when.
type transfer struct {
	Port     int        `json:"port"`     // of the client
	Begin    int64      `json:"begin_ns"` // of the connection, or of a burst's request
	End      int64      `json:"end_ns"`   // its last byte came; 0: it did not
	Bytes    int64      `json:"bytes"`
	Progress [][2]int64 `json:"progress"` // (ns, bytes by then)
	Error    string     `json:"error,omitempty"`
}

// client is one flow of a scenario. lock guards transfers.
type client struct {
	from        *net.UDPAddr
	bind        net.IP
	trusted     *x509.CertPool
	size, burst int64
	every       time.Duration
	lock        sync.Mutex
	transfers   []*transfer
	going       sync.WaitGroup
}

func (c *client) add(t *transfer) *transfer {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.transfers = append(c.transfers, t)
	return t
}

// dial opens a connection from a port of its own, which is noted whatever comes of it.
func (c *client) dial(until context.Context, t *transfer) (*quic.Conn, *net.UDPConn, error) {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: c.bind})
	if err != nil {
		return nil, nil, err
	}
	t.Port = socket.LocalAddr().(*net.UDPAddr).Port
	security := &tls.Config{RootCAs: c.trusted, ServerName: c.from.IP.String(), NextProtos: []string{protocol}}
	conn, err := quic.Dial(until, socket, c.from, security, config())
	if err != nil {
		socket.Close()
		return nil, nil, err
	}
	return conn, socket, nil
}

// read asks for bytes on a stream of its own (0: until it is over) and notes them as they come.
func (t *transfer) read(until context.Context, conn *quic.Conn, bytes int64) error {
	stream, err := conn.OpenStreamSync(until)
	if err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint64(nil, uint64(bytes))
	if _, err := stream.Write(head); err != nil {
		return err
	}
	buffer, noted := make([]byte, chunk), int64(0)
	for {
		n, err := stream.Read(buffer)
		now := time.Now().UnixNano()
		t.Bytes += int64(n)
		done := bytes > 0 && t.Bytes >= bytes
		if n > 0 && (done || now-noted >= int64(step)) {
			t.Progress = append(t.Progress, [2]int64{now, t.Bytes})
			noted = now
		}
		if done {
			t.End = now
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// whole is a connection with one download. One of a size that has begun in time may end late; one without ends in time.
func (c *client) whole(until, open context.Context) {
	defer c.going.Done()
	if c.size == 0 {
		until = open
	}
	t := c.add(&transfer{Begin: time.Now().UnixNano()})
	conn, socket, err := c.dial(until, t)
	if err == nil {
		defer socket.Close()
		// What is open at the end goes with its connection: Read does not take a context.
		ending := context.AfterFunc(until, func() { _ = conn.CloseWithError(0, "enough") })
		err = t.read(until, conn, c.size)
		ending()
		_ = conn.CloseWithError(0, "")
	}
	if err != nil && until.Err() == nil {
		t.Error = err.Error()
	}
}

// bursts is a connection that stays, and asks for the next burst when its time has come and the last one is there.
func (c *client) bursts(until, open context.Context) {
	defer c.going.Done()
	first := &transfer{Begin: time.Now().UnixNano()}
	conn, socket, err := c.dial(until, first)
	if err != nil {
		first.Error = err.Error()
		c.add(first)
		return
	}
	defer socket.Close()
	ending := context.AfterFunc(until, func() { _ = conn.CloseWithError(0, "enough") })
	defer ending()
	for next := time.Now(); open.Err() == nil; next = next.Add(c.every) {
		if time.Now().After(next.Add(c.every)) { // it took longer: those of the time meanwhile are not made up for
			continue
		}
		if !sleep(open, time.Until(next)) {
			return
		}
		t := c.add(&transfer{Port: first.Port, Begin: time.Now().UnixNano()})
		if err := t.read(until, conn, c.burst); err != nil {
			if until.Err() == nil {
				t.Error = err.Error()
			}
			return
		}
	}
}

// sleep is false where the end came first.
func sleep(until context.Context, time_ time.Duration) bool {
	select {
	case <-until.Done():
		return false
	case <-time.After(time_):
		return true
	}
}

// run plays the flow: connections at once, or one each `every`, or one with bursts. None begins once it is not `open`.
func (c *client) run(until, open context.Context, parallel int) {
	work := c.whole
	if c.burst > 0 {
		work = c.bursts
	}
	for next := time.Now(); open.Err() == nil; next = next.Add(c.every) {
		if !sleep(open, time.Until(next)) {
			break
		}
		for range parallel {
			c.going.Add(1)
			go work(until, open)
		}
		if c.every == 0 || c.burst > 0 {
			break
		}
	}
	c.going.Wait()
}

func trust(path string) *x509.CertPool {
	text, err := os.ReadFile(path)
	if err != nil {
		fail("read the server's certificate", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		fail("read the server's certificate", fmt.Errorf("there is none in %s", path))
	}
	return pool
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second))
}

func get(until context.Context, words []string) {
	options := flag.NewFlagSet("get", flag.ExitOnError)
	from := options.String("from", "", "address and port of the server")
	bind := options.String("bind", "", "own address")
	certificate := options.String("certificate", "", "file with the server's certificate")
	out := options.String("out", "", "file for what was seen")
	begin := options.Int64("begin", 0, "time (ns since 1970) from which start and stop count")
	start := options.Float64("start", 0, "seconds after which the flow begins")
	stop := options.Float64("stop", 0, "seconds after which it ends")
	parallel := options.Int("parallel", 1, "connections at a time")
	every := options.Float64("every", 0, "seconds from one to the next")
	size := options.Int64("size", 0, "bytes of each (0: all that comes until the end)")
	burst := options.Int64("burst", 0, "bytes of each burst of a connection that stays")
	_ = options.Parse(words)
	server, err := net.ResolveUDPAddr("udp", *from)
	if err != nil {
		fail("-from", err)
	}
	c := client{from: server, bind: net.ParseIP(*bind), trusted: trust(*certificate), size: *size, burst: *burst,
		every: seconds(*every)}
	zero := time.Unix(0, *begin)
	if sleep(until, time.Until(zero.Add(seconds(*start)))) {
		open, cancel := context.WithDeadline(until, zero.Add(seconds(*stop)))
		c.run(until, open, *parallel)
		cancel()
	}
	write(*out, map[string]any{"transfers": c.transfers})
}
