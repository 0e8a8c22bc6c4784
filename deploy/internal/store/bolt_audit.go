package store

import (
	"context"

	"go.etcd.io/bbolt"
)

func (b *Bolt) LogAudit(_ context.Context, a Audit) error {
	return wrap("storing the audit log", b.db.Update(func(tx *bbolt.Tx) error {
		_, err := appendTo(tx.Bucket(bucketAudit), keepAudit, func(seq int64) any { a.Seq = seq; return a })
		return err
	}))
}

func (b *Bolt) AuditLog(_ context.Context, before int64, limit int) ([]Audit, error) {
	lines, err := newest[Audit](b, bucketAudit, before, limit)
	return lines, wrap("reading the audit log", err)
}
