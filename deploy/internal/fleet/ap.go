// Package fleet is every AP: what it has, what it should have, and the long poll that it waits in.
package fleet

import "time"

// AP is what is known of an access point. It is stored; times are microseconds since 1970, 0 is never.
type AP struct {
	ID            string `json:"ap_id"`
	Site          string `json:"site"`
	Agent         string `json:"agent"`   // version of its exporter
	BootID        string `json:"boot_id"` // of its latest report
	Applied       string `json:"applied"` // hash of the bundle in force
	AppliedSerial int64  `json:"applied_serial"`
	AppliedUS     int64  `json:"applied_us"`
	State         string `json:"state"`  // of the latest report: applied, rejected, restored, waiting
	Reason        string `json:"reason"` // of a rejection
	Reported      string `json:"reported"`
	ReportedUS    int64  `json:"reported_us"`
	LastSeenUS    int64  `json:"last_seen_us"`
	Connected     bool   `json:"connected"`
	Replica       string `json:"replica"` // which serves it
	// Control is what it says it has of the kill switch; empty for an exporter that does not say.
	Control Control `json:"control"`
	// CertificateUS is when the certificate ends with which it asked last; 0: not yet seen.
	CertificateUS int64 `json:"certificate_not_after_us"`
}

// Status is an AP's report, checked.
type Status struct {
	Bundle string // hash
	Serial int64
	State  string
	Reason string
	BootID string
	Agent  string
}

// States that an AP reports, by settings.bundle_states.
const (
	Applied  = "applied"
	Rejected = "rejected"
	Restored = "restored"
	Waiting  = "waiting"
)

// retryRejected is how long a bundle that an AP rejected is kept from it: the answer is the same until its keys or
// memory change.
const retryRejected = 5 * time.Minute

// saveSeenAfterUS, in microseconds: a poll this soon after the one before is not stored for its time alone, so that an
// AP that comes back every second is not a write each time.
const saveSeenAfterUS = 60e6

// activationGraceUS, in microseconds: an AP that said that it keeps a bundle for later is sent it again only this long
// after that time, as its clock may be behind.
const activationGraceUS = 60e6

// connectedFor is how long an AP counts as connected after its last request: between two polls, and while it applies a
// bundle.
const connectedFor = 20 * time.Second

// ap is an AP with what only this process knows of it. The fleet's lock guards it.
type ap struct {
	AP
	poll   *Poll
	desire desire // computed when something changed, for the counts and the admin pages
	pushed string // hash given to it while it was waiting: its answer is a latency
	dirty  bool   // not yet stored
}
