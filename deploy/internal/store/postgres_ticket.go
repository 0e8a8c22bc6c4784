package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

func (p *Postgres) Tickets(ctx context.Context) ([]Ticket, error) {
	rows, _ := p.pool.Query(ctx, "SELECT doc FROM oal_ticket ORDER BY doc->>'ap_id'")
	tickets, err := pgx.CollectRows(rows, scanJSON[Ticket])
	return tickets, wrap("reading tickets", err)
}

func (p *Postgres) Ticket(ctx context.Context, hash string) (*Ticket, error) {
	rows, _ := p.pool.Query(ctx, "SELECT doc FROM oal_ticket WHERE hash = $1", hash)
	t, err := pgx.CollectOneRow(rows, scanJSON[Ticket])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &t, wrap("reading a ticket", err)
}

func (p *Postgres) AddTicket(ctx context.Context, t Ticket, e Entry) error {
	if _, err := p.pool.Exec(ctx, "DELETE FROM oal_ticket WHERE expires_us <= $1", t.CreatedUS); err != nil {
		return wrap("removing lapsed tickets", err)
	}
	return p.change(ctx, "storing a ticket", e,
		"INSERT INTO oal_ticket (hash, expires_us, used, doc) VALUES ($1, $2, false, $3)", t.Hash, t.ExpiresUS, t)
}

func (p *Postgres) UseTicket(ctx context.Context, t Ticket, e Entry) error {
	return p.change(ctx, "storing the use of a ticket", e,
		"UPDATE oal_ticket SET used = true, doc = $2 WHERE hash = $1 AND NOT used", t.Hash, t)
}

func (p *Postgres) RemoveTicket(ctx context.Context, hash string, e Entry) error {
	return p.change(ctx, "removing a ticket", e, "DELETE FROM oal_ticket WHERE hash = $1", hash)
}
