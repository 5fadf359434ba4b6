package base

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/transport"
)

// A handshake takes about a millisecond of a processor and some tens of KiB, and it waits
// for the client: so no loop does it, and only so many are under way at once.

// shortShare is what part of [transport.Limits.Handshake] a client has while others wait to begin.
const shortShare = 5

// Handshaker is a connection before its handshake.
type Handshaker interface {
	// Handshake does the handshake until by, and passes the connection on or closes it.
	Handshake(by time.Time)
	// Shorten has shake end by then. Any goroutine may call it, at any time.
	Shorten(by time.Time)
	// GiveUp closes the connection. It is called instead of shake.
	GiveUp()
}

// Handshakes runs handshakes on goroutines of its own, up to most at once. Of those that
// wait the newest is next: clients that connect and say nothing, a thousand of them, are
// the oldest of those that wait, and do not delay the clients that come after them.
// While a handshake waits, the time of those under way is shortened.
type Handshakes struct {
	max   int
	lim   *atomic.Pointer[transport.Limits]
	ended sync.WaitGroup

	mu      sync.Mutex // guards what follows
	stopped bool
	running []*handshake // the oldest first
	waiting []*handshake // the oldest first
}

// handshake is one that waits or is under way.
type handshake struct {
	Handshaker
	accepted, begun time.Time
	shortened       bool
}

// NewHandshakes returns handshakes for a transport with so many event loops. It reads the time that
// a client has from lim.
func NewHandshakes(loops int, lim *atomic.Pointer[transport.Limits]) *Handshakes {
	return &Handshakes{max: transport.MaxHandshakes(loops), lim: lim}
}

// timeout is how long a client may take, and hurried how long while others wait to begin.
func (s *Handshakes) timeout() time.Duration      { return s.lim.Load().Handshake }
func (s *Handshakes) shortTimeout() time.Duration { return s.timeout() / shortShare }

// Begin has the handshake of c done, now or when others have ended. It does not wait.
func (s *Handshakes) Begin(c Handshaker) {
	h := &handshake{Handshaker: c, accepted: time.Now()}
	s.mu.Lock()
	switch {
	case s.stopped:
		s.mu.Unlock()
		h.GiveUp()
	case len(s.running) >= s.max:
		s.waiting = append(s.waiting, h)
		s.shortenOne()
		s.mu.Unlock()
	default:
		by := s.start(h)
		s.ended.Add(1) // with mu held: stop comes before or after
		s.mu.Unlock()
		go s.serve(h, by)
	}
}

// start notes that h is under way, and returns when it has to end. The caller holds mu.
func (s *Handshakes) start(h *handshake) (by time.Time) {
	h.begun = time.Now()
	s.running = append(s.running, h)
	by = h.accepted.Add(s.timeout())
	if h.shortened = len(s.waiting) > 0; h.shortened && by.After(h.begun.Add(s.shortTimeout())) {
		by = h.begun.Add(s.shortTimeout())
	}
	return by
}

// shortenOne cuts the time of the oldest that is under way with all of it. The caller holds mu.
func (s *Handshakes) shortenOne() {
	for _, h := range s.running {
		if !h.shortened {
			h.shortened = true
			h.Shorten(h.begun.Add(s.shortTimeout()))
			return
		}
	}
}

// serve does h and then what waits.
func (s *Handshakes) serve(h *handshake, by time.Time) {
	defer s.ended.Done()
	for h != nil {
		h.Handshake(by)
		h, by = s.next(h)
	}
}

// next takes the newest of those that wait, and gives those up that have waited for too long.
func (s *Handshakes) next(done *handshake) (h *handshake, by time.Time) {
	s.mu.Lock()
	i := slices.Index(s.running, done)
	s.running = slices.Delete(s.running, i, i+1)
	if last := len(s.waiting) - 1; last >= 0 {
		h = s.waiting[last]
		s.waiting[last] = nil
		s.waiting = s.waiting[:last]
		by = s.start(h)
	}
	late := s.takeLate(time.Now().Add(-s.timeout()))
	s.mu.Unlock()
	for _, h := range late {
		h.GiveUp()
	}
	return h, by
}

// takeLate removes those that have waited since before then. The caller holds mu.
func (s *Handshakes) takeLate(then time.Time) []*handshake {
	n := 0
	for n < len(s.waiting) && s.waiting[n].accepted.Before(then) {
		n++
	}
	late := slices.Clone(s.waiting[:n])
	s.waiting = slices.Delete(s.waiting, 0, n)
	return late
}

// Count returns how many wait or are under way.
func (s *Handshakes) Count() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.running) + len(s.waiting))
}

// Stop ends all of them, and none begins any more. Nothing has been promised to the
// clients.
func (s *Handshakes) Stop() {
	s.mu.Lock()
	s.stopped = true
	waiting := s.waiting
	s.waiting = nil
	for _, h := range s.running {
		h.Shorten(LongAgo())
	}
	s.mu.Unlock()
	for _, h := range waiting {
		h.GiveUp()
	}
}

// Wait returns when all have ended after stop.
func (s *Handshakes) Wait() { s.ended.Wait() }

// LongAgo is a deadline that has passed.
func LongAgo() time.Time { return time.Unix(1, 0) }
