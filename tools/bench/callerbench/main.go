// Command callerbench measures what a limiter costs an application in Go: clients/go beside plain clients and other limiters.
//
// Each contender is a process that says hello by net/http. All of them run from the beginning, and take turns under the same load
// in every round, so that other load of the machine affects all of them. The figures are those of these processes alone. `make
// bench-callers` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/internal/freeport"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		err = serve(os.Args[2:])
	} else {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "callerbench:", err)
		os.Exit(1)
	}
}

// options are the values of the flags.
type options struct {
	server, redis   string
	rounds, callers int
	warmup, span    time.Duration
}

// run is the program except for the applications, which are processes of their own.
func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	var o options
	set := flag.NewFlagSet("callerbench", flag.ContinueOnError)
	set.StringVar(&o.server, "server", "bin/cellserver", "the server of clients/go")
	set.StringVar(&o.redis, "redis", "redis-server", "the server of the other limiters")
	set.IntVar(&o.rounds, "rounds", 9, "how often each contender has its turn")
	set.IntVar(&o.callers, "callers", 32, "how many requests are under way")
	set.DurationVar(&o.warmup, "warmup", 200*time.Millisecond, "what does not count of each turn")
	set.DurationVar(&o.span, "span", time.Second, "what counts of each turn")
	if err := set.Parse(args); err != nil {
		return err
	}
	var all processes
	defer func() { err = errors.Join(err, all.stop()) }()
	apps, err := all.startAll(ctx, &o)
	if err != nil {
		return err
	}
	turns := make([][]figures, len(apps))
	for round := range o.rounds {
		for i, a := range apps {
			f, err := a.turn(ctx, &o)
			if err != nil {
				return fmt.Errorf("%s: %w", contenders[i].name, err)
			}
			turns[i] = append(turns[i], f)
			fmt.Fprintf(progress, "round %d of %d: %s: %.0f requests/s, %.1f us, %.1f allocations\n", round+1, o.rounds, contenders[i].name, f.perSecond, f.cpu, f.mallocs)
		}
	}
	return write(out, turns)
}

// processes are the servers and the applications, in a folder that is removed with them.
type processes struct {
	dir     string
	started []*exec.Cmd
}

// startAll starts the servers and an application for each contender.
func (all *processes) startAll(ctx context.Context, o *options) (apps []*app, err error) {
	if all.dir, err = os.MkdirTemp("", "callerbench"); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cell, other := freeport.Choose(), freeport.Choose()
	if err := errors.Join(
		all.start(o.server, "--port", cell, "--dir", all.dir, "--loglevel", "warning"),
		all.start(o.redis, "--port", other, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", all.dir),
	); err != nil {
		return nil, err
	}
	const host = "127.0.0.1:"
	if err := await(ctx, func() error {
		c := redis.NewClient(&redis.Options{Addr: host + cell, MaxRetries: -1})
		defer c.Close() //nolint:errcheck // nothing is under way
		return c.Do(ctx, "RL.POLICY", "SET", policy, "LIMITS", "TB", perHour, perHour, 3600).Err()
	}); err != nil {
		return nil, err
	}
	if err := await(ctx, func() error {
		c := redis.NewClient(&redis.Options{Addr: host + other, MaxRetries: -1})
		defer c.Close() //nolint:errcheck // nothing is under way
		return c.Ping(ctx).Err()
	}); err != nil {
		return nil, err
	}
	for _, c := range contenders {
		a := &app{address: host + freeport.Choose()}
		limits := host + cell
		if c.redis {
			limits = host + other
		}
		if err := all.start(self, "serve", "--contender", c.name, "--limits", limits, "--listen", a.address); err != nil {
			return nil, err
		}
		if err := await(ctx, func() error { _, err := a.used(ctx); return err }); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		apps = append(apps, a)
	}
	return apps, nil
}

// start starts a program.
func (all *processes) start(program string, args ...string) error {
	cmd := exec.Command(program, args...) //nolint:gosec // the user of this tool chooses the programs
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	all.started = append(all.started, cmd)
	return nil
}

// stop kills the processes and removes their files.
func (all *processes) stop() error {
	for _, c := range all.started {
		_ = c.Process.Kill() // it stores nothing
		_ = c.Wait()         // it was killed
	}
	return os.RemoveAll(all.dir)
}

// await waits until f succeeds, for at most 30 seconds.
func await(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}
