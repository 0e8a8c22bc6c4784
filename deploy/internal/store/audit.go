package store

// Audit is one request to the admin interface that changed something, asked for a secret, or was refused.
type Audit struct {
	Seq     int64  `json:"seq"`
	TSUS    int64  `json:"ts_us"`
	User    string `json:"user"` // empty: nobody who is known
	Role    string `json:"role"`
	Address string `json:"address"`
	Action  string `json:"action"` // what was asked for, such as kill or ticket
	Target  string `json:"target"` // path of the request
	Code    int    `json:"code"`   // of the answer
	Note    string `json:"note"`   // what the answer said when it was no
}
