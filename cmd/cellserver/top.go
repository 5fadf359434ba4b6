package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/redis/go-redis/v9"
	"golang.org/x/term"

	"github.com/cellserver/cellserver/top"
)

const topUsage = "usage: cellserver top [ADDRESS] [-h host] [-p port] [--user name] [--askpass] [--tls] [--once]"

type topOptions struct {
	connectionFlags
	once     bool
	interval *time.Duration
}

// topFlags returns the options of top. They have the names of redis-cli if that has them.
func topFlags(o *topOptions) *flag.FlagSet {
	flags := flag.NewFlagSet("top", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.register(flags)
	flags.BoolVar(&o.once, "once", false, "")
	o.interval = spanVar(flags, "interval", time.Second)
	return flags
}

func showTop(args []string, w io.Writer) error { return (&topOptions{}).run(args, w) }

// run runs cellserver top. With --once, or if w is not a terminal, it prints the state once. A test
// may have set fields of o.
func (o *topOptions) run(args []string, w io.Writer) error {
	names, err := parseMixed(topFlags(o), args)
	switch {
	case err != nil:
		return fmt.Errorf("top: %w\n%s", err, topUsage)
	case len(names) > 1:
		return errors.New(topUsage)
	case *o.interval < 100*time.Millisecond:
		return errors.New("top: --interval is at least 100ms")
	}
	options, err := o.options(first(names))
	if err != nil {
		return fmt.Errorf("top: %w", err)
	}
	client := redis.NewClient(options)
	defer client.Close() //nolint:errcheck // all replies have been read
	source := func(ctx context.Context, args ...string) ([]byte, error) {
		return reportOf(ctx, client, options, args)
	}
	if file, is := w.(*os.File); o.once || !is || !term.IsTerminal(int(file.Fd())) {
		return printTop(w, source)
	}
	// Report an error of the first request directly on the terminal, because the program's screen
	// disappears when it ends.
	if _, err := source(context.Background(), "RL.REPORT", "OVERVIEW"); err != nil {
		return fmt.Errorf("top: %w", err)
	}
	_, err = tea.NewProgram(top.NewModel(source, *o.interval, time.Now), tea.WithOutput(w)).Run()
	return err
}

// reportOf sends a command whose reply is a report.
func reportOf(ctx context.Context, client *redis.Client, options *redis.Options, args []string) ([]byte, error) {
	words := make([]any, len(args))
	for i, a := range args {
		words[i] = a
	}
	text, err := client.Do(ctx, words...).Text()
	if err != nil {
		return nil, explain(err, options)
	}
	return []byte(text), nil
}

// onceWidth is the width of text for a pipe, unless COLUMNS is set.
const onceWidth = 120

// printTop prints the state of the server once, in as many columns as COLUMNS says (40 to 1,000),
// otherwise in onceWidth. It waits ten seconds for the replies.
func printTop(w io.Writer, source top.Source) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := top.Ask(ctx, source, top.Choice{Span: 300})
	if err != nil {
		return fmt.Errorf("top: %w", err)
	}
	width := onceWidth
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= 40 && n <= 1000 {
		width = n
	}
	_, err = io.WriteString(w, top.Text(&s, width))
	return err
}

// first returns the first of names; "" if there is none.
func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}
