// Command frontbench measures rls-port and http-port beside empty handlers, and beside envoyproxy/ratelimit.
//
// All servers run from the beginning, and take turns under the same load in every round. So other load of the machine
// affects all of them, and the ratios of one round can be compared. The figures are from the server's processes,
// without the load's. `make bench-fronts` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if len(os.Args) > 1 && os.Args[1] == "empty" {
		err = serveEmpty(os.Args[2:])
	} else {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "frontbench:", err)
		os.Exit(1)
	}
}

// options are the values of the flags.
type options struct {
	server, ratelimit, redis, only string
	rounds                         int
	warmup, span                   time.Duration
}

// run is the program, except for the empty handlers, which run in a separate process.
func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	var o options
	set := flag.NewFlagSet("frontbench", flag.ContinueOnError)
	set.StringVar(&o.server, "server", "bin/cellserver", "the program to measure")
	set.StringVar(&o.ratelimit, "ratelimit", "", "service_cmd of envoyproxy/ratelimit; without it there is no comparison with it")
	set.StringVar(&o.redis, "redis", "redis-server", "the Redis of ratelimit")
	set.StringVar(&o.only, "only", "", "only the contests whose name this regular expression matches")
	set.IntVar(&o.rounds, "rounds", 9, "how often each contender has its turn")
	set.DurationVar(&o.warmup, "warmup", 200*time.Millisecond, "what does not count of each turn")
	set.DurationVar(&o.span, "span", time.Second, "what counts of each turn")
	if err := set.Parse(args); err != nil {
		return err
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	servers, err := startAll(ctx, &o)
	defer func() { err = errors.Join(err, servers.stop()) }()
	if err != nil {
		return err
	}
	var measured []*result
	for _, c := range contests(servers) {
		if only.MatchString(c.name) {
			measured = append(measured, &result{contest: c, turns: make([][]figures, len(c.contenders))})
		}
	}
	for round := range o.rounds {
		for _, r := range measured {
			for i, c := range r.contest.contenders {
				f, err := c.turn(ctx, r.contest.callers, &o)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", r.contest.name, c.name, err)
				}
				r.turns[i] = append(r.turns[i], f)
				fmt.Fprintf(progress, "round %d of %d: %s: %s: %s\n", round+1, o.rounds, r.contest.name, c.name, f)
			}
		}
	}
	for _, r := range measured {
		if err := r.write(out); err != nil {
			return err
		}
	}
	return nil
}
