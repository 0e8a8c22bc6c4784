package neighbour

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"math"
	"sync"
	"time"

	"oal/deploy/internal/metric"
)

const (
	// MaxNeighbours bounds the APs in an answer, MaxAnswerBytes its size, for an AP's sake.
	MaxNeighbours  = 32
	MaxAnswerBytes = 8 << 10
	// staleAfter: a record comes every 5 s while two APs on the channel talk. An older one is of a platform that stands
	// still.
	staleAfter  = time.Minute
	maxChannels = 100000 // of all sites: it bounds memory, whatever Kafka says
)

// Table holds the latest record of each channel.
type Table struct {
	metrics *metric.Set
	now     func() time.Time
	logger  *slog.Logger

	lock     sync.RWMutex // guards channels
	channels map[string]*channel
}

type channel struct {
	record *Record
	etag   string
}

// New is an empty table.
func New(m *metric.Set, now func() time.Time, logger *slog.Logger) *Table {
	return &Table{metrics: m, now: now, logger: logger, channels: map[string]*channel{}}
}

// Take is the next record of the topic; a nil value withdraws. One that is damaged takes the place of none.
func (t *Table) Take(key string, value []byte) {
	action := "refused"
	defer func() { t.metrics.Neighbours.WithLabelValues(action).Inc() }()
	if value == nil {
		action = "withdrawn"
		t.put(key, nil)
		return
	}
	parsed, err := Parse(key, value)
	if err != nil {
		t.logger.Warn("a record of neighbours is refused; what was there before stays", "key", key, "error", err)
		return
	}
	sum := sha256.Sum256(value)
	if t.put(key, &channel{parsed, hex.EncodeToString(sum[:16])}) {
		action = "taken"
	}
}

// put replaces a channel; nil removes it. False: there are too many.
func (t *Table) put(key string, c *channel) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	if c == nil {
		delete(t.channels, key)
	} else if t.channels[key] == nil && len(t.channels) >= maxChannels {
		return false
	} else {
		t.channels[key] = c
	}
	t.metrics.Channels.Set(float64(len(t.channels)))
	return true
}

// neighbour is an AP on the same channel with the age of its figures.
type neighbour struct {
	AP
	AgeMS uint32 `json:"age_ms"`
}

type answer struct {
	Site         string      `json:"site"`
	FrequencyMHz uint16      `json:"frequency_mhz"`
	TUS          int64       `json:"t_us"`
	APs          []neighbour `json:"aps"`
}

// For is what an AP gets about its channel: the record without itself, as JSON, and the tag that names it. known is
// false when there is no record, or none younger than a minute. No body is made for an AP that has the tag already.
func (t *Table) For(id, site string, frequencyMHz uint16, tag string) (body []byte, etag string, known bool) {
	t.lock.RLock()
	c := t.channels[Key(site, frequencyMHz)]
	t.lock.RUnlock()
	if c == nil {
		return nil, "", false
	}
	age := t.now().UnixMicro() - c.record.TUS
	if age > staleAfter.Microseconds() {
		return nil, "", false
	}
	if tag == c.etag {
		return nil, c.etag, true
	}
	a := answer{c.record.Site, c.record.FrequencyMHz, c.record.TUS, make([]neighbour, 0, MaxNeighbours)}
	for _, ap := range c.record.APs {
		if ap.ID != id && len(a.APs) < MaxNeighbours {
			a.APs = append(a.APs, neighbour{ap, uint32(min(max(age, 0)/1000, math.MaxUint32))})
		}
	}
	body, _ = json.Marshal(&a)
	return body, c.etag, true
}
