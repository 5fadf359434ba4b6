package main

import (
	"context"
	"io"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/cellserver/cellserver/tools/bench/loadgen/report"
)

func runExpiry(ctx context.Context, o *options, args []string, stdout, _ io.Writer) (int, error) {
	e := loadgen.ExpiryOptions{Shape: loadgen.Shape{KeyWidth: loadgen.DefaultKeyWidth, MinQuantity: 1, MaxQuantity: 1, DataSize: 3}}
	o.set.Int64Var(&e.Keys, "keys", 1_000_000, "keys that expire")
	o.set.StringVar(&e.Command, "command", "CL.THROTTLE expiring:{key} 15 1 3600", "`command` that makes a key")
	o.set.DurationVar(&e.Lead, "lead", 10*time.Second, "time between the last key and the instant of the expiry")
	o.set.StringVar(&e.Foreground, "foreground", "CL.THROTTLE foreground:{key} 15 30 60", "`command` that is sent meanwhile")
	o.set.Float64Var(&e.Rate, "rate", 20_000, "commands per second of the foreground")
	o.set.IntVar(&e.Connections, "c", 50, "connections of the foreground")
	o.set.DurationVar(&e.Before, "before", time.Second, "how long before the instant to start it")
	o.set.DurationVar(&e.Tail, "tail", 4*time.Second, "how long to watch after the instant")
	o.set.BoolVar(&o.markdown, "markdown", false, "print a Markdown table")
	if err := o.parse(args); err != nil {
		return 0, err
	}
	var all []*loadgen.ExpiryResult
	e.Threads = max(o.threads, 1)
	makeRoom(e.Threads)
	for _, text := range o.targets {
		target, _, err := o.target(text)
		if err != nil {
			return 0, usageError{err}
		}
		r, err := loadgen.Expiry(ctx, target, e)
		if err != nil {
			return 0, err
		}
		all = append(all, r)
	}
	return exitOK, report.Expiry(stdout, all, o.markdown)
}
