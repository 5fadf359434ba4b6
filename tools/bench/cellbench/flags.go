package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
)

// list is an option that may be given several times.
type list []string

// String returns the values, separated by commas: see [flag.Value].
func (l *list) String() string { return strings.Join(*l, ", ") }

// Set adds a value to the list: see [flag.Value].
func (l *list) Set(v string) error {
	*l = append(*l, v)
	return nil
}

// options are the values of the command line.
type options struct {
	set *flag.FlagSet
	serverOptions
	loadOptions
	reportOptions
}

// serverOptions specify the servers and how to connect to them.
type serverOptions struct {
	targets, pids      list
	user, password     string
	database, protocol int
}

// loadOptions specify the commands, the connections and the rate.
type loadOptions struct {
	commands                 list
	connections, threads     int
	pipeline, rounds         int
	rate                     float64
	duration, warmup, grace  time.Duration
	count                    int64
	keys, firstKey, seed     uint64
	keyWidth, dataSize       int
	choice, quantity, driver string
	noCheck, sharedKeys      bool
}

// reportOptions specify where and how results are shown.
type reportOptions struct {
	allowErrors, quiet, markdown bool
	json, html, title            string
}

// defaultCommand is the command if the command line has none.
const defaultCommand = "CL.THROTTLE user:{key} 15 30 60"

// newOptions declares the options that all subcommands share. The help of the subcommand begins
// with usage and ends with more.
func newOptions(name, usage, more string, stderr io.Writer) *options {
	o := &options{set: flag.NewFlagSet("cellbench "+name, flag.ContinueOnError)}
	o.set.SetOutput(stderr)
	o.set.Usage = func() {
		fmt.Fprintf(stderr, "Usage: cellbench %s [options]\n%s\nOptions:\n", name, usage)
		o.set.PrintDefaults()
		fmt.Fprint(stderr, more)
	}
	o.set.Var(&o.targets, "target", "`[name=]address[ command]` of a server: host:port, a port, a path, redis://..; its own command may follow")
	o.set.StringVar(&o.user, "user", "", "`name` to authenticate as")
	o.set.StringVar(&o.password, "auth", "", "`password` to authenticate with")
	o.set.IntVar(&o.database, "db", 0, "database to select")
	o.set.IntVar(&o.protocol, "resp", 2, "protocol `version`: 2 or 3")
	o.set.Var(&o.pids, "pid", "`[name=]pid` of a server's process; by default it is searched for (Linux)")
	o.set.IntVar(&o.threads, "threads", 0, "loading threads (default half the cores)")
	return o
}

// addLoad declares the options of subcommands that send a load.
func (o *options) addLoad() {
	s := o.set
	s.Var(&o.commands, "command", "`[weight:]command line` with the placeholders {key} {q} {seq} {data}; several make a mix (default "+defaultCommand+")")
	s.IntVar(&o.connections, "c", 50, "connections")
	s.IntVar(&o.pipeline, "P", 1, "commands in flight per connection in a closed loop")
	s.Float64Var(&o.rate, "rate", 0, "commands per second of an open loop; 0 is a closed loop")
	s.DurationVar(&o.duration, "d", 10*time.Second, "how long to measure")
	s.DurationVar(&o.warmup, "warmup", time.Second, "how long to run before measuring")
	s.Int64Var(&o.count, "n", 0, "commands to measure, instead of a duration")
	s.Uint64Var(&o.keys, "keys", 100_000, "number of keys")
	s.StringVar(&o.choice, "choose", loadgen.KeyUniform, "`how` keys are chosen: uniform, zipf:EXPONENT, hot:SHARE/KEYS, or flood (every key is new)")
	s.Uint64Var(&o.firstKey, "first-key", 0, "number of the first key")
	s.IntVar(&o.keyWidth, "key-width", loadgen.DefaultKeyWidth, "digits of {key}")
	s.StringVar(&o.quantity, "q", "1", "what {q} stands for: a number, or least-most to draw from")
	s.IntVar(&o.dataSize, "data-size", 3, "bytes of {data}")
	s.Uint64Var(&o.seed, "seed", 1, "makes runs repeatable")
	s.StringVar(&o.driver, "driver", "", "`way` of moving bytes: epoll (Linux) or goroutine (default the fastest available)")
	s.DurationVar(&o.grace, "grace", 10*time.Second, "how long to wait for the last replies")
	s.BoolVar(&o.noCheck, "no-check", false, "do not check what limiters admit against their limits")
	s.BoolVar(&o.sharedKeys, "shared-keys", false, "other clients use the same keys: do not check the lower bound")
	s.BoolVar(&o.allowErrors, "allow-errors", false, "error replies do not make the exit status 1")
	s.BoolVar(&o.quiet, "quiet", false, "show no progress")
	s.BoolVar(&o.markdown, "markdown", false, "print tables as Markdown")
	s.StringVar(&o.json, "json", "", "`file` to write the result to as JSON")
	s.StringVar(&o.html, "html", "", "`file` to write a page with charts to")
	s.StringVar(&o.title, "title", "cellbench", "`heading` of the page")
}

