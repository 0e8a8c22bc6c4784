package api

import (
	"sync"
	"time"
)

// limiter gives every AP a bucket of tokens.
type limiter struct {
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

func newLimiter(rate float64, burst int, now func() time.Time) *limiter {
	return &limiter{rate: rate, burst: float64(burst), now: now, buckets: map[string]*bucket{}}
}

// take is 0 when the AP may go on, otherwise how long it must wait.
func (l *limiter) take(id string) time.Duration {
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

// sweep forgets, once a minute, APs whose bucket is full again.
func (l *limiter) sweep(now time.Time) {
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
