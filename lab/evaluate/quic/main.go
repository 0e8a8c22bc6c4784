// quic: downloads over QUIC, as they are with a stack of today (quic-go): one server, and clients that say when what
// came.
//
//	quic serve -listen ADDR:PORT -certificate FILE -out FILE
//	quic get -from ADDR:PORT -bind ADDR -certificate FILE -out FILE -begin NS -start S -stop S
//	         [-parallel N] [-every S] [-size BYTES | -burst BYTES]
//
// Both leave a JSON file of what they saw, at SIGTERM, and a client when its flow is over. Nothing of ECN is set here:
// quic-go sends ECT(0), checks that the path keeps it, and takes a mark for a congestion event.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	protocol  = "oal-lab"
	idle      = 60 * time.Second // a station may be away for a while
	handshake = 10 * time.Second // SYNs of TCP are repeated for longer, but no run lasts as long
	most      = 1024             // streams of a connection at once: more than a run has bursts
)

func config() *quic.Config {
	return &quic.Config{MaxIdleTimeout: idle, HandshakeIdleTimeout: handshake, MaxIncomingStreams: most}
}

// fail names what could not be done, and ends the program.
func fail(what string, err error) {
	fmt.Fprintf(os.Stderr, "quic: %s: %v\n", what, err)
	os.Exit(1)
}

// write leaves a value as JSON in a file.
func write(path string, value any) {
	text, err := json.Marshal(value)
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		fail("write "+path, err)
	}
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: quic serve|get OPTIONS (quic serve -h, quic get -h)")
		os.Exit(2)
	}
	until, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch os.Args[1] {
	case "serve":
		serve(until, os.Args[2:])
	case "get":
		get(until, os.Args[2:])
	default:
		fmt.Fprintf(os.Stderr, "quic: no command %s: serve or get\n", os.Args[1])
		os.Exit(2)
	}
}
