package store

// Access says whether an AP is revoked. One that was restored is kept, so that an old record in Kafka is known to be
// old.
type Access struct {
	APID      string `json:"ap_id"`
	Revoked   bool   `json:"revoked"`
	ChangedUS int64  `json:"changed_us"` // grows with each change
	Who       string `json:"who"`
	Reason    string `json:"reason"`
	Sent      bool   `json:"sent"` // ap.access.v1 says the same
}
