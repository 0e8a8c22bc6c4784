// Package limit keeps anyone from asking too often.
package limit

import (
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Limiter gives everyone who asks a bucket of tokens.
type Limiter struct {
	rate, burst float64
	now         func() time.Time

	lock    sync.Mutex // guards buckets and swept
	buckets map[string]*bucket
	swept   time.Time
}

type bucket struct {
	tokens float64
	at     time.Time
}

// New is a limiter of rate per second, lasting, and burst at once.
func New(rate float64, burst int, now func() time.Time) *Limiter {
	return &Limiter{rate: rate, burst: float64(burst), now: now, buckets: map[string]*bucket{}}
}

// Take is 0 when the one of this name may go on, otherwise how long it must wait.
func (l *Limiter) Take(id string) time.Duration {
	l.lock.Lock()
	defer l.lock.Unlock()
	now := l.now()
	l.sweep(now)
	b := l.buckets[id]
	if b == nil {
		b = &bucket{l.burst, now}
		l.buckets[id] = b
	}
	b.tokens = min(l.burst, b.tokens+l.rate*now.Sub(b.at).Seconds())
	b.at = now
	if b.tokens < 1 {
		return time.Duration((1 - b.tokens) / l.rate * float64(time.Second))
	}
	b.tokens--
	return 0
}

// RetryAfter tells who asks when to come back, in whole seconds.
func RetryAfter(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
}

// sweep forgets, once a minute, those whose bucket is full again.
func (l *Limiter) sweep(now time.Time) {
	if now.Sub(l.swept) < time.Minute {
		return
	}
	l.swept = now
	for id, b := range l.buckets {
		if b.tokens+l.rate*now.Sub(b.at).Seconds() >= l.burst {
			delete(l.buckets, id)
		}
	}
}
