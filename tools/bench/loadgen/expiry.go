package loadgen

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
)

// ExpiryOptions describe a mass expiry and the load during it.
type ExpiryOptions struct {
	// Keys is the number of keys that expire. Command, which contains {key}, creates each of them.
	// All expire at the same instant, Lead after the last one was created.
	Keys    int64
	Command string
	Lead    time.Duration
	// Foreground is a command that is sent at Rate over Connections to keys of its own. Sending
	// begins the time Before ahead of the expiry, and ends the time Tail after it.
	Foreground           string
	Rate                 float64
	Connections, Threads int
	Before, Tail         time.Duration
	// Shape is the shape of both commands.
	Shape Shape
}

// ExpiryResult describes the effect of a mass expiry on a server and on its other clients.
type ExpiryResult struct {
	Target, Server string
	Keys           int64
	// Gone is the time from the instant of the expiry until DBSIZE no longer counted the keys. It
	// is negative if DBSIZE still counted them at the end.
	Gone time.Duration
	// Empty, Full and After are the server's resident memory in bytes: before the keys exist, with
	// all of them, and at the end. They are 0 if the memory is not known.
	Empty, Full, After int64
	// Quiet is the foreground load before the keys exist, During the load around the expiry.
	Quiet, During *Result
}

// foregroundKeys is the number of keys that the foreground load uses.
const foregroundKeys = 1000

// Expiry creates many keys that expire at one instant, and measures the effect on the server and on
// a foreground load. The error says that a command failed, or that the keys could not be created in
// time.
func Expiry(ctx context.Context, target Target, o ExpiryOptions) (*ExpiryResult, error) {
	control, err := target.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	e := expiry{target: target, options: o, control: control}
	if e.pid = target.PID; e.pid == 0 {
		e.pid, _ = process.Find(control.Addr()) // the PID is 0 if the server is not on this machine; then its memory is not known
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
	// before is the number of keys at the start.
	before int64
	// instant is the time at which the keys expire, by the clock of this machine.
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

// fill creates the keys and sets their expiry. It returns an error if that takes so long that the
// foreground load cannot begin in time.
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
	// The wall clocks of the server and of this machine must agree. So run the test on the server's
	// own machine, where the network adds nothing to the time of DBSIZE.
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

// each sends a command once for every key.
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

// foreground runs the foreground load for d.
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

// watch runs the foreground load around the expiry and counts the keys meanwhile.
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

// count waits until the keys expire. Then it sends DBSIZE every 5 ms until the keys are gone or the
// tail has passed.
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
