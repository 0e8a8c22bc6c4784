// Package listen runs the service's listeners.
package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
)

// Start begins to serve, over TLS if the server is configured for it; conns (nil: any number) bounds the connections.
// setting is what the address is called. The answer has the port that was chosen when 0 was asked for.
func Start(server *http.Server, setting, address string, conns *Conns, logger *slog.Logger) (net.Addr, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	bound := listener.Addr()
	if conns != nil {
		listener = conns.Listen(listener)
	}
	serve := server.Serve
	if server.TLSConfig != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	go func() {
		if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("a listener ended", "setting", setting, "error", err)
		}
	}()
	return bound, nil
}

// Stop waits for requests that run, and closes what does not end by itself.
func Stop(ctx context.Context, server *http.Server) {
	if err := server.Shutdown(ctx); err != nil {
		_ = server.Close()
	}
}
