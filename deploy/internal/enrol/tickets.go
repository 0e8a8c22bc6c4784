// Package enrol gives an AP its certificate and keys for a ticket that was made for it: once, within the ticket's time.
package enrol

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"oal/deploy/internal/issue"
	"oal/deploy/internal/metric"
	"oal/deploy/internal/release"
	"oal/deploy/internal/store"
)

// Errors of what people, and APs, ask for.
var (
	ErrBad     = errors.New("this cannot be done")
	ErrUnknown = errors.New("there is no such ticket")
	ErrRevoked = errors.New("the AP is revoked")
	// ErrToken is all that is said of a token that is unknown, used or lapsed.
	ErrToken = errors.New("this token cannot be used: it is unknown, used or lapsed; ask for a new ticket")
)

const (
	tokenBytes = 32                  // random: nobody guesses 256 bits
	idDigits   = 16                  // of a token's hash: enough to name a ticket, useless to use it
	minTTL     = time.Minute         // less is a typing error
	maxTTL     = 90 * 24 * time.Hour // a ticket in a drawer is a key in a drawer
	countEvery = 10 * time.Second    // how late the number of open tickets may be
)

// Tickets are made by people and used by APs.
type Tickets struct {
	url     string
	issuer  *issue.Issuer
	store   store.Store
	revoked func(id string) *store.Access
	metrics *metric.Set
	now     func() time.Time
}

// NewTickets is inert. url is where APs enrol.
func NewTickets(url string, i *issue.Issuer, s store.Store, revoked func(id string) *store.Access, m *metric.Set,
	now func() time.Time) *Tickets {
	return &Tickets{url, i, s, revoked, m, now}
}

// Ticket is an open ticket as people see it.
type Ticket struct {
	ID        string `json:"id"`
	APID      string `json:"ap_id"`
	Site      string `json:"site"`
	Who       string `json:"who"`
	CreatedUS int64  `json:"created_us"`
	ExpiresUS int64  `json:"expires_us"`
}

// paper is what a ticket's text says.
type paper struct {
	V     int    `json:"v"`
	URL   string `json:"url"`
	APID  string `json:"ap_id"`
	Site  string `json:"site"`
	Token string `json:"token"`
	CA    string `json:"ca"`
}

func view(t store.Ticket) Ticket {
	return Ticket{t.Hash[:idDigits], t.APID, t.Site, t.Who, t.CreatedUS, t.ExpiresUS}
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// New makes a ticket. Its text is given once; only its token's hash is kept.
func (t *Tickets) New(ctx context.Context, apID, site, who string, ttl time.Duration) (Ticket, string, error) {
	switch {
	case !release.Name.MatchString(apID):
		return Ticket{}, "", fmt.Errorf(
			"%w: `%.80s` is no AP's id: 1 to 64 letters, digits, dots, dashes and underscores", ErrBad, apID)
	case site != "" && !release.Name.MatchString(site):
		return Ticket{}, "", fmt.Errorf(
			"%w: `%.80s` is no site's name: 1 to 64 letters, digits, dots, dashes and underscores", ErrBad, site)
	case ttl < minTTL || ttl > maxTTL:
		return Ticket{}, "", fmt.Errorf("%w: a ticket lasts from %s to %s", ErrBad, minTTL, maxTTL)
	}
	if t.revoked(apID) != nil {
		return Ticket{}, "", fmt.Errorf("%w: restore %s first, or give the device another name", ErrRevoked, apID)
	}
	raw := make([]byte, tokenBytes)
	if _, err := rand.Read(raw); err != nil {
		return Ticket{}, "", err
	}
	token := base64.RawURLEncoding.EncodeToString(raw)
	now := t.now()
	stored := store.Ticket{Hash: hash(token), APID: apID, Site: site, Who: who, CreatedUS: now.UnixMicro(),
		ExpiresUS: now.Add(ttl).UnixMicro()}
	text, err := json.Marshal(paper{1, t.url, apID, site, token, t.issuer.Root()})
	if err != nil {
		return Ticket{}, "", err
	}
	detail := fmt.Sprintf("ticket %s by %s, site %q, for %s", stored.Hash[:idDigits], who, site, ttl)
	if err := t.store.AddTicket(ctx, stored, store.Entry{TSUS: stored.CreatedUS, Kind: "ticket", Key: apID,
		Detail: detail}); err != nil {
		return Ticket{}, "", err
	}
	return view(stored), base64.RawURLEncoding.EncodeToString(text), nil
}

// Open are the tickets that can be used.
func (t *Tickets) Open(ctx context.Context) ([]Ticket, error) {
	stored, err := t.store.Tickets(ctx)
	open := []Ticket{}
	for _, s := range stored {
		if s.UsedUS == 0 && s.ExpiresUS > t.now().UnixMicro() {
			open = append(open, view(s))
		}
	}
	return open, err
}

// Withdraw removes a ticket by its id.
func (t *Tickets) Withdraw(ctx context.Context, id, who string) (Ticket, error) {
	stored, err := t.store.Tickets(ctx)
	if err != nil {
		return Ticket{}, err
	}
	for _, s := range stored {
		if s.Hash[:idDigits] != id {
			continue
		}
		err := t.store.RemoveTicket(ctx, s.Hash, store.Entry{TSUS: t.now().UnixMicro(), Kind: "ticket", Key: s.APID,
			Detail: "ticket " + id + " withdrawn by " + who})
		if errors.Is(err, store.ErrConflict) {
			break
		}
		return view(s), err
	}
	return Ticket{}, fmt.Errorf("%w: %.40s; ctl tickets shows those that are open", ErrUnknown, id)
}

// Redeem gives the AP of a ticket its certificate. An AP whose answer was lost asks again with the same key, and gets
// the same answer until the ticket lapses; nobody else has that key.
func (t *Tickets) Redeem(ctx context.Context, token string, r *issue.Request) (grant *issue.Grant, repeated bool,
	err error) {
	for attempt := 0; ; attempt++ {
		found, err := t.store.Ticket(ctx, hash(token))
		if err != nil {
			return nil, false, err
		}
		now := t.now().UnixMicro()
		if found == nil || found.ExpiresUS <= now || found.UsedUS != 0 && found.Key != r.Key {
			return nil, false, ErrToken
		}
		if t.revoked(found.APID) != nil {
			return nil, false, fmt.Errorf("%w: %s", ErrRevoked, found.APID)
		}
		if found.UsedUS != 0 {
			grant, err := t.issuer.Grant(found.APID, found.Site, found.Certificate)
			return grant, true, err
		}
		grant, err := t.issuer.Issue(found.APID, found.Site, r)
		if err != nil {
			return nil, false, err
		}
		used := *found
		used.UsedUS, used.Key, used.Certificate = now, r.Key, grant.Certificate
		detail := fmt.Sprintf("with ticket %s, site %q, key %.16s", found.Hash[:idDigits], found.Site, r.Key)
		err = t.store.UseTicket(ctx, used, store.Entry{TSUS: now, Kind: "enrolled", Key: found.APID, Detail: detail})
		if errors.Is(err, store.ErrConflict) && attempt < 3 {
			continue // the same AP asked twice at once, or someone else with its ticket
		}
		return grant, false, err
	}
}

// Run counts the open tickets until the context ends.
func (t *Tickets) Run(ctx context.Context) {
	for {
		if open, err := t.Open(ctx); err == nil {
			t.metrics.OpenTickets.Set(float64(len(open)))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(countEvery):
		}
	}
}
