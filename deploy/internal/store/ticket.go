package store

// Ticket lets one AP enrol, once. Of its token only the hash is known here.
type Ticket struct {
	Hash        string `json:"hash"` // SHA-256 of the token, hexadecimal
	APID        string `json:"ap_id"`
	Site        string `json:"site"`
	Who         string `json:"who"` // made it
	CreatedUS   int64  `json:"created_us"`
	ExpiresUS   int64  `json:"expires_us"`
	UsedUS      int64  `json:"used_us"`     // 0: open
	Key         string `json:"key"`         // SHA-256 of the public key that it was used for
	Certificate string `json:"certificate"` // the chain that was answered
}
