// Command cellserver is a rate limiting server that every Redis client can call.
//
// Usage: cellserver [file.conf] [--name value ...]
//
//	cellserver check-aof DIR [--fix]
//	cellserver restore BACKUP DIR
//	cellserver check-config FILE [--name value ...]
//	cellserver dump DIR
//	cellserver import redis://host:port DIR [--match pattern] [--db n] [--dry-run]
//	cellserver export redis://host:port DIR [--match pattern] [--db n] [--dry-run]
//	cellserver copy DIR valkey://host:port [--match pattern] [--db n] [--store-prefix cs:] [--replace] [--without-policies] [--dry-run]
//	cellserver copy valkey://host:port DIR
//	cellserver ping [redis://host:port] [-h host] [-p port] [--config file] [--tls] [--timeout d]
//	cellserver policy check FILE
//	cellserver policy diff FILE redis://host:port [--user name] [--askpass] [--tls]
//	cellserver policy from-envoy FILE [FILE ...]
//	cellserver policy from-limitador FILE [FILE ...]
//	cellserver ratelimit [--name value ...]
//	cellserver top [redis://host:port] [-h host] [-p port] [--user name] [--askpass] [--tls] [--once]
//	cellserver doctor redis://host:port [--sample n] [--timeout d]
//	cellserver help [name]
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/server"
)

func main() {
	os.Exit(run(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// run is the program with its dependencies as parameters. It returns the exit status.
func run(args, environ []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		return serve(invocation{}, environ, stderr)
	}
	name, rest := args[0], args[1:]
	if name == "help" || name == "--help" || name == "-h" {
		return report(stderr, help(rest, stdout))
	}
	if print := answers[name]; print != nil {
		if len(rest) > 0 {
			return fail(stderr, fmt.Errorf("%s takes no argument, but there is %q", name, rest[0]))
		}
		return report(stderr, print(stdout))
	}
	if tool := tools[name]; tool != nil {
		if asksForHelp(name, rest) {
			return report(stderr, help([]string{name}, stdout))
		}
		return report(stderr, tool(rest, stdout))
	}
	if name == serviceTool {
		return serveRateLimit(args, environ, stdout, stderr)
	}
	if err := mistyped(name); err != nil {
		return fail(stderr, err)
	}
	return serve(invocation{args: args, options: args}, environ, stderr)
}

// report prints the error of a tool, if there is one, and returns the exit status: 0 without an
// error, the status in an [exitStatus], or 1.
func report(stderr io.Writer, err error) int {
	var status exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		if status.err != nil {
			fail(stderr, status.err)
		}
		return status.code
	}
	return fail(stderr, err)
}

// invocation says which server a process runs.
type invocation struct {
	args    []string // all arguments of the process
	options []string // the part of args that is a configuration
	presets []config.Preset
	idle    []string // variables of ratelimit that were given and have no effect
}

// serve runs a server until it is stopped, and returns the exit status. In the background, stderr
// belongs to the starting process until the server listens.
func serve(i invocation, environ []string, stderr io.Writer) int {
	ready := detached()
	if ready != nil {
		stderr = ready
	}
	var given bytes.Buffer
	c, err := config.LoadOver(i.presets, i.options, environ, io.TeeReader(os.Stdin, &given))
	if err != nil {
		return fail(stderr, err)
	}
	inherited, err := server.Inherited()
	if err != nil {
		return fail(stderr, err)
	}
	// A process that receives sockets from its supervisor stays in the foreground, since the
	// supervisor watches it.
	if server.Background(c) && ready == nil && inherited == nil {
		if err := detach(i.args, &given); err != nil {
			return fail(stderr, err)
		}
		return 0
	}
	tuneRuntime(c)
	ctx, stop := untilSignal() // this comes before any other process can know that the server exists
	defer stop()
	o := server.Options{FreeHeap: debug.FreeOSMemory, Inherited: inherited, IdleVariables: i.idle}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		o.Terminal = os.Stderr
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		o.LimitHeap = debug.SetMemoryLimit
	}
	if os.Getenv("GOGC") == "" {
		o.HeapPercent = debug.SetGCPercent
	}
	s, err := server.New(c, o)
	if err != nil {
		return fail(stderr, err)
	}
	defer reloadOnSignal(s.Reload)()
	if ready != nil {
		stderr = os.Stderr
		if _, err := io.WriteString(ready, listens); err != nil {
			return fail(stderr, err)
		}
		_ = ready.Close() // an error does not matter, because the report has been written
	}
	if err := s.Run(ctx); err != nil {
		return fail(stderr, err)
	}
	return 0
}

// tuneRuntime configures Go's runtime for the server, unless the environment does.
func tuneRuntime(c *config.Config) {
	if n := c.Processors(); n > 0 && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(n)
	}
}

func fail(stderr io.Writer, err error) int {
	text := strings.Map(printable, err.Error())      // a part of the text may come from a server, so it is made printable
	_, _ = fmt.Fprintln(stderr, "cellserver:", text) // an error cannot be reported anywhere
	return 1
}

// ignored are the signals that must not end a server: SIGPIPE is sent when the reader of its log
// goes away.
var ignored = []os.Signal{syscall.SIGPIPE}

// reloadOnSignal reloads the configuration on SIGHUP until stop is called. An operator sends
// SIGHUP, and so does the system when the terminal closes, which must not end a server.
func reloadOnSignal(reload func(by string) error) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-signals:
				_ = reload("SIGHUP") // reload itself logs its errors
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// untilSignal returns a context that ends with the first SIGINT or SIGTERM. The second one ends the
// process at once.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signal.Ignore(ignored...)
	signal.Ignore(syscall.SIGHUP) // the signal is ignored until reloadOnSignal handles it
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(130)
	}()
	return ctx, cancel
}
