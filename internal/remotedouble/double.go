// Package remotedouble is an [env.Remote] for tests: a keyspace that answers on other
// goroutines, in random order between keys, and a server that asks it.
package remotedouble

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cellserver/cellserver/cluster"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
)

// Double decides what it is asked. Asks about one key are decided in order.
type Double struct {
	Keyspace *keyspace.Keyspace

	mu      sync.Mutex
	changed *sync.Cond // on mu
	rng     *rand.Rand // guarded by mu
	jobs    []*job     // guarded by mu: in the order of submission, those that run included
	decided int        // guarded by mu
	held    bool       // guarded by mu
	closed  bool       // guarded by mu
	fault   func(a *decide.Ask) error
	running sync.WaitGroup
}

// job is what is decided at one instant.
type job struct {
	asks  []*decide.Ask
	of    *submission
	begun bool
}

// submission is what came by one Submit.
type submission struct {
	left int // jobs, guarded by the mutex of the double
	done func()
}

const (
	// deciders is how many asks are decided at once.
	deciders = 4
	// inView is among how many jobs the next one is chosen.
	inView = 128
)

// New returns a double over ks, which is the caller's. Close ends it.
func New(ks *keyspace.Keyspace, seed uint64) *Double {
	d := &Double{Keyspace: ks, rng: rand.New(rand.NewPCG(seed, 1))}
	d.changed = sync.NewCond(&d.mu)
	for range deciders {
		d.running.Go(d.decide)
	}
	return d
}

// SetFailPolicies implements [server.RemoteStore]. A double always answers, so no policy does.
func (d *Double) SetFailPolicies(map[string]string) {}

// Close waits for what is being decided and drops the rest.
func (d *Double) Close() {
	d.mu.Lock()
	d.closed = true
	d.changed.Broadcast()
	d.mu.Unlock()
	d.running.Wait()
}

// Put makes a key hold a value of that kind; without a ttl it never expires.
func (d *Double) Put(key string, kind entry.Kind, value string, ttl time.Duration) error {
	h := d.Keyspace.NewHandle()
	defer h.Close()
	expiry := entry.NoExpiry
	if ttl != 0 {
		expiry = h.Refresh().Add(ttl)
	}
	return h.Put(0, []byte(key), kind, []byte(value), expiry)
}

// Now is the instant of the keyspace's clock.
func (d *Double) Now() limit.Instant { return d.Keyspace.Clock().Now() }

// Info is that of no store in particular.
func (*Double) Info() cluster.Info { return cluster.Info{Kind: "double"} }

// Hold keeps everything undecided until Release.
func (d *Double) Hold() { d.setHeld(true) }

// Release lets go on.
func (d *Double) Release() { d.setHeld(false) }

func (d *Double) setHeld(held bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = held
	d.changed.Broadcast()
}

// Fail has f say with which error an ask is answered, instead of being decided; nil decides
// it.
func (d *Double) Fail(f func(a *decide.Ask) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// Pending is how many asks wait to be decided, or are being decided.
func (d *Double) Pending() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, j := range d.jobs {
		n += len(j.asks)
	}
	return n
}

// Decided is how many asks have been decided.
func (d *Double) Decided() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.decided
}

// Submit implements [env.Remote].
func (d *Double) Submit(asks []*decide.Ask, together bool, done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := &submission{left: len(asks), done: done}
	if together {
		of.left = 1
		d.jobs = append(d.jobs, &job{asks: asks, of: of})
	} else {
		for i := range asks {
			d.jobs = append(d.jobs, &job{asks: asks[i : i+1], of: of})
		}
	}
	d.changed.Broadcast()
}

// decide decides jobs until the double is closed.
func (d *Double) decide() {
	h := d.Keyspace.NewHandle()
	defer h.Close()
	for {
		j, fault := d.take()
		if j == nil {
			return
		}
		h.Enter()
		h.Refresh()
		if len(j.asks) > 1 {
			h.LockAll()
		}
		for _, a := range j.asks {
			if fault != nil {
				if a.Err = fault(a); a.Err != nil {
					continue
				}
			}
			h.Decide(a)
		}
		if len(j.asks) > 1 {
			h.Unlock()
		}
		h.Leave()
		d.end(j)
	}
}

// take begins any of the jobs that no earlier one has to come before; nil once the double
// is closed.
func (d *Double) take() (*job, func(a *decide.Ask) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		if d.closed {
			return nil, nil
		}
		if free := d.free(); len(free) > 0 {
			j := free[d.rng.IntN(len(free))]
			j.begun = true
			return j, d.fault
		}
		d.changed.Wait()
	}
}

// free returns the jobs that may begin.
func (d *Double) free() (free []*job) {
	if d.held {
		return nil
	}
	busy := map[string]bool{}
	for i, j := range d.jobs[:min(len(d.jobs), inView)] {
		may := !j.begun
		for _, a := range j.asks {
			keys, all := keysOf(a)
			if all {
				if may && i == 0 {
					free = append(free, j)
				}
				return free // whatever comes behind waits for it
			}
			for _, key := range keys {
				may = may && !busy[key]
			}
		}
		for _, a := range j.asks {
			keys, _ := keysOf(a)
			for _, key := range keys {
				busy[key] = true
			}
		}
		if may {
			free = append(free, j)
		}
	}
	return free
}

// keysOf returns the keys that an ask is about, or that it is about all.
func keysOf(a *decide.Ask) (keys []string, all bool) {
	switch {
	case a.Family == decide.Several:
		for i := range a.Clauses {
			keys = append(keys, string(a.Clauses[i].Key))
		}
		return keys, false
	case a.Family == decide.Admin && (a.Admin.Op == decide.Scan || a.Admin.Op == decide.Count || a.Admin.Op == decide.Flush):
		return nil, true
	}
	return []string{string(a.Key)}, false
}

// end takes a job that is decided out of the queue.
func (d *Double) end(j *job) {
	d.mu.Lock()
	d.decided += len(j.asks)
	for i := range d.jobs {
		if d.jobs[i] == j {
			d.jobs = append(d.jobs[:i], d.jobs[i+1:]...)
			break
		}
	}
	j.of.left--
	last := j.of.left == 0
	d.changed.Broadcast()
	d.mu.Unlock()
	if last {
		j.of.done()
	}
}
