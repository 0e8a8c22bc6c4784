package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

func (p *Postgres) LogAudit(ctx context.Context, a Audit) error {
	if _, err := p.pool.Exec(ctx, "INSERT INTO oal_audit (doc) VALUES ($1)", a); err != nil {
		return wrap("storing the audit log", err)
	}
	_, err := p.pool.Exec(ctx, "DELETE FROM oal_audit WHERE seq <= (SELECT max(seq) FROM oal_audit) - $1", keepAudit)
	return wrap("shortening the audit log", err)
}

func (p *Postgres) AuditLog(ctx context.Context, before int64, limit int) ([]Audit, error) {
	rows, _ := p.pool.Query(ctx, "SELECT "+numbered+" FROM oal_audit WHERE $1 = 0 OR seq < $1 ORDER BY seq DESC "+
		"LIMIT $2", before, limit)
	lines, err := pgx.CollectRows(rows, scanJSON[Audit])
	return lines, wrap("reading the audit log", err)
}
