package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
	"github.com/cellserver/cellserver/tools/bench/loadgen/report"
)

func runOne(ctx context.Context, o *options, args []string, stdout, stderr io.Writer) (int, error) {
	o.addLoad()
	if err := o.parse(args); err != nil {
		return 0, err
	}
	if len(o.targets) > 1 {
		return 0, usageError{errors.New("several targets are for cellbench compare")}
	}
	o.rounds = 1
	return o.measure(ctx, args, stdout, stderr)
}

func runCompare(ctx context.Context, o *options, args []string, stdout, stderr io.Writer) (int, error) {
	o.addLoad()
	o.set.IntVar(&o.rounds, "rounds", 5, "how often each target has its turn")
	if err := o.parse(args); err != nil {
		return 0, err
	}
	if len(o.targets) < 2 || o.rounds < 1 {
		return 0, usageError{errors.New("a comparison needs two targets and a round")}
	}
	return o.measure(ctx, args, stdout, stderr)
}

// makeRoom raises GOMAXPROCS to at least one more than the number of load threads, because a thread
// that polls would otherwise delay the goroutine that supervises the run.
func makeRoom(threads int) {
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), threads+1))
}

// measure runs the targets, prints and writes the results, and returns the exit status.
func (o *options) measure(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	makeRoom(o.threads)
	started := time.Now()
	show := newProgress(stderr, !o.quiet, o, len(o.targets)*o.rounds)
	comparison, err := o.compare(ctx, show)
	show.finish()
	if err != nil {
		return 0, err
	}
	r := &report.Report{
		Title: o.title, Command: "cellbench " + o.set.Name()[len("cellbench "):] + " " + shellWords(args),
		Started: started, Machine: process.This(), Entries: comparison.Entries,
	}
	if err := o.write(r, stdout); err != nil {
		return 0, err
	}
	return o.judge(comparison, stderr), nil
}

// compare runs the targets of the command line.
func (o *options) compare(ctx context.Context, show *progress) (*loadgen.Comparison, error) {
	contenders, err := o.contenders()
	if err != nil {
		return nil, err
	}
	for i := range contenders {
		contenders[i].Options.Progress = show.watch(contenders[i].Target.Name)
	}
	return loadgen.Compare(ctx, contenders, o.rounds, func(int, *loadgen.Result) { show.next() })
}

// write prints the tables and writes the requested files.
func (o *options) write(r *report.Report, stdout io.Writer) error {
	print := r.Table
	if o.markdown {
		print = r.Markdown
	}
	if err := print(stdout); err != nil {
		return err
	}
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{{o.json, r.JSON}, {o.html, r.HTML}} {
		if f.name == "" {
			continue
		}
		if err := writeFile(f.name, f.write); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// judge prints the faults and returns the exit status: exitViolated if a limit was violated,
// otherwise exitFailed if there is any other fault and --allow-errors is not given.
func (o *options) judge(c *loadgen.Comparison, stderr io.Writer) int {
	status := exitOK
	for _, e := range c.Entries {
		for _, fault := range e.Faults() {
			fmt.Fprintln(stderr, "cellbench:", fault)
			if !o.allowErrors {
				status = max(status, exitFailed)
			}
		}
		for _, check := range e.Checks() {
			if check.Violated() {
				fmt.Fprintf(stderr, "cellbench: %s: %s\n", e.Name, check)
				status = exitViolated
			}
		}
	}
	return status
}

// shellWords returns the arguments quoted for a shell, with passwords replaced.
func shellWords(args []string) string {
	var words []string
	hide := false
	for _, a := range args {
		flagName, _, joined := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch {
		case hide:
			a = "***"
		case strings.HasPrefix(a, "-") && flagName == "auth" && joined:
			a = "--auth=***"
		default:
			a = withoutPassword(a)
		}
		hide = strings.HasPrefix(a, "-") && flagName == "auth" && !joined
		if strings.ContainsAny(a, " {}*\"'$&|;<>()") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// withoutPassword replaces the user and the password in a URL by ***.
func withoutPassword(a string) string {
	before, rest, ok := strings.Cut(a, "redis://")
	if !ok {
		return a
	}
	if i := strings.LastIndexByte(strings.SplitN(rest, " ", 2)[0], '@'); i >= 0 {
		rest = "***" + rest[i:]
	}
	return before + "redis://" + rest
}
