package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"oal/deploy/internal/fleet"
	"oal/deploy/internal/rollout"
)

// leaderLock is the advisory lock that the leading replica holds: "OAL push" in ASCII.
const leaderLock int64 = 0x4f414c2070757368

const (
	askToLeadEvery = 500 * time.Millisecond // how late a replica notices that the lead is free
	checkLeadEvery = time.Second            // how late the leader notices that it lost the lead with its connection
	closeTimeout   = time.Second            // for a polite end of a connection
	visibleAfter   = 5 * time.Second        // the longest that a transaction takes to become visible
	maxConns       = 16                     // of the pool: those that wait for the end of a broken one leave room
)

// startingUp is PostgreSQL's cannot_connect_now.
const startingUp = "57P03"

// ErrAway is an OpenPostgres that may succeed later.
var ErrAway = errors.New("it does not answer")

const tables = `
CREATE TABLE IF NOT EXISTS oal_rollout (id text PRIMARY KEY, revision bigint NOT NULL, doc jsonb NOT NULL);
CREATE TABLE IF NOT EXISTS oal_release (hash text PRIMARY KEY, key text NOT NULL, raw bytea NOT NULL);
CREATE TABLE IF NOT EXISTS oal_history (
	seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, pending boolean NOT NULL, doc jsonb NOT NULL);
CREATE INDEX IF NOT EXISTS oal_history_pending ON oal_history (seq) WHERE pending;
CREATE TABLE IF NOT EXISTS oal_ap (
	id text PRIMARY KEY, changed timestamptz NOT NULL DEFAULT clock_timestamp(), doc jsonb NOT NULL);
CREATE INDEX IF NOT EXISTS oal_ap_changed ON oal_ap (changed);
CREATE TABLE IF NOT EXISTS oal_kill (scope text PRIMARY KEY, doc jsonb NOT NULL);
CREATE TABLE IF NOT EXISTS oal_ticket (
	hash text PRIMARY KEY, expires_us bigint NOT NULL, used boolean NOT NULL, doc jsonb NOT NULL);
CREATE TABLE IF NOT EXISTS oal_access (ap_id text PRIMARY KEY, changed_us bigint NOT NULL, doc jsonb NOT NULL);
CREATE TABLE IF NOT EXISTS oal_audit (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, doc jsonb NOT NULL);
CREATE TABLE IF NOT EXISTS oal_replica (name text PRIMARY KEY, seen timestamptz NOT NULL);`

// Postgres is the store that several replicas share.
type Postgres struct {
	pool    *pgxpool.Pool
	timeout time.Duration // for connecting, and for each answer of the server
}

// OpenPostgres connects with the connection string in the file and makes the tables. No connection waits longer than
// the timeout for the server, which gives up what it was asked after as long; what the connection string says of that
// goes before.
func OpenPostgres(ctx context.Context, dsnFile string, timeout time.Duration) (*Postgres, error) {
	dsn, err := os.ReadFile(dsnFile)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	pool, err := connect(ctx, strings.TrimSpace(string(dsn)), timeout)
	if err != nil {
		return nil, fmt.Errorf("store: %s holds no usable connection string: %w", dsnFile, err)
	}
	p := &Postgres{pool, timeout}
	// Two replicas that start together would both make the tables.
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", leaderLock+1); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, tables)
		return err
	})
	if err != nil {
		pool.Close()
		if away(err) {
			err = errors.Join(ErrAway, err)
		}
		return nil, fmt.Errorf("store: PostgreSQL: %w", err)
	}
	return p, nil
}

// away says whether nobody answered, or a server that is starting: the same question may get an answer later. One that
// refuses a password or a certificate has answered.
func away(err error) bool {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return said.Code == startingUp
	}
	var operation *net.OpError
	var name *net.DNSError
	return errors.As(err, &operation) || errors.As(err, &name) || pgconn.Timeout(err) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

// connect makes the pool; it connects when something is asked.
func connect(ctx context.Context, dsn string, timeout time.Duration) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(dsn, "pool_max_conns") {
		c.MaxConns = maxConns
	}
	c.ConnConfig.ConnectTimeout, c.ConnConfig.DialFunc = timeout, dial(timeout)
	ms := strconv.FormatInt(min(timeout, visibleAfter).Milliseconds(), 10)
	for name, value := range map[string]string{
		"statement_timeout": ms, "idle_in_transaction_session_timeout": ms,
		// A leader whose host is gone holds the lead until the server notices: 5 s of silence, then three tries.
		"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3",
	} {
		if _, said := c.ConnConfig.RuntimeParams[name]; !said {
			c.ConnConfig.RuntimeParams[name] = value
		}
	}
	return pgxpool.NewWithConfig(ctx, c)
}

