package base

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/transport"
)

// A handshake takes about a millisecond of processor time and some tens of KiB, and it waits for
// the client. So no event loop runs one, and only a limited number run at once.

// shortShare is the divisor of [transport.Limits.Handshake] while other clients wait for their
// handshake.
const shortShare = 5

// Handshaker is a connection before its handshake.
type Handshaker interface {
	// Handshake runs the handshake, which has to end at the instant by, and passes the connection
	// on or closes it.
	Handshake(by time.Time)
	// Shorten makes Handshake end at the instant by, if it would not end sooner. Any goroutine may
	// call it, at any time.
	Shorten(by time.Time)
	// GiveUp closes the connection. It is called instead of Handshake.
	GiveUp()
}

// Handshakes runs handshakes on goroutines of its own, up to a maximum at once. The newest waiting
// handshake is next: thousands of clients that connect and send nothing are then the oldest that
// wait, and do not delay clients that come after them. While a handshake waits, running ones get
// less time.
type Handshakes struct {
	max   int
	lim   *atomic.Pointer[transport.Limits]
	ended sync.WaitGroup

	mu      sync.Mutex // mu guards the fields below
	stopped bool
	running []*handshake // the running handshakes, the oldest first
	waiting []*handshake // the waiting handshakes, the oldest first
}

// handshake is a waiting or running handshake.
type handshake struct {
	Handshaker
	accepted, begun time.Time
	shortened       bool
}

// NewHandshakes returns the handshakes of a transport with the given number of event loops. It
// reads the timeout from lim.
func NewHandshakes(loops int, lim *atomic.Pointer[transport.Limits]) *Handshakes {
	return &Handshakes{max: transport.MaxHandshakes(loops), lim: lim}
}

// timeout returns the time for a handshake, shortTimeout the time for one while others wait.
func (s *Handshakes) timeout() time.Duration      { return s.lim.Load().Handshake }
func (s *Handshakes) shortTimeout() time.Duration { return s.timeout() / shortShare }

// Begin starts the handshake of c, now or when others have ended. It does not block.
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
		s.ended.Add(1) // Add is called with mu held, so that Stop comes before or after it
		s.mu.Unlock()
		go s.serve(h, by)
	}
}

// start notes that h is running, and returns the deadline of h. The caller holds mu.
func (s *Handshakes) start(h *handshake) (by time.Time) {
	h.begun = time.Now()
	s.running = append(s.running, h)
	by = h.accepted.Add(s.timeout())
	if h.shortened = len(s.waiting) > 0; h.shortened && by.After(h.begun.Add(s.shortTimeout())) {
		by = h.begun.Add(s.shortTimeout())
	}
	return by
}

// shortenOne shortens the oldest running handshake that still has its full time. The caller holds
// mu.
func (s *Handshakes) shortenOne() {
	for _, h := range s.running {
		if !h.shortened {
			h.shortened = true
			h.Shorten(h.begun.Add(s.shortTimeout()))
			return
		}
	}
}

// serve runs h and then handshakes that wait.
func (s *Handshakes) serve(h *handshake, by time.Time) {
	defer s.ended.Done()
	for h != nil {
		h.Handshake(by)
		h, by = s.next(h)
	}
}

// next removes done from the running handshakes. It returns the newest waiting handshake, which now
// counts as running, and its deadline as by. h is nil if no handshake waits. next also gives up the
// handshakes that have waited too long.
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

// takeLate removes and returns the handshakes that were accepted before then. The caller holds mu.
func (s *Handshakes) takeLate(then time.Time) []*handshake {
	n := 0
	for n < len(s.waiting) && s.waiting[n].accepted.Before(then) {
		n++
	}
	late := slices.Clone(s.waiting[:n])
	s.waiting = slices.Delete(s.waiting, 0, n)
	return late
}

// Count returns the number of waiting and running handshakes.
func (s *Handshakes) Count() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.running) + len(s.waiting))
}

// Stop ends all handshakes, and later ones are given up at once. No client has been promised
// anything yet.
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

// Wait waits until all handshakes have ended. It must be called after Stop.
func (s *Handshakes) Wait() { s.ended.Wait() }

// LongAgo returns a deadline that has passed.
func LongAgo() time.Time { return time.Unix(1, 0) }
