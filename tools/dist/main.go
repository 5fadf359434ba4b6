// Command dist makes the files of a release. For each platform these are an archive with the
// server, and one with cellbench. The server's archive has a static program, its man page,
// completions, a sample configuration and all licences. There also are a bill of materials in SPDX
// for each archive, and SHA256SUMS. `make dist` calls it.
//
// The same source and the same version of Go give the same bytes: the programs are compiled without
// paths and without the state of the working copy, and every time in an archive is that of the
// option -date. The command is a module of its own, so that its dependencies do not become
// dependencies of the server.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

// platforms are the default platforms.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// run makes the files that the arguments ask for.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	root := flags.String("root", "../..", "the folder of the project")
	out := flags.String("out", "../../dist", "where the files are put; it is emptied first")
	version := flags.String("version", "", "the version; that of the program if empty")
	date := flags.Int64("date", 0, "the time of every file in an archive, in seconds since 1970")
	tags := flags.String("tags", "", "the build tags of the server, separated by commas")
	chosen := flags.String("platforms", strings.Join(platforms, " "), "what to make archives for")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r := release{root: *root, out: *out, version: *version, tags: *tags, date: time.Unix(*date, 0).UTC()}
	return r.make(ctx, strings.Fields(*chosen))
}
