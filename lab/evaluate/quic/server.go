package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

const chunk = 1 << 16 // bytes that are written at a time; flow and congestion control decide what leaves

// account is what the server says of one connection at its end.
type account struct {
	Client   string `json:"client"`
	Sent     uint64 `json:"packets_sent"`
	Declared uint64 `json:"packets_lost"` // that the server found lost, and marks that it took for a loss
	RTTus    int64  `json:"smoothed_rtt_us"`
}

// accounts of all connections, the ended ones too. lock guards done.
type accounts struct {
	lock sync.Mutex
	done []account
	left sync.WaitGroup
}

// certificate makes a key, and a certificate of an address that is written to a file: clients trust that one alone.
func certificate(address, path string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		fail("make a key", err)
	}
	// The guest's clock may be anything.
	template := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lab"},
		IPAddresses: []net.IP{net.ParseIP(address)}, BasicConstraintsValid: true, IsCA: true,
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		fail("make a certificate", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(path, text, 0o644); err != nil {
		fail("write "+path, err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// answer sends as many bytes as a stream's first eight say; 0: until the client has enough.
func answer(stream *quic.Stream) {
	var head [8]byte
	if _, err := io.ReadFull(stream, head[:]); err != nil {
		stream.CancelWrite(0)
		return
	}
	left, endless := binary.BigEndian.Uint64(head[:]), binary.BigEndian.Uint64(head[:]) == 0
	bytes := make([]byte, chunk)
	for endless || left > 0 {
		n := uint64(chunk)
		if !endless {
			n = min(n, left)
		}
		if _, err := stream.Write(bytes[:n]); err != nil {
			return
		}
		left -= n
	}
	stream.Close()
}

// talk serves a connection to its end, or to that of the run: a listener that is closed leaves connections open.
func (a *accounts) talk(until context.Context, conn *quic.Conn) {
	defer a.left.Done()
	ending := context.AfterFunc(until, func() { _ = conn.CloseWithError(0, "the run is over") })
	defer ending()
	for {
		stream, err := conn.AcceptStream(conn.Context())
		if err != nil {
			break
		}
		go answer(stream)
	}
	stats := conn.ConnectionStats()
	a.lock.Lock()
	defer a.lock.Unlock()
	a.done = append(a.done, account{Client: conn.RemoteAddr().String(), Sent: stats.PacketsSent,
		Declared: stats.PacketsLost, RTTus: stats.SmoothedRTT.Microseconds()})
}

func serve(until context.Context, words []string) {
	options := flag.NewFlagSet("serve", flag.ExitOnError)
	listen := options.String("listen", "", "address and port")
	trusted := options.String("certificate", "", "file to which the certificate is written, for clients")
	out := options.String("out", "", "file for what was seen")
	_ = options.Parse(words)
	address, _, err := net.SplitHostPort(*listen)
	if err != nil {
		fail("-listen", err)
	}
	security := &tls.Config{Certificates: []tls.Certificate{certificate(address, *trusted)},
		NextProtos: []string{protocol}, MinVersion: tls.VersionTLS13}
	listener, err := quic.ListenAddr(*listen, security, config())
	if err != nil {
		fail("listen on "+*listen, err)
	}
	fmt.Fprintln(os.Stderr, "quic: ready on", listener.Addr())
	var all accounts
	for {
		conn, err := listener.Accept(until)
		if err != nil {
			break
		}
		all.left.Add(1)
		go all.talk(until, conn)
	}
	listener.Close()
	all.left.Wait()
	write(*out, map[string]any{"connections": all.done})
}
