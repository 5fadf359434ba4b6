// Command storebench compares cellserver --store with the script of redis_rate on the same cluster.
// It starts the cluster on loopback. `make bench-store` runs storebench and writes
// docs/scale-out-performance.md.
//
// All contenders of all contests take turns in every round. So other load of the machine affects
// all of them, and the ratios of one round can be compared.
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
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		err = work(ctx, os.Args[2:], os.Stdin, os.Stdout)
	} else {
		err = run(ctx, os.Args[1:], os.Stderr)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "storebench:", err)
		os.Exit(1)
	}
}

// options are the values of the flags.
type options struct {
	engine, server, out string
	only                string
	rounds              int
	warmup, span        time.Duration
}

// run is the program, except for the worker processes.
func run(ctx context.Context, args []string, progress io.Writer) (err error) {
	var o options
	set := flag.NewFlagSet("storebench", flag.ContinueOnError)
	set.StringVar(&o.engine, "engine", "", "valkey-server or redis-server; without it the first of the two that there is")
	set.StringVar(&o.server, "server", "bin/cellserver", "the program to measure")
	set.StringVar(&o.out, "out", "", "file to write the page to; without it the standard output")
	set.StringVar(&o.only, "only", "", "only the contests whose name this regular expression matches")
	set.IntVar(&o.rounds, "rounds", 5, "how often each contender has its turn")
	set.DurationVar(&o.warmup, "warmup", time.Second, "what does not count of each turn")
	set.DurationVar(&o.span, "span", 3*time.Second, "what counts of each turn")
	if err := set.Parse(args); err != nil {
		return err
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	n, err := startNodes(ctx, o.engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.stop()) }()
	b := &bench{options: o, nodes: n}
	var measured []*result
	for _, c := range contests() {
		if only.MatchString(c.name) {
			measured = append(measured, newResult(c))
		}
	}
	for round := range o.rounds {
		for _, m := range measured {
			for i, contender := range m.contest.contenders {
				f, err := contender.run(ctx, b)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", m.contest.name, contender.name, err)
				}
				m.add(i, f)
				fmt.Fprintf(progress, "round %d of %d: %s: %s: %s\n", round+1, o.rounds, m.contest.name, contender.name, f)
			}
		}
	}
	return writePage(o.out, n, measured, o)
}
