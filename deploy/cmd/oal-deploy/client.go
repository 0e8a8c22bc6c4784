package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"oal/deploy/internal/config"
	"oal/deploy/internal/store"
	"oal/deploy/internal/tlsconf"
)

// client of the admin interface.
type client struct {
	base, token string
	http        *http.Client
	out         io.Writer
}

// newClient talks to the service of a configuration, on the same machine or pod.
func newClient(settings *config.Config, tokenFile string, out io.Writer) (*client, error) {
	if tokenFile == "" {
		tokenFile = settings.AdminTokenFile
	}
	token, err := config.Secret(tokenFile)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(settings.AdminListen)
	if err != nil {
		return nil, fmt.Errorf("admin_listen: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	c := &client{"http://" + net.JoinHostPort(host, port), token, &http.Client{Timeout: 6 * time.Minute}, out}
	if settings.AdminTLS != nil {
		roots, _, err := tlsconf.Roots("tls.client_ca, which admin_tls is checked by", settings.TLS.ClientCA)
		if err != nil {
			return nil, err
		}
		c.base = "https://" + net.JoinHostPort(host, port)
		c.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	}
	return c, nil
}

func (c *client) ask(method, path string, body any) (*http.Response, error) {
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, c.base+path, payload)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the service does not answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		var failure struct{ Error string }
		_ = json.NewDecoder(response.Body).Decode(&failure)
		return nil, fmt.Errorf("%s: %s", response.Status, failure.Error)
	}
	return response, nil
}

func (c *client) call(method, path string, body, answer any) error {
	response, err := c.ask(method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(answer)
}

// backup writes a copy of the state, and checks that it is whole before it has its name.
func (c *client) backup(path string) error {
	response, err := c.ask("GET", "/v1/state", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	part := path + ".part"
	file, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(part)
	n, err := io.Copy(file, response.Body)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("the copy is not whole: %w", err)
	}
	if err := store.CheckSnapshot(part); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "%s: %d bytes; it holds the keys of no AP, and the hashes of open tickets\n", path, n)
	return err
}
