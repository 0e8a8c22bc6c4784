package store

import (
	"context"
	"encoding/json"

	"go.etcd.io/bbolt"
)

func (b *Bolt) Access(context.Context) ([]Access, error) {
	access, err := all[Access](b, bucketAccess)
	return access, wrap("reading who is revoked", err)
}

func (b *Bolt) SetAccess(_ context.Context, a Access, e Entry) error {
	return b.change("storing who is revoked", bucketAccess, e, func(bucket *bbolt.Bucket) error {
		return put(bucket, []byte(a.APID), a)
	})
}

func (b *Bolt) AccessSent(_ context.Context, sent []Access) error {
	return wrap("marking sent revocations", b.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(bucketAccess)
		for _, s := range sent {
			var now Access
			raw := bucket.Get([]byte(s.APID))
			if raw == nil {
				continue
			}
			if err := json.Unmarshal(raw, &now); err != nil {
				return err
			}
			if now.ChangedUS != s.ChangedUS {
				continue
			}
			now.Sent = true
			if err := put(bucket, []byte(s.APID), now); err != nil {
				return err
			}
		}
		return nil
	}))
}
