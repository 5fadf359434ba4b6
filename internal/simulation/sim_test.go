package simulation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellserver/cellserver/internal/inproc"
)

// Report is the result of a history.
type Report struct {
	Plan Plan
	// Broken is the first invariant that was violated, and Why describes how; both are empty if
	// none was.
	Broken, Why string
	// Events is the log of the history, one event in each line.
	Events string
	// Virtual is the duration of the history in virtual time.
	Virtual time.Duration
	// Calls, Faults, Excused and Checked count the calls of clients, the faults, the faults that
	// broke a promise, and the checks.
	Calls, Faults, Excused, Checked int64
}

// Sim is a running history.
type Sim struct {
	t     *testing.T
	w     *inproc.World
	plan  Plan
	rng   *rand.Rand
	nodes []*inproc.Node
	dead  map[int]bool
	back  map[int]bool // nodes whose wall clock has ever jumped back
	// primary is the node that clients consider the primary.
	primary atomic.Int32
	events  events
	order   order

	parts parts
	rates rates
	queue atomic.Pointer[queue]

	mu                      sync.Mutex // guards the fields below
	broken, why             string
	ahead                   time.Duration // how far clocks have jumped ahead
	calls                   atomic.Int64
	faults, excused, checks int64
	sentinel                *sentinel
}

// Run plays the history of a seed in its own bubble.
func Run(t *testing.T, seed uint64) (r Report) {
	t.Helper()
	plan := Draw(seed)
	s := &Sim{plan: plan, rng: rand.New(rand.NewPCG(seed, 2)), dead: map[int]bool{}, back: map[int]bool{}, rates: newRates()}
	defer func() {
		r.Plan, r.Broken, r.Why, r.Events = plan, s.broken, s.why, s.events.String()
		r.Calls, r.Faults, r.Excused, r.Checked = s.calls.Load(), s.faults, s.excused, s.checks
	}()
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s.t, s.w = t, w
		began := time.Now()
		defer func() { r.Virtual = time.Since(began) }()
		defer func() {
			if t.Failed() {
				t.Logf("%v\n%v", plan, s.events.String())
			}
		}()
		s.play()
	})
	return r
}

// fail records that an invariant was violated. The history ends soon after.
func (s *Sim) fail(invariant, format string, args ...any) {
	s.events.add("BROKEN "+invariant+": "+format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == "" {
		s.broken, s.why = invariant, fmt.Sprintf(format, args...)
	}
}

// failed reports whether an invariant was violated.
func (s *Sim) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken != ""
}

func (s *Sim) withTimeout(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.t.Context(), d)
}

// play starts all servers and plays the rounds.
func (s *Sim) play() {
	for i := range 1 + s.plan.Replicas {
		options := s.plan.Options
		if i > 0 {
			options = append(options[:len(options):len(options)], "--replicaof", s.nodes[0].Host+" 6379")
		}
		n := s.w.Start(options...)
		s.nodes = append(s.nodes, n)
		s.events.add("node %d is %s", i, n.Host)
	}
	if !s.converge("at the beginning") {
		return
	}
	if s.plan.Sentinel {
		s.sentinel = newSentinel(s)
		defer s.sentinel.stop()
	}
	for round := range s.plan.Rounds {
		s.events.add("round %d", round)
		s.round(round)
		if s.failed() {
			return
		}
	}
	s.finish()
}

// round makes clients call while faults occur, and checks the resulting state.
func (s *Sim) round(round int) {
	s.define()
	s.parts.begin(round)
	s.queue.Store(newQueue(round))
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range s.plan.Clients {
		c := &client{
			s: s, id: round*100 + i, host: s.w.Host(), rng: rand.New(rand.NewPCG(s.plan.Seed, uint64(1000+round*100+i))),
			at: int(s.primary.Load()),
		}
		clients.Go(func() { c.run(stop) })
	}
	s.w.Advance(time.Duration(s.rng.IntN(400)) * time.Millisecond)
	for range 1 + s.rng.IntN(4) {
		s.fault()
		s.glance("after a fault")
		if s.failed() {
			break
		}
	}
	s.heal()
	s.w.Advance(time.Duration(s.rng.IntN(1000)) * time.Millisecond)
	close(stop)
	clients.Wait()
	if s.failed() || !s.converge("at the end of a round") {
		return
	}
	s.check()
}

// define sets the policies that clients use.
func (s *Sim) define() {
	for range 20 {
		a := s.do(s.leader(), "RL.POLICY", "SET", "use", "LIMITS", "SW", "15", years, "FIXED")
		b := s.do(s.leader(), "RL.POLICY", "SET", "rate", "LIMITS", "TB", "20", "2", "1")
		c := s.do(s.leader(), "RL.POLICY", "SET", "harsh", "LIMITS", "SW", "2", "5", "FIXED", "BAN", "3", "60", "1", "MAX", "60")
		if a == "+OK\r\n" && b == a && c == a {
			return
		}
		s.w.Advance(time.Second)
	}
	s.fail("whole", "the primary takes no policy: %q", s.do(s.leader(), "RL.POLICY", "SET", "use", "LIMITS", "SW", "15", years, "FIXED"))
}

// leader returns the node that is considered the primary.
func (s *Sim) leader() *inproc.Node { return s.nodes[s.primary.Load()] }

// excuse records that a fault has broken a promise: earlier acknowledged writes may be lost.
func (s *Sim) excuse(why string) {
	s.events.add("excused: %s", why)
	s.excused++
	now, past := s.parts.all()
	for _, p := range append(now, past...) {
		p.mu.Lock()
		p.excused = true
		p.mu.Unlock()
	}
	for _, r := range s.rates.all {
		r.mu.Lock()
		r.times++
		r.mu.Unlock()
	}
	q := s.queue.Load()
	q.mu.Lock()
	q.excused = true
	q.mu.Unlock()
}
