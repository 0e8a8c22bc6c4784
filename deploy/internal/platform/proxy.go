package platform

import (
	"net"
	"sync"
)

// Proxy is a network between a client and a server that can stop carrying anything: connections are accepted and stay
// open, and nobody hears the other, nor that they hung up.
type Proxy struct {
	Address  string
	to       string
	listener net.Listener

	lock sync.Mutex    // guards open
	open chan struct{} // closed: bytes are carried
}

// StartProxy listens on loopback for a server's address.
func StartProxy(to string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{Address: listener.Addr().String(), to: to, listener: listener, open: make(chan struct{})}
	close(p.open)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.carry(client)
		}
	}()
	return p, nil
}

// Stall carries nothing from now on, until the function that it gives is called.
func (p *Proxy) Stall() (resume func()) {
	p.lock.Lock()
	defer p.lock.Unlock()
	open := make(chan struct{})
	p.open = open
	return sync.OnceFunc(func() { close(open) })
}

// Close ends the listener.
func (p *Proxy) Close() { p.listener.Close() }

func (p *Proxy) wait() {
	p.lock.Lock()
	open := p.open
	p.lock.Unlock()
	<-open
}

func (p *Proxy) carry(client net.Conn) {
	defer client.Close()
	p.wait()
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer server.Close()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			defer func() { ended <- struct{}{} }()
			for part := make([]byte, 64<<10); ; {
				n, err := way[0].Read(part)
				p.wait()
				if _, failed := way[1].Write(part[:n]); err != nil || failed != nil {
					return
				}
			}
		}()
	}
	<-ended
}
