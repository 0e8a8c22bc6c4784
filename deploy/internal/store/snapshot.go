package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Snapshot copies the file as one transaction sees it, while others write.
func (b *Bolt) Snapshot(_ context.Context, write func(size int64, state io.WriterTo) error) error {
	return wrap("copying the state", b.db.View(func(tx *bbolt.Tx) error { return write(tx.Size(), tx) }))
}

// Snapshot is PostgreSQL's to make.
func (p *Postgres) Snapshot(context.Context, func(int64, io.WriterTo) error) error {
	return ErrNoSnapshot
}

// CheckSnapshot says what is wrong with a copy of the state.
func CheckSnapshot(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: copyWait, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("%s is no state of the push service: %w", path, err)
	}
	defer db.Close()
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return db.View(func(tx *bbolt.Tx) error {
		if tx.Size() > info.Size() { // looking further would read beyond the end of the mapped file
			return fmt.Errorf("%s is cut off: it has %d bytes of %d", path, info.Size(), tx.Size())
		}
		var found error
		for broken := range tx.Check() { // to its end: a goroutine sends
			found = fmt.Errorf("%s is damaged: %w", path, broken)
		}
		if found == nil && tx.Bucket(bucketRollouts) == nil {
			found = fmt.Errorf("%s is no state of the push service: it holds no rollouts", path)
		}
		return found
	})
}

// Errors of a restoration.
var (
	ErrRunning = errors.New("the service runs; stop it first")
	ErrThere   = errors.New("there is a state already; --force puts it aside")
)

const (
	copyWait    = time.Second            // for a copy that another command reads
	runningWait = 100 * time.Millisecond // for the file of a state: a service that runs has it locked for all its life
)

// Restore puts a copy of the state where the embedded store has it, while no service runs. What was there is kept as
// PATH.before.
func Restore(snapshot, path string, force bool) error {
	if _, err := os.Stat(path); err == nil {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: runningWait})
		switch {
		case errors.Is(err, berrors.ErrTimeout):
			return fmt.Errorf("%s: %w", path, ErrRunning)
		case err == nil:
			defer db.Close() // a service that is started meanwhile waits
		}
		if !force {
			return fmt.Errorf("%s: %w", path, ErrThere)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	copied := path + ".restored"
	defer os.Remove(copied)
	if err := copyFile(snapshot, copied); err != nil {
		return err
	}
	if err := CheckSnapshot(copied); err != nil {
		return err
	}
	if err := os.Rename(path, path+".before"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(copied, path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
