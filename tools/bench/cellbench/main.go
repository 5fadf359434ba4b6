// Command cellbench is a load generator for servers that speak the Redis protocol. It measures
// throughput, latency and the server's processor time, and checks that limiters keep their limits.
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
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

type subcommand struct {
	name, summary string
	// usage is the first part of the help of the subcommand.
	usage string
	run   func(ctx context.Context, o *options, args []string, stdout, stderr io.Writer) (int, error)
}

func subcommands() []subcommand {
	return []subcommand{
		{
			"run", "drive one server (the default)",
			"Drives one server and prints what it measured.", runOne,
		},
		{
			"compare", "drive two or more servers in turn, and compare them",
			"Drives two servers or more in turn, A B B A .., and relates the first to each of the others.", runCompare,
		},
		{
			"sweep", "compare under several pipeline depths and numbers of connections",
			"Compares servers under several loads, and prints a column for each.", runSweep,
		},
		{
			"idle", "measure the memory of idle connections",
			"Opens connections, sends one PING on each, waits, and looks at the memory of the server's process.", runIdle,
		},
		{
			"expiry", "measure the latency of others while many keys expire at once",
			"Makes keys that all expire at one instant, and watches the server meanwhile.", runExpiry,
		},
	}
}

// listOf returns the part of the help that lists the subcommands.
func listOf(all []subcommand) string {
	text := "\nSubcommands:\n"
	for _, s := range all {
		text += fmt.Sprintf("  %-8s %s\n", s.name, s.summary)
	}
	return text
}

// run is the program, with all its dependencies as parameters. It returns the exit status.
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
	more := ""
	if chosen.name == "run" {
		more = listOf(subcommands())
	}
	o := newOptions(chosen.name, chosen.usage, more, stderr)
	status, err := chosen.run(ctx, o, args, stdout, stderr)
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
