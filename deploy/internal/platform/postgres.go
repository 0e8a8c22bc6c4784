package platform

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Postgres is a PostgreSQL server of its own on loopback, which trusts every client.
type Postgres struct {
	address   string
	data      string
	bin       string
	databases atomic.Int64        // made so far, for their names
	as        *syscall.Credential // PostgreSQL refuses to run as root
}

// StartPostgres makes a cluster in a folder and starts it.
func StartPostgres(folder string) (*Postgres, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no PostgreSQL; install it with `make -C deploy setup`")
	}
	p := &Postgres{bin: filepath.Dir(found[len(found)-1]), data: filepath.Join(folder, "data")}
	if err := os.MkdirAll(p.data, 0o700); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		if err := p.becomePostgres(folder); err != nil {
			return nil, err
		}
	}
	if err := p.run("initdb", "-D", p.data, "-A", "trust", "-U", "oal", "--no-sync", "--no-locale", "-E",
		"UTF8"); err != nil {
		return nil, err
	}
	addresses, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	_, port, _ := strings.Cut(addresses[0], ":")
	settings := fmt.Sprintf("-p %s -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c "+
		"shared_buffers=16MB", port)
	if err := p.run("pg_ctl", "-D", p.data, "-w", "-l", filepath.Join(p.data, "server.log"), "-o", settings,
		"start"); err != nil {
		return nil, err
	}
	p.address = addresses[0]
	return p, nil
}

func (p *Postgres) dsn(database string) string {
	return "postgres://oal@" + p.address + "/" + database + "?sslmode=disable"
}

// NewDatabase makes an empty database and writes its connection string into a file.
func (p *Postgres) NewDatabase(ctx context.Context, dsnFile string) (string, error) {
	conn, err := pgx.Connect(ctx, p.dsn("postgres"))
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	name := fmt.Sprintf("test%d", p.databases.Add(1))
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	return dsnFile, os.WriteFile(dsnFile, []byte(p.dsn(name)+"\n"), 0o600)
}

// Behind makes a connection string, as NewDatabase wrote it, one to the same database through a proxy.
func (p *Postgres) Behind(dsnFile, to string) (*Proxy, error) {
	dsn, err := os.ReadFile(dsnFile)
	if err != nil {
		return nil, err
	}
	proxy, err := StartProxy(p.address)
	if err != nil {
		return nil, err
	}
	return proxy, os.WriteFile(to, []byte(strings.Replace(string(dsn), p.address, proxy.Address, 1)), 0o600)
}

// becomePostgres makes the data folder that of the user postgres, and the folders above it passable.
func (p *Postgres) becomePostgres(folder string) error {
	account, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	p.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	if err := os.Chown(p.data, uid, gid); err != nil {
		return err
	}
	for at := folder; len(at) > len(os.TempDir()); at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o711); err != nil {
			return err
		}
	}
	return nil
}

func (p *Postgres) run(program string, args ...string) error {
	cmd := exec.Command(filepath.Join(p.bin, program), args...)
	cmd.Dir = p.data
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
	log, err := os.CreateTemp("", program)
	if err != nil {
		return err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log // a pipe would be held open by the server that pg_ctl starts
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s: %w\n%s", program, err, text)
	}
	return nil
}

// Stop ends the server.
func (p *Postgres) Stop() {
	if err := p.run("pg_ctl", "-D", p.data, "-m", "immediate", "-w", "stop"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
