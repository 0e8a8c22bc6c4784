// Package neighbour knows who shares a channel with whom, and how busy they are: the latest record of each site and
// frequency in ap.neighbours.v1, and what one AP gets of it.
package neighbour

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"oal/deploy/internal/release"
)

// Topic is compacted: its records are the present ones.
const Topic = "ap.neighbours.v1"

const (
	maxRecordBytes = 64 << 10 // of a record: six times one with maxAPs
	maxAPs         = 64       // of a record: more on one channel of one site cannot be
)

// AP is what an access point did on a channel in a second.
type AP struct {
	ID                string `json:"ap_id"`
	Stations          uint16 `json:"stations"`
	TxKbps            uint32 `json:"tx_kbps"`
	TxAirtimePermille uint16 `json:"tx_airtime_permille"`
	BusyPermille      uint16 `json:"busy_permille"`
	LossPermille      uint16 `json:"loss_permille"`
	BacklogBytes      uint32 `json:"backlog_bytes"`
}

// Record is a channel: its access points, the busiest first.
type Record struct {
	Site         string `json:"site"`
	FrequencyMHz uint16 `json:"frequency_mhz"`
	TUS          int64  `json:"t_us"`
	APs          []AP   `json:"aps"`
}

// Key of a channel's record.
func Key(site string, frequencyMHz uint16) string {
	return site + "/" + strconv.Itoa(int(frequencyMHz))
}

// CheckChannel says what is wrong with a channel.
func CheckChannel(site string, frequencyMHz uint64) error {
	if !release.Name.MatchString(site) {
		return errors.New("site is 1 to 64 letters, digits, dots, dashes and underscores")
	}
	if frequencyMHz == 0 || frequencyMHz > math.MaxUint16 {
		return errors.New("frequency_mhz is a whole number from 1 to 65535")
	}
	return nil
}

// Parse reads and checks a record's value. Access points that no certificate can name are left out: they are not ours.
func Parse(key string, value []byte) (*Record, error) {
	if len(value) > maxRecordBytes {
		return nil, fmt.Errorf("it has %d bytes; %d at most", len(value), maxRecordBytes)
	}
	r := &Record{}
	if err := json.Unmarshal(value, r); err != nil {
		return nil, err
	}
	switch err := CheckChannel(r.Site, uint64(r.FrequencyMHz)); {
	case err != nil:
		return nil, err
	case Key(r.Site, r.FrequencyMHz) != key:
		return nil, fmt.Errorf("the record is of %s, its key is %.80s", Key(r.Site, r.FrequencyMHz), key)
	case r.TUS <= 0:
		return nil, errors.New("t_us is missing")
	case len(r.APs) > maxAPs:
		return nil, fmt.Errorf("it has %d access points; %d at most", len(r.APs), maxAPs)
	}
	seen, kept := map[string]bool{}, r.APs[:0]
	for _, ap := range r.APs {
		if release.Name.MatchString(ap.ID) && !seen[ap.ID] {
			seen[ap.ID] = true
			kept = append(kept, ap)
		}
	}
	r.APs = kept
	return r, nil
}