func (p *Postgres) Close() error                   { p.pool.Close(); return nil }
func (p *Postgres) Shared() bool                   { return true }
func (p *Postgres) Ping(ctx context.Context) error { return p.pool.Ping(ctx) }

// Lead takes the advisory lock on a connection of its own. Losing that connection is losing the lead.
func (p *Postgres) Lead(ctx context.Context) (context.Context, error) {
	timed, cancel := context.WithTimeout(ctx, p.timeout)
	conn, err := p.pool.Acquire(timed)
	cancel()
	if err != nil {
		return nil, wrap("connecting to lead", err)
	}
	own := conn.Hijack()
	for {
		var mine bool
		timed, cancel := context.WithTimeout(ctx, p.timeout)
		err := own.QueryRow(timed, "SELECT pg_try_advisory_lock($1)", leaderLock).Scan(&mine)
		cancel()
		if err != nil {
			closeQuietly(own)
			return nil, wrap("asking to lead", err)
		}
		if mine {
			break
		}
		select {
		case <-ctx.Done():
			closeQuietly(own)
			return nil, ctx.Err()
		case <-time.After(askToLeadEvery):
		}
	}
	lead, end := context.WithCancel(ctx)
	go func() {
		defer end()
		defer closeQuietly(own)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(checkLeadEvery):
			}
			check, cancel := context.WithTimeout(ctx, p.timeout)
			err := own.Ping(check)
			cancel()
			if err != nil {
				return
			}
		}
	}()
	return lead, nil
}

func closeQuietly(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = conn.Close(ctx) // the lock goes with the session, however that ends
}

// Alive also forgets replicas of yesterday.
func (p *Postgres) Alive(ctx context.Context, replica string) (map[string]bool, error) {
	_, err := p.pool.Exec(ctx, "INSERT INTO oal_replica VALUES ($1, clock_timestamp()) ON CONFLICT (name) DO UPDATE "+
		"SET seen = clock_timestamp()", replica)
	if err == nil {
		_, err = p.pool.Exec(ctx, "DELETE FROM oal_replica WHERE seen < clock_timestamp() - interval '1 day'")
	}
	if err != nil {
		return nil, wrap("saying that this replica lives", err)
	}
	rows, _ := p.pool.Query(ctx, "SELECT name FROM oal_replica WHERE seen > clock_timestamp() - make_interval(secs "+
		"=> $1)", deadAfter.Seconds())
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	alive := map[string]bool{}
	for _, name := range names {
		alive[name] = true
	}
	return alive, wrap("reading which replicas live", err)
}

func (p *Postgres) Rollouts(ctx context.Context) ([]*rollout.Rollout, error) {
	rows, _ := p.pool.Query(ctx, "SELECT doc FROM oal_rollout")
	all, err := pgx.CollectRows(rows, scanJSON[*rollout.Rollout])
	return all, wrap("reading rollouts", err)
}

func (p *Postgres) Step(ctx context.Context, r *rollout.Rollout, entries []Entry) error {
	return wrap("storing a rollout's step", pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		sql, args := "UPDATE oal_rollout SET revision = $2, doc = $3 WHERE id = $1 AND revision = $2 - 1",
			[]any{r.ID, r.Revision, r}
		if r.Revision == 1 {
			sql = "INSERT INTO oal_rollout (id, revision, doc) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
		}
		done, err := tx.Exec(ctx, sql, args...)
		if err != nil {
			return err
		}
		if done.RowsAffected() != 1 {
			return ErrConflict
		}
		for _, e := range entries {
			if err := insertHistory(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	}))
}

type execer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func insertHistory(ctx context.Context, db execer, e Entry) error {
	var seq int64
	return db.QueryRow(ctx, "INSERT INTO oal_history (pending, doc) VALUES ($1, $2) RETURNING seq", e.Row != nil,
		e).Scan(&seq)
}

func (p *Postgres) Forget(ctx context.Context, ids []string) error {
	_, err := p.pool.Exec(ctx, "DELETE FROM oal_rollout WHERE id = ANY($1)", ids)
	return wrap("forgetting rollouts", err)
}

func (p *Postgres) SaveRelease(ctx context.Context, hash, key string, raw []byte) error {
	_, err := p.pool.Exec(ctx, "INSERT INTO oal_release (hash, key, raw) VALUES ($1, $2, $3) ON CONFLICT (hash) DO "+
		"UPDATE SET key = $2, raw = $3",
		hash, key, raw)
	return wrap("storing a release", err)
}

func (p *Postgres) Release(ctx context.Context, hash string) (key string, raw []byte, err error) {
	err = p.pool.QueryRow(ctx, "SELECT key, raw FROM oal_release WHERE hash = $1", hash).Scan(&key, &raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil, nil
	}
	return key, raw, wrap("reading a release", err)
}

