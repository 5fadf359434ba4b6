// Command gateway shows Envoy in front of a page, with the server as its rate limit service. A load of two tenants
// runs, and redis-cli blocks one of them, gives it another limit, and releases it again. Everything runs on this machine and
// ends after about ten seconds: make gateway-demo.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/cellserver/cellserver/examples/demo"
)

// show has the settings of the demonstration.
type show struct {
	server string        // path of the program of the server
	root   string        // path of the folder of this module
	pause  time.Duration // time between two lines of the output
	w      io.Writer
}

func main() {
	s := show{w: os.Stdout}
	flag.StringVar(&s.server, "server", "bin/cellserver", "the program")
	flag.StringVar(&s.root, "root", ".", "the folder of the module")
	flag.DurationVar(&s.pause, "pause", time.Second, "how much time is between two lines")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := s.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway-demo:", err)
		os.Exit(1)
	}
}

// run starts all processes, shows the demonstration and ends the processes. It ends early when ctx
// ends.
func (s *show) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "cellserver-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	ctx, end := context.WithCancel(ctx)
	g := &gateway{Processes: demo.NewProcesses(ctx, dir), show: s}
	defer g.Wait()
	defer end()
	if err := g.start(ctx); err != nil {
		return err
	}
	return g.play(ctx)
}
