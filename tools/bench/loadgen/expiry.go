package loadgen

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
)

// ExpiryOptions say how [Expiry] makes keys expire at once, and who watches.
type ExpiryOptions struct {
	// Keys are made by Command, which has the place {key}, and all expire at the
	// same instant, Lead after the last one was made.
	Keys    int64
	Command string
	Lead    time.Duration
	// Foreground is sent at Rate over Connections meanwhile, to keys of its own,
	// from the time Before the instant until Tail after it.
	Foreground           string
	Rate                 float64
	Connections, Threads int
	Before, Tail         time.Duration
	// Shape is that of both commands.
	Shape Shape
}

// ExpiryResult is what a mass expiry did to a server and to those who used it.
type ExpiryResult struct {
	Target, Server string
	Keys           int64
	// Gone is the time from the instant until DBSIZE no longer counted the keys,
	// negative if it still did at the end.
	Gone time.Duration
	// Empty, Full and After are the server's resident memory in bytes: before the
	// keys, with them, and when the tail was over. 0 if it is not known.
	Empty, Full, After int64
	// Quiet is the foreground before anything expires, During around the instant.
	Quiet, During *Result
}

// foregroundKeys is how many keys the foreground uses.
const foregroundKeys = 1000

// Expiry lets many keys expire at one instant.
func Expiry(ctx context.Context, target Target, o ExpiryOptions) (*ExpiryResult, error) {
	control, err := target.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	e := expiry{target: target, options: o, control: control}
	if e.pid = target.PID; e.pid == 0 {
		e.pid, _ = process.Find(control.Addr()) // 0: its memory is not known
	}
	e.result = &ExpiryResult{Target: target.Name, Server: control.Version(), Keys: o.Keys, Gone: -1, Empty: e.memory()}
	before, err := control.Do("DBSIZE")
	if err != nil {
		return nil, fmt.Errorf("counting the keys of %s: %w", target.Name, err)
	}
	e.before = before.Integer
	if e.result.Quiet, err = e.foreground(ctx, o.Tail); err != nil {
		return nil, err
	}
	if err := e.fill(ctx); err != nil {
		return nil, err
	}
	return e.result, e.watch(ctx)
}

type expiry struct {
	target  Target
	options ExpiryOptions
	control *Session
	pid     int
	// before is how many keys there were.
	before int64
	// instant is when the keys expire, on our own clock.
	instant time.Time
	result  *ExpiryResult
}

func (e *expiry) memory() int64 {
	u, err := process.Of(e.pid)
	if err != nil {
		return 0
	}
	return u.RSS
}

// fill makes the keys and sets their expiry.
func (e *expiry) fill(ctx context.Context) error {
	create, err := ParseTemplate(e.options.Command, e.options.Shape)
	if err != nil {
		return err
	}
	if len(create.words) < 2 {
		return errors.New("the command that makes a key has none")
	}
	if err := e.each(ctx, create); err != nil {
		return fmt.Errorf("making the keys: %w", err)
	}
	e.instant = time.Now().Add(e.options.Lead)
	// The server's wall clock is taken for ours: a mass expiry is watched from its
	// own machine, where the time of DBSIZE is not that of a network.
	at := strconv.FormatInt(e.instant.UnixMilli(), 10)
	expire, err := ParseTemplate("PEXPIREAT "+strconv.Quote(create.words[1])+" "+at, e.options.Shape)
	if err != nil {
		return err
	}
	if err := e.each(ctx, expire); err != nil {
		return fmt.Errorf("setting the expiry: %w", err)
	}
	if time.Until(e.instant) < e.options.Before {
		return fmt.Errorf("the keys expire before the foreground can start: a lead of %v is too short", e.options.Lead)
	}
	e.result.Full = e.memory()
	return nil
}

// each sends a command to every key once.
func (e *expiry) each(ctx context.Context, t *Template) error {
	mix, err := NewMix(t)
	if err != nil {
		return err
	}
	r, err := Run(ctx, e.target, Options{
		Mix: mix, Keys: KeySpec{Kind: KeyFlood}, Connections: 16, Threads: e.options.Threads, Pipeline: 64,
		Count: e.options.Keys, SkipChecks: true,
	})
	if err != nil {
		return err
	}
	if faults := r.Failed(); len(faults) > 0 {
		return errors.New(faults[0])
	}
	return ctx.Err()
}

// foreground runs the open loop for d.
func (e *expiry) foreground(ctx context.Context, d time.Duration) (*Result, error) {
	mix, err := ParseMix([]string{e.options.Foreground}, e.options.Shape)
	if err != nil {
		return nil, err
	}
	return Run(ctx, e.target, Options{
		Mix: mix, Keys: KeySpec{Kind: KeyUniform, Count: foregroundKeys}, Connections: e.options.Connections,
		Threads: e.options.Threads, Pipeline: 1, Rate: e.options.Rate, Duration: d,
	})
}

// watch runs the foreground around the instant and asks how many keys are left.
func (e *expiry) watch(ctx context.Context) error {
	if err := pause(ctx, time.Until(e.instant)-e.options.Before); err != nil {
		return err
	}
	type outcome struct {
		result *Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := e.foreground(ctx, e.options.Before+e.options.Tail)
		done <- outcome{r, err}
	}()
	counted := e.count(ctx)
	o := <-done
	e.result.During, e.result.After = o.result, e.memory()
	return errors.Join(o.err, counted)
}

// count asks for DBSIZE every few milliseconds until the keys are gone.
func (e *expiry) count(ctx context.Context) error {
	const every = 5 * time.Millisecond
	if err := pause(ctx, time.Until(e.instant)); err != nil {
		return err
	}
	for time.Since(e.instant) < e.options.Tail {
		a, err := e.control.Do("DBSIZE")
		if err != nil {
			return fmt.Errorf("counting the keys of %s: %w", e.target.Name, err)
		}
		if a.Integer <= e.before+foregroundKeys {
			e.result.Gone = time.Since(e.instant)
			return nil
		}
		if err := pause(ctx, every); err != nil {
			return err
		}
	}
	return nil
}
