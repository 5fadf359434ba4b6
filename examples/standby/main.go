// Command standby shows how Sentinel replaces a primary that was killed. It starts a primary, its
// replicas and three sentinels on this machine, and calls them through a client that asks the
// sentinels. Then it kills the primary, and compares the acknowledged calls with the state of the
// next primary: make ha-demo.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/cellserver/cellserver/examples/demo"
)

func main() {
	s := show{w: os.Stdout, down: time.Second}
	flag.StringVar(&s.server, "server", "bin/cellserver", "the program")
	flag.IntVar(&s.replicas, "replicas", 2, "how many replicas there are")
	flag.IntVar(&s.acks, "acks", 1, "how many replicas must have a change before it is answered; 0 waits for none")
	flag.IntVar(&s.kill, "kill", 5, "after how many seconds the primary is killed")
	flag.IntVar(&s.seconds, "seconds", 20, "for how many seconds the servers are called, and longer if no other primary has answered by then")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := s.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ha-demo:", err)
		os.Exit(1)
	}
}

// run starts all processes, shows the demonstration and ends the processes. It ends early when ctx
// ends.
func (s *show) run(ctx context.Context) error {
	if s.replicas < 1 || s.acks < 0 || s.acks > s.replicas {
		return errors.New("there has to be a replica, and no more can acknowledge than there are")
	}
	dir, err := os.MkdirTemp("", "cellserver-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	ctx, end := context.WithCancel(ctx)
	n := &nodes{Processes: demo.NewProcesses(ctx, dir), ctx: ctx}
	defer n.Wait()
	defer end()

	fmt.Fprintf(s.w, "Starting a primary, %d %s with --repl-ack-replies %d, and 3 sentinels\n", s.replicas, plural("replica", s.replicas), s.acks)
	if err := n.startServers(s); err != nil {
		return err
	}
	if err := n.startSentinels(s); err != nil {
		return err
	}
	fmt.Fprintf(s.w, "The primary is %s. A sentinel calls it down when it has been away for %s.\n\n", n.servers[0], s.down)
	return s.play(ctx, n)
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
