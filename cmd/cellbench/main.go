// Command cellbench is a load generator for any server that speaks the Redis protocol. It
// measures how fast the server answers and what that costs, and checks that its limiters
// keep their limits.
//
// Usage: cellbench [run | compare | sweep | idle | expiry] [--option value ...]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// The exit statuses.
const (
	exitOK = 0
	// exitFailed: it could not be measured, or commands failed.
	exitFailed = 1
	// exitUsage: the command line makes no sense.
	exitUsage = 2
	// exitViolated: a limiter let more through than its limit can have, or less.
	exitViolated = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// usageError is a fault of the command line.
type usageError struct{ error }

// subcommand is one thing that cellbench does.
type subcommand struct {
	name, summary string
	run           func(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error)
}

func subcommands() []subcommand {
	return []subcommand{
		{"run", "drive one server (the default)", runOne},
		{"compare", "drive two or more servers in turn, and compare them", runCompare},
		{"sweep", "compare under several pipeline depths and numbers of connections", runSweep},
		{"idle", "measure the memory of idle connections", runIdle},
		{"expiry", "measure the latency of others while many keys expire at once", runExpiry},
	}
}

// run is the whole program with everything it depends on as a parameter. It
// returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	chosen := subcommands()[0]
	if len(args) > 0 {
		for _, s := range subcommands() {
			if args[0] == s.name {
				chosen, args = s, args[1:]
				break
			}
		}
	}
	status, err := chosen.run(ctx, args, stdout, stderr)
	var usage usageError
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "cellbench %s: %v\n(cellbench %s --help lists the options)\n", chosen.name, err, chosen.name)
		return exitUsage
	case err != nil:
		fmt.Fprintf(stderr, "cellbench %s: %v\n", chosen.name, err)
		return exitFailed
	}
	return status
}

// makeRoom lets Go use a processor for each loading thread and one for the rest, as
// a thread that polls would otherwise hold up what watches it.
func makeRoom(threads int) {
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), threads+1))
}
