package api

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"

	"oal/deploy/internal/issue"
	"oal/deploy/internal/release"
)

// denial is a request that is refused for who asks.
type denial struct{ reason, detail string }

func (d *denial) Error() string { return d.reason + ": " + d.detail }

// Identity is what a verified certificate says of an AP.
type Identity struct {
	ID       string
	Site     string // empty: the certificate names none
	NotAfter time.Time
}

// identity of who is at the other end, whose certificate the listener has verified (tlsconf.Mutual). The ID is there
// with an error too, as far as it is known.
func identity(state *tls.ConnectionState, now time.Time) (ap Identity, err error) {
	if state == nil || len(state.PeerCertificates) == 0 {
		return ap, &denial{"no_certificate", "there is no verified client certificate"}
	}
	leaf := state.PeerCertificates[0]
	ap = Identity{ID: leaf.Subject.CommonName, NotAfter: leaf.NotAfter}
	if !slices.Contains(leaf.Subject.OrganizationalUnit, "ap") {
		return ap, &denial{"not_an_ap", fmt.Sprintf("the certificate's OU is %q", leaf.Subject.OrganizationalUnit)}
	}
	if !release.Name.MatchString(ap.ID) {
		return ap, &denial{"bad_name", "the certificate's CN is not an AP's id"}
	}
	if now.After(ap.NotAfter) { // the connection is older than its end
		return ap, &denial{"expired_certificate", "the certificate ended at " + ap.NotAfter.UTC().Format(time.RFC3339)}
	}
	for _, uri := range leaf.URIs {
		site, is := strings.CutPrefix(uri.String(), issue.SiteURN)
		if !is {
			continue
		}
		if ap.Site != "" || !release.Name.MatchString(site) {
			return ap, &denial{"bad_site", "the certificate names no single site"}
		}
		ap.Site = site
	}
	return ap, nil
}

// at is the denial of an AP that says it is at another site than its certificate does.
func (ap Identity) at(site string) error {
	if ap.Site == "" || ap.Site == site {
		return nil
	}
	return &denial{"other_site", fmt.Sprintf("the certificate is for site %q, the request says %q", ap.Site,
		clip(site, 64))}
}
