package main

import (
	"context"
	"io"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/cellserver/cellserver/tools/bench/loadgen/report"
)

func runIdle(ctx context.Context, o *options, args []string, stdout, _ io.Writer) (int, error) {
	connections := o.set.Int("c", 10_000, "connections")
	settle := o.set.Duration("settle", 15*time.Second, "how long the server may take to give buffers back")
	o.set.BoolVar(&o.markdown, "markdown", false, "print a Markdown table")
	if err := o.parse(args); err != nil {
		return 0, err
	}
	var all []*loadgen.IdleResult
	for _, text := range o.targets {
		target, _, err := o.target(text)
		if err != nil {
			return 0, usageError{err}
		}
		r, err := loadgen.Idle(ctx, target, *connections, *settle)
		if err != nil {
			return 0, err
		}
		all = append(all, r)
	}
	return exitOK, report.Idle(stdout, all, o.markdown)
}
