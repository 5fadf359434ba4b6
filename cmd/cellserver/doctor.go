package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

type doctorOptions struct {
	sample  int
	timeout *time.Duration
	dial    dialer // opens connections; nil stands for package net
}

func doctorFlags(o *doctorOptions) *flag.FlagSet {
	flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&o.sample, "sample", 10_000, "")
	o.timeout = spanVar(flags, "timeout", 30*time.Second)
	return flags
}

// doctor examines a running Redis or Valkey. It prints what can move to cellserver, what cannot,
// and what to do. It only reads.
func doctor(args []string, w io.Writer) error { return (&doctorOptions{}).run(args, w) }

// run runs cellserver doctor. A test may have set fields of given.
func (given *doctorOptions) run(args []string, w io.Writer) error {
	names, err := parseMixed(doctorFlags(given), args)
	if err != nil {
		return fmt.Errorf("doctor: %w\n%s", err, doctorUsage)
	}
	if len(names) != 1 || given.sample < 0 || *given.timeout <= 0 {
		return errors.New(doctorUsage)
	}
	o, err := clientOptions(names[0])
	if err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	dialWith(given.dial, o)
	ctx, cancel := context.WithTimeout(context.Background(), *given.timeout)
	defer cancel()
	found, err := examine(ctx, o, given.sample)
	if err != nil {
		return fmt.Errorf("doctor: %w", explain(err, o))
	}
	found.address = shownAddress(names[0])
	return writeFindings(w, judge(found))
}
