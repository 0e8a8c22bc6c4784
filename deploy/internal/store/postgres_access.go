package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

func (p *Postgres) Access(ctx context.Context) ([]Access, error) {
	rows, _ := p.pool.Query(ctx, "SELECT doc FROM oal_access ORDER BY ap_id")
	access, err := pgx.CollectRows(rows, scanJSON[Access])
	return access, wrap("reading who is revoked", err)
}

func (p *Postgres) SetAccess(ctx context.Context, a Access, e Entry) error {
	return p.change(ctx, "storing who is revoked", e,
		"INSERT INTO oal_access (ap_id, changed_us, doc) VALUES ($1, $2, $3) ON CONFLICT (ap_id) DO UPDATE SET "+
			"changed_us = $2, doc = $3", a.APID, a.ChangedUS, a)
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