func (p *Postgres) KeepReleases(ctx context.Context, hashes map[string]bool) error {
	keep := make([]string, 0, len(hashes))
	for hash := range hashes {
		keep = append(keep, hash)
	}
	_, err := p.pool.Exec(ctx, "DELETE FROM oal_release WHERE NOT hash = ANY($1)", keep)
	return wrap("removing old releases", err)
}

func (p *Postgres) Log(ctx context.Context, e Entry) error {
	if err := insertHistory(ctx, p.pool, e); err != nil {
		return wrap("storing history", err)
	}
	_, err := p.pool.Exec(ctx, "DELETE FROM oal_history WHERE NOT pending AND seq <= (SELECT max(seq) FROM "+
		"oal_history) - $1", keepHistory)
	return wrap("shortening history", err)
}

func (p *Postgres) History(ctx context.Context, before int64, limit int) ([]Entry, error) {
	rows, _ := p.pool.Query(ctx, "SELECT "+numbered+" FROM oal_history WHERE $1 = 0 OR seq < $1 ORDER BY seq DESC "+
		"LIMIT $2", before, limit)
	entries, err := pgx.CollectRows(rows, scanJSON[Entry])
	return entries, wrap("reading history", err)
}

func (p *Postgres) Pending(ctx context.Context, limit int) ([]Event, error) {
	rows, _ := p.pool.Query(ctx, "SELECT seq, doc->'row' FROM oal_history WHERE pending ORDER BY seq LIMIT $1", limit)
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Event, err error) {
		var doc []byte
		err = row.Scan(&e.Seq, &doc)
		e.Row = doc
		return e, err
	})
	return events, wrap("reading events", err)
}

func (p *Postgres) Acknowledged(ctx context.Context, seqs []int64) error {
	_, err := p.pool.Exec(ctx, "UPDATE oal_history SET pending = false WHERE seq = ANY($1)", seqs)
	return wrap("marking sent events", err)
}

func (p *Postgres) Kills(ctx context.Context) ([]fleet.Kill, error) {
	rows, _ := p.pool.Query(ctx, "SELECT doc FROM oal_kill ORDER BY scope")
	kills, err := pgx.CollectRows(rows, scanJSON[fleet.Kill])
	return kills, wrap("reading kills", err)
}

func (p *Postgres) SetKill(ctx context.Context, k fleet.Kill, e Entry) error {
	return p.change(ctx, "storing a kill", e,
		"INSERT INTO oal_kill (scope, doc) VALUES ($1, $2) ON CONFLICT (scope) DO UPDATE SET doc = $2",
		k.Target.String(), k)
}

func (p *Postgres) ClearKill(ctx context.Context, t fleet.Target, e Entry) error {
	return p.change(ctx, "removing a kill", e, "DELETE FROM oal_kill WHERE scope = $1", t.String())
}

// change changes rows, with the line of history; ErrConflict when there are none to change.
func (p *Postgres) change(ctx context.Context, doing string, e Entry, sql string, args ...any) error {
	return wrap(doing, pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, sql, args...)
		if err != nil {
			return err
		}
		if done.RowsAffected() == 0 {
			return ErrConflict
		}
		return insertHistory(ctx, tx, e)
	}))
}

func (p *Postgres) SaveAPs(ctx context.Context, aps []fleet.AP) error {
	ids, docs := make([]string, len(aps)), make([]string, len(aps))
	for i := range aps {
		doc, err := json.Marshal(&aps[i])
		if err != nil {
			return err
		}
		ids[i], docs[i] = aps[i].ID, string(doc)
	}
	// An AP that moved to another replica may be written by both: the later sight of it stays.
	_, err := p.pool.Exec(ctx, `INSERT INTO oal_ap AS old (id, doc)
		SELECT id, doc::jsonb FROM unnest($1::text[], $2::text[]) AS new (id, doc) ORDER BY id
		ON CONFLICT (id) DO UPDATE SET doc = excluded.doc, changed = clock_timestamp()
		WHERE (excluded.doc->>'last_seen_us')::bigint >= (old.doc->>'last_seen_us')::bigint`, ids, docs)
	return wrap("storing APs", err)
}

func (p *Postgres) APs(ctx context.Context, changedSince time.Time) ([]fleet.AP, error) {
	// A transaction becomes visible after its timestamps: look back a little further.
	rows, _ := p.pool.Query(ctx, "SELECT doc FROM oal_ap WHERE changed >= $1", changedSince.Add(-visibleAfter))
	aps, err := pgx.CollectRows(rows, scanJSON[fleet.AP])
	return aps, wrap("reading APs", err)
}

// numbered is a document with the number that its row was given.
const numbered = "doc || jsonb_build_object('seq', seq)"

func scanJSON[T any](row pgx.CollectableRow) (value T, err error) {
	var doc []byte
	if err = row.Scan(&doc); err == nil {
		err = json.Unmarshal(doc, &value)
	}
	return value, err
}
