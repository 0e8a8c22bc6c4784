package store

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/rollout"
)

// Buckets of the file.
var (
	bucketRollouts = []byte("rollouts")
	bucketReleases = []byte("releases")
	bucketHistory  = []byte("history")
	bucketPending  = []byte("pending")
	bucketAPs      = []byte("aps")
	bucketKills    = []byte("kills")
	bucketTickets  = []byte("tickets")
	bucketAccess   = []byte("access")
	bucketAudit    = []byte("audit")

	buckets = [][]byte{bucketRollouts, bucketReleases, bucketHistory, bucketPending, bucketAPs, bucketKills,
		bucketTickets, bucketAccess, bucketAudit}
)

// lockWait is how long an old process may take to let go of the file. Only a test changes it.
var lockWait = 5 * time.Second

// Bolt is the embedded store: one file, one process.
type Bolt struct{ db *bbolt.DB }

type stored struct {
	Key string `json:"key"`
	Raw []byte `json:"raw"`
}

// OpenBolt opens or makes the file. A second process that opens it gets an error that says so.
func OpenBolt(path string) (*Bolt, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("store %s: another process has it open; several replicas need store.postgres_dsn_file",
			path)
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	return &Bolt{db}, nil
}

func (b *Bolt) Close() error               { return b.db.Close() }
func (b *Bolt) Shared() bool               { return false }
func (b *Bolt) Ping(context.Context) error { return b.db.View(func(*bbolt.Tx) error { return nil }) }

// Lead returns at once: there is nobody else.
func (b *Bolt) Lead(ctx context.Context) (context.Context, error) { return ctx, ctx.Err() }

// Alive is this replica alone.
func (b *Bolt) Alive(_ context.Context, replica string) (map[string]bool, error) {
	return map[string]bool{replica: true}, nil
}

func (b *Bolt) Rollouts(context.Context) ([]*rollout.Rollout, error) {
	rollouts, err := all[*rollout.Rollout](b, bucketRollouts)
	return rollouts, wrap("reading rollouts", err)
}

