package store

import (
	"context"
	"encoding/json"
	"io"

	"github.com/jackc/pgx/v5"
)

func (p *Postgres) Access(ctx context.Context) ([]Access, error) {
	rows, _ := p.pool.Query(ctx, "SELECT doc FROM oal_access ORDER BY ap_id")
	access, err := pgx.CollectRows(rows, scanJSON[Access])
	return access, wrap("reading who is revoked", err)
}

func (p *Postgres) SetAccess(ctx context.Context, a Access, e Entry) error {
	doc, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return p.change(ctx, "storing who is revoked", e,
		"INSERT INTO oal_access (ap_id, changed_us, doc) VALUES ($1, $2, $3) ON CONFLICT (ap_id) DO UPDATE SET changed_us = $2, doc = $3", a.APID, a.ChangedUS, doc)
}

func (p *Postgres) AccessSent(ctx context.Context, sent []Access) error {
	ids, changed := make([]string, len(sent)), make([]int64, len(sent))
	for i, s := range sent {
		ids[i], changed[i] = s.APID, s.ChangedUS
	}
	_, err := p.pool.Exec(ctx, `UPDATE oal_access SET doc = jsonb_set(doc, '{sent}', 'true')
		FROM unnest($1::text[], $2::bigint[]) AS s (id, us) WHERE ap_id = s.id AND changed_us = s.us`, ids, changed)
	return wrap("marking sent revocations", err)
}

func (p *Postgres) LogAudit(ctx context.Context, a Audit) error {
	doc, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if _, err = p.pool.Exec(ctx, "INSERT INTO oal_audit (doc) VALUES ($1)", doc); err != nil {
		return wrap("storing the audit log", err)
	}
	_, err = p.pool.Exec(ctx, "DELETE FROM oal_audit WHERE seq <= (SELECT max(seq) FROM oal_audit) - $1", keepAudit)
	return wrap("shortening the audit log", err)
}

func (p *Postgres) AuditLog(ctx context.Context, before int64, limit int) ([]Audit, error) {
	rows, _ := p.pool.Query(ctx, "SELECT seq, doc FROM oal_audit WHERE $1 = 0 OR seq < $1 ORDER BY seq DESC LIMIT $2", before, limit)
	lines, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Audit, err error) {
		var seq int64
		var doc []byte
		if err = row.Scan(&seq, &doc); err == nil {
			err = json.Unmarshal(doc, &a)
		}
		a.Seq = seq
		return a, err
	})
	return lines, wrap("reading the audit log", err)
}

// Snapshot is not for this service to make.
func (p *Postgres) Snapshot(context.Context, func(int64, io.WriterTo) error) error {
	return ErrNoSnapshot
}
