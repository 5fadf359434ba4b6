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

// Options specify how an attack is carried out.
type Options struct {
	Server Server
	// Full selects the full size, which needs a machine of its own.
	Full bool
	// Seed makes random attacks repeatable.
	Seed uint64
	// Probe measures latency; nil means [Measure].
	Probe Probe
	// Limit is the maximum duration of the attack, including filling the server; 0 means two
	// minutes.
	Limit time.Duration
}

// Result is the result of one attack on one server.
type Result struct {
	Attack, Server string
	// Skipped is the reason why the attack was not made, or "".
	Skipped string
	// Others is the latency that another client measured during the attack. ProbeFault is the
	// reason why it is not known, usually that the server closed that client's connection.
	Others     Latency
	ProbeFault string
	// Idle is the latency of the same commands at the same time on a second server that was not
	// attacked: the part of Others that the machine causes. It is measured only at full size.
	Idle Latency
	// Peak is the maximum resident memory of the process in bytes, Filled its memory before the
	// attack, and Bound the memory that it may take: 1.1 times maxmemory plus 64 MiB. Peak and
	// Filled are 0 if the system does not provide them.
	Peak, Filled, Bound int64
	// Served, Refused, Closed and Late count the requests of clients that read: answered, answered
	// with an error, not answered because the server closed the connection, and not answered in
	// time.
	Served, Refused, Closed, Late int64
	// Replies and Bytes count the replies to all clients within Elapsed.
	Replies, Bytes int64
	Elapsed        time.Duration
	// User and System are the server's processor time during the attack.
	User, System time.Duration
	// Errors is the number of error replies by their first word.
	Errors map[string]int64
	// Notes are figures that only this attack has.
	Notes []string
	// Died is the end of the server's log if the server died.
	Died string
	// Cell says that the server is cellserver, to which Bound applies.
	Cell bool
}

// Faults returns, in a sentence each, the effects that an attack must not have on cellserver. It
// returns nothing for other servers.
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

// Run starts a server, carries out an attack on it and stops it. An error means that this was not
// possible. The effects of the attack on the server are in the result.
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

// attack runs the attack while a probe measures the server's latency, and measures the memory and
// the processor time of the process. If idle is not nil, another probe measures that server.
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
	after, _ := process.Of(s.server.pid) // after is zero if the usage is not known
	enough()
	r.Others, r.ProbeFault = attacked.result()
	if idle != nil {
		r.Idle, _ = quiet.result() // after a fault, there are no figures of the idle server
	}
	r.Peak = memory.stop()
	if !s.server.alive() {
		r.Died = s.server.lastWords()
		return nil // the errors of the clients do not matter
	}
	r.User, r.System = after.User-before.User, (after.CPU-after.User)-(before.CPU-before.User)
	return err
}

// take copies the counters of the clients.
func (r *Result) take(t *tally) {
	r.Served, r.Refused, r.Closed, r.Late = t.served.Load(), t.refused.Load(), t.closed.Load(), t.late.Load()
	r.Replies, r.Bytes = t.replies.Load(), t.bytes.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Errors, r.Notes = maps.Clone(t.errors), slices.Clone(t.notes)
}

// memory samples the resident memory of a process.
type memory struct {
	server *instance
	end    chan struct{}
	done   chan int64
}

// watch starts sampling the server's memory. The kernel provides the peak as long as the process
// lives; the samples are for the case that it dies.
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

// stop ends sampling and returns the maximum.
func (m *memory) stop() int64 {
	close(m.end)
	most := <-m.done
	if peak, err := process.Peak(m.server.pid); err == nil {
		most = max(most, peak)
	}
	return most
}

// errorList returns the counts of error replies as text.
func (r *Result) errorList() string {
	var parts []string
	for _, word := range slices.Sorted(maps.Keys(r.Errors)) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Errors[word], word))
	}
	return strings.Join(parts, ", ")
}

// look starts to probe a server until ctx ends.
func (o *Options) look(ctx context.Context, at *instance) *look {
	probe := o.Probe
	if probe == nil {
		probe = Measure
	}
	ready, seen := context.WithCancel(ctx)
	l := &look{ready: ready, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		defer seen() // a probe that has failed must not keep the attack waiting
		saw, err := probe(ctx, at.address, at.probes(), seen)
		if l.saw = saw; err != nil {
			l.fault = err.Error()
		}
	}()
	return l
}
