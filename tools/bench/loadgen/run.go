package loadgen

import (
	"context"
	"time"
)

// Run sends the load to one target and returns the measurements. If ctx ends during the load, Run
// stops sending and returns what was measured so far. The error says that an option is not valid,
// that a connection could not be opened, or that one has failed.
func Run(ctx context.Context, target Target, o Options) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	drive, err := driverFor(o.Driver, &target)
	if err != nil {
		return nil, err
	}
	sessions, err := dialAll(ctx, &target, o.Connections)
	defer closeAll(sessions)
	if err != nil {
		return nil, err
	}
	r := newRun(&target, &o, sessions)
	r.begin()
	done := make(chan error, 1)
	go func() { done <- r.drive(drive) }()
	if err := r.supervise(ctx, done); err != nil {
		return nil, err
	}
	return r.result(), nil
}

// supervise samples, reports progress and abandons a stuck run, until the workers are done, and
// returns their error. When ctx ends, it makes the workers stop sending.
func (r *run) supervise(ctx context.Context, done <-chan error) error {
	ticker := time.NewTicker(glanceEvery)
	defer ticker.Stop()
	cancelled := ctx.Done()
	watch := watchdog{plan: r.plan, grace: int64(r.options.Grace), deadline: never, busy: !r.options.open()}
	for {
		select {
		case err := <-done:
			r.span = time.Since(r.started)
			r.sampleAt(never)
			r.after = r.usage()
			return err
		case <-cancelled:
			cancelled = nil
			r.plan.stopped.Store(true)
		case <-ticker.C:
		}
		now := int64(time.Since(r.started))
		r.sampleAt(now)
		live := glance(r.recorders, time.Duration(now-r.plan.from))
		if r.options.Progress != nil {
			r.options.Progress(live)
		}
		if watch.giveUp(now, live.Completed) {
			r.abandon()
		}
	}
}

// sampleAt takes the samples that are due at now.
func (r *run) sampleAt(now int64) {
	if !r.samples[0].taken && now >= r.plan.from {
		r.samples[0] = r.sample()
	}
	if !r.samples[1].taken && r.plan.over(now) {
		r.samples[1] = r.sample()
	}
}

// watchdog decides when to stop waiting for replies.
type watchdog struct {
	plan  *plan
	grace int64
	// deadline is the instant at which waiting ends: grace after the watchdog has seen the end of
	// sending. Until then it is never.
	deadline int64
	// busy says that something is always in flight, so that no reply for the grace means a stuck
	// server.
	busy bool
	// completed is the number of replies when that number last changed, at the instant since.
	completed, since int64
}

func (w *watchdog) giveUp(now, completed int64) bool {
	if w.deadline == never && w.plan.over(now) {
		w.deadline = now + w.grace
	}
	if completed != w.completed {
		w.completed, w.since = completed, now
	}
	return now >= w.deadline || w.busy && now-w.since >= w.grace
}
