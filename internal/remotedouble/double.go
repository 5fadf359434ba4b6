// Package remotedouble provides an [env.Remote] for tests, and a server that uses it. The double
// decides asks with a keyspace, on other goroutines than the caller's, and in random order between
// keys.
package remotedouble

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/remote/engine"
)

// Double is a remote store: it decides every [decide.Ask] that is submitted. It decides asks about
// one key in the order of their submission. It implements [env.Remote] and [server.RemoteStore].
// Any goroutine may call its methods.
type Double struct {
	Keyspace *keyspace.Keyspace
	// Records has the policies. The mutex of the double guards it.
	Records *Records

	mu      sync.Mutex
	changed *sync.Cond // signals, with mu, that a job may be decided or that the double was closed
	rng     *rand.Rand // generator that chooses the next job; guarded by mu
	jobs    []*job     // the jobs in the order of submission, with those that are being decided; guarded by mu
	decided int        // number of jobs that were decided; guarded by mu
	held    bool       // whether no job may be decided for now; guarded by mu
	closed  bool       // whether the double was closed; guarded by mu
	fault   func(a *decide.Ask) error
	running sync.WaitGroup
}

// job is a set of asks that are decided together, at one instant.
type job struct {
	asks  []*decide.Ask
	of    *submission
	begun bool
}

// submission is one call of Submit.
type submission struct {
	left int // number of jobs that are not decided; guarded by the mutex of the double
	done func()
}

const (
	// deciders is the number of jobs that are decided at the same time.
	deciders = 4
	// inView is the number of jobs at the head of the queue from which the next one is chosen.
	inView = 128
)

// New returns a double over ks, which the caller must close after Close. seed determines the random
// order of jobs.
func New(ks *keyspace.Keyspace, seed uint64) *Double {
	d := &Double{Keyspace: ks, Records: NewRecords(), rng: rand.New(rand.NewPCG(seed, 1))}
	d.changed = sync.NewCond(&d.mu)
	for range deciders {
		d.running.Go(d.decide)
	}
	return d
}

// SetFailPolicies implements [server.RemoteStore]. It does nothing, since a double always answers.
func (d *Double) SetFailPolicies(map[string]string) {}

// SetServers implements [server.RemoteStore]. It does nothing, since a double does not divide
// limits.
func (d *Double) SetServers(int) {}

// Eval implements [records.Engine]. It runs a script of package records at the instant of the keyspace's clock.
func (d *Double) Eval(_ context.Context, script string, keys, args []string) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Records.Now = int64(d.Now())
	return d.Records.Run(script, keys, args), nil
}

// Confirm implements [records.Engine].
func (d *Double) Confirm(ctx context.Context, script string, keys, args []string, most time.Duration) (engine.Confirmed, error) {
	reply, err := d.Eval(ctx, script, keys, args)
	if err != nil {
		return engine.Confirmed{}, err
	}
	return d.Records.Replicas.Confirm(ctx, reply, most)
}

// Listen implements [records.Engine].
func (d *Double) Listen(ctx context.Context, channel string, heard func(err error)) {
	d.Records.Channel.Listen(ctx, channel, heard)
}

// Close waits for the asks that are being decided, and drops the rest without an answer.
func (d *Double) Close() {
	d.mu.Lock()
	d.closed = true
	d.changed.Broadcast()
	d.mu.Unlock()
	d.running.Wait()
}

// Put sets key in database 0 to value, with the given kind. The key expires after ttl; if ttl is 0,
// it never does.
func (d *Double) Put(key string, kind entry.Kind, value string, ttl time.Duration) error {
	h := d.Keyspace.NewHandle()
	defer h.Close()
	expiry := entry.NoExpiry
	if ttl != 0 {
		expiry = h.Refresh().Add(ttl)
	}
	return h.Put(0, []byte(key), kind, []byte(value), expiry)
}

// Now returns the instant of the keyspace's clock.
func (d *Double) Now() limit.Instant { return d.Keyspace.Clock().Now() }

// Info implements [server.RemoteStore].
func (*Double) Info() remote.Info { return remote.Info{Kind: "double"} }

// Hold makes asks wait, until Release. Asks that are being decided are not affected.
func (d *Double) Hold() { d.setHeld(true) }

// Release ends the effect of Hold.
func (d *Double) Release() { d.setHeld(false) }

func (d *Double) setHeld(held bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = held
	d.changed.Broadcast()
}

// Fail makes the double call f for each ask. If f returns an error, the ask gets that error,
// otherwise it is decided. A nil f ends this.
func (d *Double) Fail(f func(a *decide.Ask) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// Pending returns the number of asks that wait to be decided or are being decided.
func (d *Double) Pending() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, j := range d.jobs {
		n += len(j.asks)
	}
	return n
}

// Decided returns the number of asks that have been answered.
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

// decide decides jobs until the double is closed. Several goroutines run it.
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

// take waits for a job that may start, chooses one at random, marks it as begun and returns it,
// with the function of Fail. It returns nil when the double is closed.
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

// free returns the jobs among the first inView ones that may start, because they do not have to
// wait for an earlier job about one of their keys. After Hold there are none. The caller holds mu.
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
				return free // all later jobs have to wait for this one
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

// keysOf returns the keys that a concerns. all is true, and keys is nil, if that is every key.
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
	keys = []string{string(a.Key)}
	if a.Family == decide.Joint {
		for _, key := range a.Others {
			keys = append(keys, string(key))
		}
	}
	return keys, false
}

// end removes the decided job j from the queue. If it is the last of its submission, end calls the
// function done.
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