// parse parses args and checks the options that all subcommands share. Without a target, the target
// is port 6379 of this machine.
func (o *options) parse(args []string) error {
	if err := o.set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError{err}
	}
	if o.set.NArg() > 0 {
		return usageError{fmt.Errorf("%q is no option; commands are given by --command", o.set.Arg(0))}
	}
	if o.protocol != 2 && o.protocol != 3 {
		return usageError{fmt.Errorf("there is no version %d of the protocol", o.protocol)}
	}
	if len(o.targets) == 0 {
		o.targets = list{"6379"}
	}
	return nil
}

// contenders returns the targets, each with the options of its runs. A target runs its own command,
// or else the commands of --command, or else defaultCommand.
func (o *options) contenders() ([]loadgen.Contender, error) {
	shape, err := o.shape()
	if err != nil {
		return nil, usageError{err}
	}
	keys, err := loadgen.ParseKeys(o.choice, o.keys, o.firstKey)
	if err != nil {
		return nil, usageError{err}
	}
	common := loadgen.Options{
		Keys: keys, Connections: o.connections, Threads: o.threads, Pipeline: o.pipeline, Rate: o.rate,
		Warmup: o.warmup, Duration: o.duration, Count: o.count, Seed: o.seed, Driver: o.driver, Grace: o.grace,
		SkipChecks: o.noCheck, SharedKeys: o.sharedKeys,
	}
	var all []loadgen.Contender
	for _, text := range o.targets {
		target, command, err := o.target(text)
		if err != nil {
			return nil, usageError{err}
		}
		lines := []string(o.commands)
		switch {
		case command != "":
			lines = []string{command}
		case len(lines) == 0:
			lines = []string{defaultCommand}
		}
		c := loadgen.Contender{Target: target, Options: common}
		if c.Options.Mix, err = loadgen.ParseMix(lines, shape); err != nil {
			return nil, usageError{err}
		}
		all = append(all, c)
	}
	return all, nil
}

// target parses `[name=]address[ command]`, where the name may contain blanks.
func (o *options) target(text string) (t loadgen.Target, command string, err error) {
	t = loadgen.Target{User: o.user, Password: o.password, Database: o.database, RESP3: o.protocol == 3}
	word, rest, _ := strings.Cut(text, " ")
	named := strings.Contains(word, "=") || t.ParseAddress(word) != nil
	if named {
		name, after, ok := strings.Cut(text, "=")
		if !ok {
			return t, "", fmt.Errorf("%q names no address", text)
		}
		t.Name = name
		word, rest, _ = strings.Cut(after, " ")
	}
	if err := t.ParseAddress(word); err != nil {
		return t, "", err
	}
	if !named {
		t.Name = t.Address // the name leaves out the user and the password of a URL
	}
	return t, strings.TrimSpace(rest), o.process(&t)
}

// process sets the target's process ID from the --pid options. An option without a name applies to
// every target. If several apply, the last one counts. A number that is no process ID is an error.
func (o *options) process(t *loadgen.Target) error {
	for _, pid := range o.pids {
		of, number, named := strings.Cut(pid, "=")
		if !named {
			of, number = t.Name, pid
		}
		if of != t.Name {
			continue
		}
		var err error
		if t.PID, err = strconv.Atoi(number); err != nil || t.PID < 1 {
			return fmt.Errorf("%q is not a process", number)
		}
	}
	return nil
}

func (o *options) shape() (loadgen.Shape, error) {
	s := loadgen.Shape{KeyWidth: o.keyWidth, DataSize: o.dataSize}
	least, most := o.quantity, o.quantity
	if i := strings.LastIndexByte(o.quantity, '-'); i > 0 {
		least, most = o.quantity[:i], o.quantity[i+1:]
	}
	var err error
	if s.MinQuantity, err = strconv.ParseInt(least, 10, 64); err != nil {
		return s, fmt.Errorf("%q is not a quantity", o.quantity)
	}
	if s.MaxQuantity, err = strconv.ParseInt(most, 10, 64); err != nil {
		return s, fmt.Errorf("%q is not a quantity", o.quantity)
	}
	if float64(o.keys+o.firstKey) > math.Pow10(o.keyWidth) {
		return s, fmt.Errorf("%d keys from %d on do not fit in %d digits", o.keys, o.firstKey, o.keyWidth)
	}
	return s, nil
}