func (b *Bolt) Step(_ context.Context, r *rollout.Rollout, entries []Entry) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return wrap("storing a rollout's step", b.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(bucketRollouts)
		var before rollout.Rollout
		if old := bucket.Get([]byte(r.ID)); old != nil {
			if err := json.Unmarshal(old, &before); err != nil {
				return err
			}
		}
		if before.Revision != r.Revision-1 {
			return ErrConflict
		}
		if err := bucket.Put([]byte(r.ID), value); err != nil {
			return err
		}
		for _, e := range entries {
			seq, err := log(tx, e)
			if err == nil && e.Row != nil {
				err = tx.Bucket(bucketPending).Put(number(seq), e.Row)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

func (b *Bolt) Forget(_ context.Context, ids []string) error {
	return wrap("forgetting rollouts", b.db.Update(func(tx *bbolt.Tx) error {
		for _, id := range ids {
			if err := tx.Bucket(bucketRollouts).Delete([]byte(id)); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (b *Bolt) SaveRelease(_ context.Context, hash, key string, raw []byte) error {
	return wrap("storing a release", b.db.Update(func(tx *bbolt.Tx) error {
		return put(tx.Bucket(bucketReleases), []byte(hash), stored{key, raw})
	}))
}

func (b *Bolt) Release(_ context.Context, hash string) (string, []byte, error) {
	var s stored
	err := b.db.View(func(tx *bbolt.Tx) error {
		value := tx.Bucket(bucketReleases).Get([]byte(hash))
		if value == nil {
			return nil
		}
		return json.Unmarshal(value, &s)
	})
	return s.Key, s.Raw, wrap("reading a release", err)
}

func (b *Bolt) KeepReleases(_ context.Context, hashes map[string]bool) error {
	return wrap("removing old releases", b.db.Update(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(bucketReleases).Cursor()
		for key, _ := cursor.First(); key != nil; key, _ = cursor.Next() {
			if !hashes[string(key)] {
				if err := cursor.Delete(); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

func (b *Bolt) Log(_ context.Context, e Entry) error {
	return wrap("storing history", b.db.Update(func(tx *bbolt.Tx) error {
		_, err := log(tx, e)
		return err
	}))
}

func log(tx *bbolt.Tx, e Entry) (int64, error) {
	return appendTo(tx.Bucket(bucketHistory), keepHistory, func(seq int64) any { e.Seq = seq; return e })
}

// appendTo adds what value makes of its number, and removes what is beyond the number kept.
func appendTo(bucket *bbolt.Bucket, keep int64, value func(seq int64) any) (int64, error) {
	next, err := bucket.NextSequence()
	if err != nil {
		return 0, err
	}
	seq := int64(next)
	if seq > keep {
		if err := bucket.Delete(number(seq - keep)); err != nil {
			return 0, err
		}
	}
	return seq, put(bucket, number(seq), value(seq))
}

func (b *Bolt) History(_ context.Context, before int64, limit int) ([]Entry, error) {
	entries, err := newest[Entry](b, bucketHistory, before, limit)
	return entries, wrap("reading history", err)
}

// newest are the values of a numbered bucket before a number, from the highest down; 0: from the last.
func newest[T any](b *Bolt, name []byte, before int64, limit int) (values []T, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(name).Cursor()
		key, raw := cursor.Last()
		if before > 0 {
			if at, _ := cursor.Seek(number(before)); at != nil {
				key, raw = cursor.Prev()
			} else {
				key, raw = cursor.Last()
			}
		}
		for ; key != nil && len(values) < limit; key, raw = cursor.Prev() {
			var value T
			if err := json.Unmarshal(raw, &value); err != nil {
				return err
			}
			values = append(values, value)
		}
		return nil
	})
	return values, err
}

// all are the values of a bucket in the order of their keys.
func all[T any](b *Bolt, name []byte) (values []T, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(name).ForEach(func(_, raw []byte) error {
			var value T
			if err := json.Unmarshal(raw, &value); err != nil {
				return err
			}
			values = append(values, value)
			return nil
		})
	})
	return values, err
}

func put(bucket *bbolt.Bucket, key []byte, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return bucket.Put(key, raw)
}

func (b *Bolt) Pending(_ context.Context, limit int) (events []Event, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(bucketPending).Cursor()
		for key, value := cursor.First(); key != nil && len(events) < limit; key, value = cursor.Next() {
			events = append(events, Event{int64(binary.BigEndian.Uint64(key)), append(json.RawMessage(nil), value...)})
		}
		return nil
	})
	return events, wrap("reading events", err)
}

func (b *Bolt) Acknowledged(_ context.Context, seqs []int64) error {
	return wrap("removing sent events", b.db.Update(func(tx *bbolt.Tx) error {
		for _, seq := range seqs {
			if err := tx.Bucket(bucketPending).Delete(number(seq)); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (b *Bolt) Kills(context.Context) ([]fleet.Kill, error) {
	kills, err := all[fleet.Kill](b, bucketKills)
	return kills, wrap("reading kills", err)
}

func (b *Bolt) SetKill(_ context.Context, k fleet.Kill, e Entry) error {
	return b.change("storing a kill", bucketKills, e, func(kills *bbolt.Bucket) error {
		return put(kills, []byte(k.Target.String()), &k)
	})
}

func (b *Bolt) ClearKill(_ context.Context, t fleet.Target, e Entry) error {
	return b.change("removing a kill", bucketKills, e, func(kills *bbolt.Bucket) error {
		return kills.Delete([]byte(t.String()))
	})
}

// change changes a bucket, with the line of history.
func (b *Bolt) change(doing string, name []byte, e Entry, change func(*bbolt.Bucket) error) error {
	return wrap(doing, b.db.Update(func(tx *bbolt.Tx) error {
		if err := change(tx.Bucket(name)); err != nil {
			return err
		}
		_, err := log(tx, e)
		return err
	}))
}

func (b *Bolt) SaveAPs(_ context.Context, aps []fleet.AP) error {
	return wrap("storing APs", b.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(bucketAPs)
		for i := range aps {
			if err := put(bucket, []byte(aps[i].ID), &aps[i]); err != nil {
				return err
			}
		}
		return nil
	}))
}

// APs gives all APs at the zero time, and afterwards none: nobody else writes.
func (b *Bolt) APs(_ context.Context, changedSince time.Time) (aps []fleet.AP, err error) {
	if !changedSince.IsZero() {
		return nil, nil
	}
	aps, err = all[fleet.AP](b, bucketAPs)
	return aps, wrap("reading APs", err)
}

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func wrap(doing string, err error) error {
	if err == nil || errors.Is(err, ErrConflict) {
		return err
	}
	return fmt.Errorf("store: %s: %w", doing, err)
}

// Path of the file.
func (b *Bolt) Path() string { return b.db.Path() }
