package loadgen

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
)

type run struct {
	target    *Target
	options   *Options
	plan      *plan
	sessions  []*Session
	workers   []*worker
	recorders []*recorder
	version   string
	pid       int
	started   time.Time
	// span is the duration of the whole run, with the warm-up and the last replies.
	span time.Duration

	before, after process.Usage
	// samples are taken at the beginning and at the end of the measured time.
	samples [2]sample
	// abandoned is set when the run stops waiting for replies.
	abandoned atomic.Bool
}

// sample holds the server's processor time and the number of replies up to an instant.
type sample struct {
	taken     bool
	cpu       time.Duration
	completed int64
}

func newRun(target *Target, o *Options, sessions []*Session) *run {
	p := &plan{mix: o.Mix, firstKey: o.Keys.First, pipeline: o.Pipeline, from: int64(o.Warmup), until: never}
	if o.Count == 0 {
		p.until = int64(o.Warmup + o.Duration)
	}
	r := &run{target: target, options: o, plan: p, sessions: sessions}
	if o.SkipChecks {
		p.ledgers = make([][]*ledger, len(o.Mix.templates))
	} else {
		p.ledgers = newLedgers(o.Mix, o.Keys, o.SharedKeys)
	}
	clock := func() int64 { return int64(time.Since(r.started)) }
	for i := range o.Threads {
		r.recorders = append(r.recorders, newRecorder(len(o.Mix.templates)))
		l := &worker{plan: p, clock: clock, abandoned: &r.abandoned}
		if o.open() {
			l.pace = newPace(o.Rate, i, o.Threads)
		}
		r.workers = append(r.workers, l)
	}
	for i, s := range sessions {
		thread := i % o.Threads
		l := r.workers[thread]
		l.flows = append(l.flows, newFlow(p, r.recorders[thread], o.Seed, o.Keys, i, len(sessions), o.share(i)))
		l.sessions = append(l.sessions, s)
		if o.open() {
			l.paces = append(l.paces, newPace(o.Rate, i, len(sessions)))
		}
	}
	return r
}

// begin reads the server's version and resource usage, and starts the clock of the run.
func (r *run) begin() {
	s := r.sessions[0]
	r.version = s.Version()
	if r.pid = r.target.PID; r.pid == 0 {
		r.pid, _ = process.Find(s.Addr()) // the PID is 0 if the server is not on this machine; then its usage is not known
	}
	r.before = r.usage()
	r.started = time.Now()
	if r.options.Warmup == 0 {
		r.samples[0] = r.sample()
	}
}

func (r *run) usage() process.Usage {
	if r.pid == 0 {
		return process.Usage{}
	}
	u, err := process.Of(r.pid)
	if err != nil {
		r.pid = 0
	}
	return u
}

func (r *run) sample() sample {
	return sample{taken: true, cpu: r.usage().CPU, completed: glance(r.recorders, 0).Completed}
}

// drive runs every worker to its end and returns the first error. An error of one worker ends the
// others, too.
func (r *run) drive(d driver) error {
	errs := make(chan error, len(r.workers))
	var wait sync.WaitGroup
	for _, l := range r.workers {
		wait.Go(func() {
			err := d(l)
			if err != nil {
				r.abandon()
			}
			errs <- err
		})
	}
	wait.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return fmt.Errorf("driving %s: %w", r.target.Name, err)
		}
	}
	return nil
}

// abandon ends the run without waiting for replies. Pending reads and writes of the goroutine
// driver return.
func (r *run) abandon() {
	r.abandoned.Store(true)
	for _, s := range r.sessions {
		_ = s.conn.SetDeadline(time.Unix(1, 0)) // fails only if the connection is closed, and then no deadline is needed
	}
}

// driverFor returns the driver with a name. For "" it returns the best one for connections to t. A
// driver that is unknown, or that this system does not have, is an error.
func driverFor(name string, t *Target) (driver, error) {
	switch {
	case name == DriverGoroutine || name == "" && (driveEpoll == nil || t.Dialer != nil):
		return driveGoroutines, nil
	case (name == DriverEpoll || name == "") && driveEpoll != nil:
		return driveEpoll, nil
	}
	return nil, fmt.Errorf("there is no driver %q on %s", name, runtime.GOOS)
}
