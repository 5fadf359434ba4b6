package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
)

// masters is the number of nodes of the cluster, and slots the number of hash slots.
const masters, slots = 3, 16384

// nodes is a cluster of primaries on loopback without persistence.
type nodes struct {
	version      string
	ports, buses []string
	started      []*exec.Cmd
	clients      []*redis.Client
	dir          string
}

// startNodes starts a cluster and waits until all nodes agree that it is up.
func startNodes(ctx context.Context, engine string) (*nodes, error) {
	program, err := findEngine(engine)
	if err != nil {
		return nil, err
	}
	n := &nodes{}
	if n.dir, err = os.MkdirTemp("", "storebench"); err != nil {
		return nil, err
	}
	for range masters {
		if err := n.start(program, freeport.Choose(), freeport.Choose()); err != nil {
			return nil, errors.Join(err, n.stop())
		}
	}
	if err := n.join(ctx); err != nil {
		return nil, errors.Join(err, n.stop())
	}
	version, err := exec.CommandContext(ctx, program, "--version").Output()
	n.version = filepath.Base(program)
	for _, word := range strings.Fields(string(version)) {
		if v, ok := strings.CutPrefix(word, "v="); ok {
			n.version += " " + v
		}
	}
	return n, err
}

func findEngine(name string) (string, error) {
	if name != "" {
		return exec.LookPath(name)
	}
	if program, err := exec.LookPath("valkey-server"); err == nil {
		return program, nil
	}
	return exec.LookPath("redis-server")
}

// start starts a node with its port for clients and its port for the cluster bus.
func (n *nodes) start(program, port, bus string) error {
	dir := filepath.Join(n.dir, port)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	cmd := exec.Command(program, "--port", port, "--cluster-port", bus, "--bind", "127.0.0.1", "--dir", dir, "--cluster-enabled", "yes",
		"--save", "", "--appendonly", "no", "--logfile", filepath.Join(dir, "log"))
	if err := cmd.Start(); err != nil {
		return err
	}
	n.ports, n.buses, n.started = append(n.ports, port), append(n.buses, bus), append(n.started, cmd)
	n.clients = append(n.clients, redis.NewClient(&redis.Options{Addr: n.address(len(n.ports) - 1)}))
	return nil
}

func (n *nodes) address(i int) string { return "127.0.0.1:" + n.ports[i] }

// join assigns the slots to the nodes and makes them a cluster.
func (n *nodes) join(ctx context.Context) error {
	for i, c := range n.clients {
		if err := until(ctx, func() error { return c.Ping(ctx).Err() }); err != nil {
			return err
		}
		if err := c.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1).Err(); err != nil {
			return err
		}
		if err := c.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", n.ports[0], n.buses[0]).Err(); err != nil {
			return err
		}
	}
	return until(ctx, func() error {
		for _, c := range n.clients {
			info, err := c.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", masters)) {
				return errors.New("the cluster does not come up")
			}
		}
		return nil
	})
}

// until repeats f until it succeeds, for at most 30 seconds.
func until(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("given up: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// url returns the address of the cluster for --store.
func (n *nodes) url() string { return "redis://" + strings.Join(n.addresses(), ",") }

func (n *nodes) addresses() (all []string) {
	for i := range n.ports {
		all = append(all, n.address(i))
	}
	return all
}

func (n *nodes) owner(ctx context.Context, key string) (string, error) {
	slot, err := n.clients[0].ClusterKeySlot(ctx, key).Result()
	return n.ports[slot*masters/slots], err
}

// flush deletes all keys of all nodes, so that turns do not affect each other.
func (n *nodes) flush(ctx context.Context) error {
	for _, c := range n.clients {
		if err := c.FlushAll(ctx).Err(); err != nil {
			return err
		}
	}
	return nil
}

// cpu returns the processor time that all nodes have used so far.
func (n *nodes) cpu() (time.Duration, error) {
	var pids []int
	for _, c := range n.started {
		pids = append(pids, c.Process.Pid)
	}
	return cpuOf(pids...)
}

// cpuOf returns the processor time that processes have used so far, in user and kernel mode.
func cpuOf(pids ...int) (sum time.Duration, err error) {
	for _, pid := range pids {
		u, err := process.Of(pid)
		if err != nil {
			return 0, err
		}
		sum += u.CPU
	}
	return sum, nil
}

// stop kills the nodes and removes their files.
func (n *nodes) stop() (err error) {
	for _, c := range n.clients {
		err = errors.Join(err, c.Close())
	}
	for _, c := range n.started {
		_ = c.Process.Kill() // the process stores nothing, so it can be killed
		_ = c.Wait()         // the error only says that the process was killed
	}
	return errors.Join(err, os.RemoveAll(n.dir))
}
