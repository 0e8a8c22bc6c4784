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

var (
	bucketRollouts = []byte("rollouts")
	bucketReleases = []byte("releases")
	bucketHistory  = []byte("history")
	bucketPending  = []byte("pending")
	bucketAPs      = []byte("aps")
	bucketKills    = []byte("kills")
)

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
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 5 * time.Second})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("store %s: another process has it open; several replicas need store.postgres_dsn_file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketRollouts, bucketReleases, bucketHistory, bucketPending, bucketAPs, bucketKills} {
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

func (b *Bolt) Rollouts(context.Context) (all []*rollout.Rollout, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketRollouts).ForEach(func(_, value []byte) error {
			r := &rollout.Rollout{}
			all = append(all, r)
			return json.Unmarshal(value, r)
		})
	})
	return all, wrap("reading rollouts", err)
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
	value, err := json.Marshal(stored{key, raw})
	if err != nil {
		return err
	}
	return wrap("storing a release", b.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketReleases).Put([]byte(hash), value)
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
	bucket := tx.Bucket(bucketHistory)
	seq, err := bucket.NextSequence()
	if err != nil {
		return 0, err
	}
	e.Seq = int64(seq)
	value, err := json.Marshal(e)
	if err != nil {
		return 0, err
	}
	if seq > keepHistory {
		if err := bucket.Delete(number(e.Seq - keepHistory)); err != nil {
			return 0, err
		}
	}
	return e.Seq, bucket.Put(number(e.Seq), value)
}

func (b *Bolt) History(_ context.Context, before int64, limit int) (entries []Entry, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(bucketHistory).Cursor()
		key, value := cursor.Last()
		if before > 0 {
			if at, _ := cursor.Seek(number(before)); at != nil {
				key, value = cursor.Prev()
			} else {
				key, value = cursor.Last()
			}
		}
		for ; key != nil && len(entries) < limit; key, value = cursor.Prev() {
			var e Entry
			if err := json.Unmarshal(value, &e); err != nil {
				return err
			}
			entries = append(entries, e)
		}
		return nil
	})
	return entries, wrap("reading history", err)
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

func (b *Bolt) Kills(context.Context) (kills []fleet.Kill, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketKills).ForEach(func(_, value []byte) error {
			var k fleet.Kill
			if err := json.Unmarshal(value, &k); err != nil {
				return err
			}
			kills = append(kills, k)
			return nil
		})
	})
	return kills, wrap("reading kills", err)
}

func (b *Bolt) SetKill(_ context.Context, k fleet.Kill, e Entry) error {
	value, err := json.Marshal(&k)
	if err != nil {
		return err
	}
	return b.turn("storing a kill", e, func(kills *bbolt.Bucket) error { return kills.Put([]byte(k.Scope), value) })
}

func (b *Bolt) ClearKill(_ context.Context, scope string, e Entry) error {
	return b.turn("removing a kill", e, func(kills *bbolt.Bucket) error { return kills.Delete([]byte(scope)) })
}

// turn changes the kill switch, with the line of history.
func (b *Bolt) turn(doing string, e Entry, change func(kills *bbolt.Bucket) error) error {
	return wrap(doing, b.db.Update(func(tx *bbolt.Tx) error {
		if err := change(tx.Bucket(bucketKills)); err != nil {
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
			value, err := json.Marshal(&aps[i])
			if err == nil {
				err = bucket.Put([]byte(aps[i].ID), value)
			}
			if err != nil {
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
	err = b.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketAPs).ForEach(func(_, value []byte) error {
			var a fleet.AP
			if err := json.Unmarshal(value, &a); err != nil {
				return err
			}
			aps = append(aps, a)
			return nil
		})
	})
	return aps, wrap("reading APs", err)
}

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func wrap(doing string, err error) error {
	if err == nil || errors.Is(err, ErrConflict) {
		return err
	}
	return fmt.Errorf("store: %s: %w", doing, err)
}
