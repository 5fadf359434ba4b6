package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/tools/bench/loadgen/report"
)

func runSweep(ctx context.Context, o *options, args []string, stdout, stderr io.Writer) (int, error) {
	o.addLoad()
	o.set.IntVar(&o.rounds, "rounds", 5, "how often each target has its turn under each load")
	pipelines := o.set.String("pipelines", "1,16,32", "values of -P")
	connections := o.set.String("connections", "50", "values of -c")
	if err := o.parse(args); err != nil {
		return 0, err
	}
	depths, err := integers(*pipelines)
	if err != nil {
		return 0, usageError{err}
	}
	widths, err := integers(*connections)
	if err != nil {
		return 0, usageError{err}
	}
	if len(o.targets) < 2 || o.rounds < 1 {
		return 0, usageError{errors.New("a comparison needs two targets and a round")}
	}
	makeRoom(o.threads)
	show := newProgress(stderr, !o.quiet, o, len(depths)*len(widths)*len(o.targets)*o.rounds)
	var steps []report.Step
	status := exitOK
	for _, o.connections = range widths {
		for _, o.pipeline = range depths {
			c, err := o.compare(ctx, show)
			if err != nil {
				return 0, err
			}
			status = max(status, o.judge(c, stderr))
			steps = append(steps, report.Step{Label: fmt.Sprintf("P=%d, %d conn.", o.pipeline, o.connections), Comparison: c})
		}
	}
	show.finish()
	return status, report.Sweep(stdout, steps, o.markdown)
}

// integers parses positive integers that are separated by commas.
func integers(text string) ([]int, error) {
	var all []int
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a list of numbers", text)
		}
		all = append(all, n)
	}
	return all, nil
}
