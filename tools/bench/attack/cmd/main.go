// Command cmd runs the attacks of package attack on servers and prints the results.
//
// Usage: attack [--small] [--only name,name] [--server 'label=program option ...'] ...
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/cellserver/cellserver/tools/bench/attack"
)

// These are the exit statuses of the program.
const (
	exitOK = 0
	// exitFailed means that an attack could not be carried out, or had an effect that it must not
	// have.
	exitFailed = 1
	// exitUsage means that the command line is invalid.
	exitUsage = 2
)

// asProbe is the first argument of the process that measures the latency of another client.
const asProbe = "probe"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run is the program, with all its dependencies as parameters. It returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 1 && args[0] == asProbe {
		return probe(ctx, args[1], args[2:], stdin, stdout, stderr)
	}
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintln(stderr, "attack:", err)
		return exitUsage
	}
	return o.attackAll(ctx, stdout, stderr)
}

// options are the values of the command line.
type options struct {
	attacks []attack.Attack
	servers []attack.Server
	small   bool
	seed    uint64
	json    string
	list    bool
}

func parse(args []string, stderr io.Writer) (*options, error) {
	var o options
	set := flag.NewFlagSet("attack", flag.ContinueOnError)
	set.SetOutput(stderr)
	only := set.String("only", "", "attacks to make, with commas between; none is all of them")
	set.BoolVar(&o.small, "small", false, "the size of the tests")
	set.BoolVar(&o.list, "list", false, "say what the attacks do and make none")
	set.Uint64Var(&o.seed, "seed", 1, "of what is done at random")
	set.StringVar(&o.json, "json", "", "file to append the results to, a line of JSON each")
	set.Func("server", "'label=program option ...', again for each server; without one bin/cellserver and redis-server", func(text string) error {
		label, command, found := strings.Cut(text, "=")
		if !found || strings.TrimSpace(command) == "" {
			return errors.New("it is no label=program")
		}
		o.servers = append(o.servers, attack.Server{Label: label, Command: strings.Fields(command)})
		return nil
	})
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("%q is no option", set.Arg(0))
	}
	var names []string
	if *only != "" {
		names = strings.Split(*only, ",")
	}
	var err error
	o.attacks, err = attack.Named(names...)
	if len(o.servers) == 0 {
		o.servers = []attack.Server{
			{Label: "cellserver", Command: []string{"bin/cellserver"}},
			{Label: "redis-server", Command: []string{"redis-server"}},
		}
	}
	return &o, err
}

// attackAll makes every attack on every server, prints the table and then the faults, and returns
// the exit status. With the option list it only prints the attacks.
func (o *options) attackAll(ctx context.Context, stdout, stderr io.Writer) int {
	if o.list {
		for _, a := range o.attacks {
			fmt.Fprintf(stdout, "%-24s %s\n", a.Name, a.About)
		}
		return exitOK
	}
	servers := o.installed(stderr)
	status := exitOK
	var results []*attack.Result
	for i := range o.attacks {
		for _, server := range servers {
			if ctx.Err() != nil {
				return exitFailed
			}
			fmt.Fprintf(stderr, "== %s on %s\n", o.attacks[i].Name, server.Label)
			r, err := attack.Run(ctx, &o.attacks[i], attack.Options{Server: server, Full: !o.small, Seed: o.seed, Probe: apart})
			if err == nil {
				err = o.keep(r)
			}
			if err != nil {
				fmt.Fprintln(stderr, "attack:", err)
				status = exitFailed
				continue
			}
			results = append(results, r)
		}
	}
	if err := attack.Table(stdout, results); err != nil {
		return exitFailed
	}
	for _, r := range results {
		for _, fault := range r.Faults() {
			fmt.Fprintf(stderr, "%s: %s\n", r.Server, fault)
			status = exitFailed
		}
	}
	return status
}

// installed returns the servers whose program exists, and prints a line for each of the others.
func (o *options) installed(stderr io.Writer) []attack.Server {
	var servers []attack.Server
	for _, s := range o.servers {
		if _, err := exec.LookPath(s.Command[0]); err != nil {
			fmt.Fprintf(stderr, "SKIP: %s: %v\n", s.Label, err)
			continue
		}
		servers = append(servers, s)
	}
	return servers
}

// keep appends a result to the JSON file, if the command line names one.
func (o *options) keep(r *attack.Result) error {
	if o.json == "" {
		return nil
	}
	f, err := os.OpenFile(o.json, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(f).Encode(r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// isReady is the line that the probe's process prints after the first reply.
const isReady = "ready"

// probe is the process that [apart] starts: it measures until its standard input ends and prints
// the result.
func probe(ctx context.Context, address string, commands []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // the input has no meaning except for its end
		enough()
	}()
	latency, err := attack.Measure(ctx, address, commands, func() { fmt.Fprintln(stdout, isReady) })
	if err == nil {
		err = json.NewEncoder(stdout).Encode(latency)
	}
	if err != nil {
		fmt.Fprint(stderr, err)
		return exitFailed
	}
	return exitOK
}

// apart is an [attack.Probe] that runs in a separate process, so that the clients of the attack do
// not delay it.
func apart(ctx context.Context, address string, commands []string, ready func()) (attack.Latency, error) {
	var latency attack.Latency
	self, err := os.Executable()
	if err != nil {
		return latency, err
	}
	child := exec.Command(self, append([]string{asProbe, address}, commands...)...) //nolint:gosec // this program again
	var said strings.Builder
	child.Stderr = &said
	end, err := child.StdinPipe()
	if err != nil {
		return latency, err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return latency, err
	}
	if err := child.Start(); err != nil {
		return latency, err
	}
	stop := context.AfterFunc(ctx, func() { end.Close() })
	defer stop()
	lines := bufio.NewScanner(out)
	if lines.Scan() && lines.Text() == isReady {
		ready()
		lines.Scan()
	}
	seen := bytes.Clone(lines.Bytes())
	if err := child.Wait(); err != nil {
		return latency, fmt.Errorf("measuring: %s", said.String())
	}
	return latency, json.Unmarshal(seen, &latency)
}
