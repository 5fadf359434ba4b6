package attack

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
)

// Options say how an attack is carried out.
type Options struct {
	Server Server
	// Full is the full size, for a machine of its own.
	Full bool
	// Seed makes random attacks repeatable.
	Seed uint64
	// Probe is how latency is measured; nil is [Measure].
	Probe Probe
	// Limit bounds the attack, filling the server included; 0 is two minutes.
	Limit time.Duration
}

// Result is what one attack on one server came to.
type Result struct {
	Attack, Server string
	// Skipped says why the attack was not made.
	Skipped string
	// Others is what another client saw meanwhile; ProbeFault says why that is not
	// known, which mostly is that the server closed its connection.
	Others     Latency
	ProbeFault string
	// Idle is what the same commands met at the same time on a server of the same kind
	// that nobody attacked: what of Others is the machine's. Only at full size.
	Idle Latency
	// Peak is the most resident memory of the process, Filled what it held before the
	// attack, and Bound what it may: 1.1 times maxmemory and 64 MiB. In bytes; 0 where
	// the system does not tell.
	Peak, Filled, Bound int64
	// The requests of clients that read: answered, answered with an error, cut off,
	// and not answered in time.
	Served, Refused, Closed, Late int64
	// Replies and Bytes came back to all clients, within Elapsed.
	Replies, Bytes int64
	Elapsed        time.Duration
	// User and System are the server's processor time during the attack.
	User, System time.Duration
	// Errors has the number of error replies by their first word.
	Errors map[string]int64
	// Notes are figures that this attack alone has.
	Notes []string
	// Died says how the server ended, if it did.
	Died string
	// Cell says that the server is cellserver, which keeps to Bound.
	Cell bool
}

// Faults says what an attack must not achieve on cellserver, each in a sentence, and
// nothing for another server.
func (r *Result) Faults() []string {
	var faults []string
	add := func(format string, args ...any) { faults = append(faults, r.Attack+": "+fmt.Sprintf(format, args...)) }
	switch {
	case !r.Cell || r.Skipped != "":
		return nil
	case r.Died != "":
		add("the server died: %s", r.Died)
		return faults
	}
	if r.Peak > r.Bound {
		add("the process held %d MiB, its bound is %d", r.Peak>>20, r.Bound>>20)
	}
	if r.Closed > 0 {
		add("%d requests of clients that read were cut off", r.Closed)
	}
	if r.Late > 0 {
		add("%d requests of clients that read were not answered in time", r.Late)
	}
	if r.ProbeFault != "" {
		add("another client: %s", r.ProbeFault)
	}
	if r.Others.Unanswered > 0 {
		add("%d commands of another client were never answered", r.Others.Unanswered)
	}
	return faults
}

// Run carries out an attack on a server that it starts and stops. The error is one of
// carrying it out; what the attack did to the server is in the result.
func Run(ctx context.Context, a *Attack, o Options) (*Result, error) {
	if o.Limit == 0 {
		o.Limit = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	megabytes := a.maxMemory[0]
	if o.Full {
		megabytes = a.maxMemory[1]
	}
	options := append([]string{"--maxmemory", strconv.Itoa(megabytes) + "mb"}, a.options...)
	server, err := o.Server.start(ctx, options...)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	s := &scene{server: server, full: o.Full, seed: o.Seed}
	bytes := int64(megabytes) << 20
	r := &Result{Attack: a.Name, Server: o.Server.Label, Cell: server.cell, Bound: bytes + bytes/10 + 64<<20}
	if a.CellOnly && !server.cell {
		r.Skipped = "only for cellserver"
		return r, nil
	}
	if a.fill != nil {
		if err := a.fill(ctx, s); err != nil {
			return nil, fmt.Errorf("preparing %s on %s: %w", a.Name, o.Server.Label, err)
		}
	}
	var idle *instance
	if o.Full {
		if idle, err = o.Server.start(ctx, options...); err != nil {
			return nil, err
		}
		defer idle.stop()
	}
	if err := r.attack(ctx, a, &o, s, idle); err != nil {
		return nil, fmt.Errorf("%s on %s: %w", a.Name, o.Server.Label, err)
	}
	r.take(&s.tally)
	return r, nil
}

// attack lets the attack go while a probe looks on, and another at an idle server unless
// that is nil, and measures the process.
func (r *Result) attack(ctx context.Context, a *Attack, o *Options, s *scene, idle *instance) error {
	memory := watch(s.server)
	probing, enough := context.WithCancel(ctx)
	defer enough()
	attacked := o.look(probing, s.server)
	quiet := attacked
	if idle != nil {
		quiet = o.look(probing, idle)
	}
	<-attacked.ready.Done()
	<-quiet.ready.Done()
	before, _ := process.Of(s.server.pid)
	r.Filled = before.RSS
	begun := time.Now()
	err := a.run(ctx, s)
	r.Elapsed = time.Since(begun)
	after, _ := process.Of(s.server.pid) // zero where it is not known
	enough()
	r.Others, r.ProbeFault = attacked.result()
	if idle != nil {
		r.Idle, _ = quiet.result() // a fault is the machine's: there are no figures then
	}
	r.Peak = memory.stop()
	if !s.server.alive() {
		r.Died = s.server.lastWords()
		return nil // whatever the clients met is of no interest
	}
	r.User, r.System = after.User-before.User, (after.CPU-after.User)-(before.CPU-before.User)
	return err
}

// take copies what the clients counted.
func (r *Result) take(t *tally) {
	r.Served, r.Refused, r.Closed, r.Late = t.served.Load(), t.refused.Load(), t.closed.Load(), t.late.Load()
	r.Replies, r.Bytes = t.replies.Load(), t.bytes.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Errors, r.Notes = maps.Clone(t.errors), slices.Clone(t.notes)
}

// memory follows the resident memory of a process.
type memory struct {
	server *instance
	end    chan struct{}
	done   chan int64
}

// watch begins to follow the server's memory. The kernel remembers the peak for as
// long as the process lives; the samples are for when it dies.
func watch(server *instance) *memory {
	m := &memory{server: server, end: make(chan struct{}), done: make(chan int64, 1)}
	go func() {
		every := time.NewTicker(20 * time.Millisecond)
		defer every.Stop()
		var most int64
		for {
			if peak, err := process.Peak(server.pid); err == nil {
				most = max(most, peak)
			}
			select {
			case <-m.end:
				m.done <- most
				return
			case <-every.C:
			}
		}
	}()
	return m
}

// stop returns the most that the process has held.
func (m *memory) stop() int64 {
	close(m.end)
	most := <-m.done
	if peak, err := process.Peak(m.server.pid); err == nil {
		most = max(most, peak)
	}
	return most
}

// errorList returns the error replies as words.
func (r *Result) errorList() string {
	var parts []string
	for _, word := range slices.Sorted(maps.Keys(r.Errors)) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Errors[word], word))
	}
	return strings.Join(parts, ", ")
}

// look begins to probe a server, until ctx ends.
func (o *Options) look(ctx context.Context, at *instance) *look {
	probe := o.Probe
	if probe == nil {
		probe = Measure
	}
	ready, seen := context.WithCancel(ctx)
	l := &look{ready: ready, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		defer seen() // one that has failed is not waited for
		saw, err := probe(ctx, at.address, at.probes(), seen)
		if l.saw = saw; err != nil {
			l.fault = err.Error()
		}
	}()
	return l
}
