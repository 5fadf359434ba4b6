// Command cluster shows one limit that three servers share in a cluster of Valkey or Redis. It also
// shows what happens when the node that has the limit is killed, and how long the block of a key takes
// to reach all servers. It starts all of them on this machine and ends them after half a minute: make
// cluster-demo.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/cellserver/cellserver/examples/demo"
)

func main() {
	d := cluster{w: os.Stdout, nodeTimeout: 2 * time.Second}
	flag.StringVar(&d.server, "server", "bin/cellserver", "the program")
	flag.IntVar(&d.kill, "kill", 5, "after how many seconds a master is killed")
	flag.IntVar(&d.seconds, "seconds", 15, "for how many seconds the servers are called")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := d.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster-demo:", err)
		os.Exit(1)
	}
}

// run starts all processes, shows the demonstration and ends the processes. It ends early when ctx
// ends.
func (d *cluster) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "cellserver-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	ctx, end := context.WithCancel(ctx)
	h := &house{demo.NewProcesses(ctx, dir), ctx}
	defer h.Wait()
	defer end()

	engine, err := demo.Cluster()
	if err != nil {
		return err
	}
	fmt.Fprintf(d.w, "Starting %s: 3 masters, 3 replicas\n", engine)
	nodes, err := h.startCluster(engine, d.nodeTimeout)
	if err != nil {
		return err
	}
	store := engine + "://" + strings.Join(nodes[:3], ",")
	fmt.Fprintf(d.w, "Starting 3 cellservers, each with --store %s\n", store)
	servers, err := h.startServers(d.server, store)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.w, "\nEach server is asked again and again: %s\n", strings.Trim(fmt.Sprint(command()), "[]"))
	fmt.Fprintf(d.w, "The limit is %d calls at once and %d more each second, for all servers together.\n\n", burst, perSecond)
	if err := d.show(ctx, h, nodes, servers); err != nil {
		return err
	}
	return d.showBlock(ctx, servers)
}
