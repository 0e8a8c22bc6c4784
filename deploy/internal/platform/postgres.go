package platform

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Postgres is a PostgreSQL server of its own on loopback, trusting its socket folder.
type Postgres struct {
	DSNFile string
	data    string
	bin     string
	as      *syscall.Credential // PostgreSQL refuses to run as root
}

// StartPostgres makes a cluster in a folder and starts it.
func StartPostgres(folder string) (*Postgres, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no PostgreSQL; install it with `make -C deploy setup`")
	}
	p := &Postgres{bin: filepath.Dir(found[len(found)-1]), data: filepath.Join(folder, "data"), DSNFile: filepath.Join(folder, "dsn")}
	if err := os.MkdirAll(p.data, 0o700); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		if err := p.becomePostgres(folder); err != nil {
			return nil, err
		}
	}
	if err := p.run("initdb", "-D", p.data, "-A", "trust", "-U", "oal", "--no-sync", "--no-locale", "-E", "UTF8"); err != nil {
		return nil, err
	}
	addresses, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	_, port, _ := strings.Cut(addresses[0], ":")
	settings := fmt.Sprintf("-p %s -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c shared_buffers=16MB", port)
	if err := p.run("pg_ctl", "-D", p.data, "-w", "-l", filepath.Join(p.data, "server.log"), "-o", settings, "start"); err != nil {
		return nil, err
	}
	return p, os.WriteFile(p.DSNFile, []byte("postgres://oal@"+addresses[0]+"/postgres?sslmode=disable\n"), 0o600)
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
