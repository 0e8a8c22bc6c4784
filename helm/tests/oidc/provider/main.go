// Provider is an identity provider for tests: the example server of zitadel/oidc, on loopback.
//
//	usage: provider PORT USERS.json REDIRECT     (client `web`, whose secret is `secret`)
package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
)

func main() {
	if err := serve(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
		os.Exit(1)
	}
}

func serve(port, users, redirect string) error {
	people, err := storage.StoreFromFile(users)
	if err != nil {
		return err
	}
	storage.RegisterClients(storage.WebClient("web", "secret", redirect))
	issuer := fmt.Sprintf("http://localhost:%s/", port)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	handler := exampleop.SetupServer(issuer, storage.NewStorage(people), log, false)
	return http.ListenAndServe("127.0.0.1:"+port, handler)
}
