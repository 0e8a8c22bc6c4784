package store

import (
	"context"
	"encoding/json"
	"sort"

	"go.etcd.io/bbolt"
)

func (b *Bolt) Tickets(context.Context) ([]Ticket, error) {
	tickets, err := all[Ticket](b, bucketTickets)
	sort.Slice(tickets, func(i, j int) bool { return tickets[i].APID < tickets[j].APID })
	return tickets, wrap("reading tickets", err)
}

func (b *Bolt) Ticket(_ context.Context, hash string) (found *Ticket, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		found, err = ticket(tx.Bucket(bucketTickets), hash)
		return err
	})
	return found, wrap("reading a ticket", err)
}

func ticket(bucket *bbolt.Bucket, hash string) (*Ticket, error) {
	raw := bucket.Get([]byte(hash))
	if raw == nil {
		return nil, nil
	}
	t := &Ticket{}
	return t, json.Unmarshal(raw, t)
}

func (b *Bolt) AddTicket(_ context.Context, t Ticket, e Entry) error {
	return b.change("storing a ticket", bucketTickets, e, func(bucket *bbolt.Bucket) error {
		var lapsed [][]byte
		err := bucket.ForEach(func(key, raw []byte) error {
			var old Ticket
			if err := json.Unmarshal(raw, &old); err != nil {
				return err
			}
			if old.ExpiresUS <= t.CreatedUS {
				lapsed = append(lapsed, key)
			}
			return nil
		})
		for _, key := range lapsed {
			if err == nil {
				err = bucket.Delete(key)
			}
		}
		if err != nil {
			return err
		}
		return put(bucket, []byte(t.Hash), t)
	})
}

func (b *Bolt) UseTicket(_ context.Context, t Ticket, e Entry) error {
	return b.change("storing the use of a ticket", bucketTickets, e, func(bucket *bbolt.Bucket) error {
		now, err := ticket(bucket, t.Hash)
		if err != nil {
			return err
		}
		if now == nil || now.UsedUS != 0 {
			return ErrConflict
		}
		return put(bucket, []byte(t.Hash), t)
	})
}

func (b *Bolt) RemoveTicket(_ context.Context, hash string, e Entry) error {
	return b.change("removing a ticket", bucketTickets, e, func(bucket *bbolt.Bucket) error {
		if bucket.Get([]byte(hash)) == nil {
			return ErrConflict
		}
		return bucket.Delete([]byte(hash))
	})
}
