package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// doctor looks at a running Redis or Valkey and says what moves, what does not, and what
// to do. It only reads.
func doctor(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	sample := flags.Int("sample", 10_000, "")
	timeout := flags.Duration("timeout", 30*time.Second, "")
	names, err := parseMixed(flags, args)
	if err != nil {
		return fmt.Errorf("doctor: %w\n%s", err, doctorUsage)
	}
	if len(names) != 1 || *sample < 0 || *timeout <= 0 {
		return errors.New(doctorUsage)
	}
	o, err := clientOptions(names[0])
	if err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	found, err := examine(ctx, o, *sample)
	if err != nil {
		return fmt.Errorf("doctor: %w", explain(err, o))
	}
	found.address = shownAddress(names[0])
	return writeFindings(w, judge(found))
}
