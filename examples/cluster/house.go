package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// house has the processes of the demo.
type house struct {
	ctx       context.Context //nolint:containedctx // whoever ends it ends all processes
	dir       string
	processes map[string]*exec.Cmd // by address
	work      sync.WaitGroup
}

// start starts a program that listens on addr, in a folder of its own.
func (h *house) start(addr, program string, args ...string) error {
	folder := filepath.Join(h.dir, strings.ReplaceAll(addr, ":", "-"))
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	said, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		return err
	}
	p := exec.CommandContext(h.ctx, program, args...) //nolint:gosec // the programs of the demo
	p.Dir, p.Stdout, p.Stderr = folder, said, said
	if err := p.Start(); err != nil {
		return errors.Join(err, said.Close())
	}
	if h.processes == nil {
		h.processes = map[string]*exec.Cmd{}
	}
	h.processes[addr] = p
	h.work.Go(func() {
		_ = p.Wait() // all are killed in the end
		said.Close()
	})
	return nil
}

// kill ends a process as a machine does that loses its power.
func (h *house) kill(addr string) error { return h.processes[addr].Process.Kill() }

// empty waits until all processes have ended, which the end of the context brings about.
func (h *house) empty() { h.work.Wait() }

// startCluster starts the nodes and has the engine's own tool make a cluster of them.
func (h *house) startCluster(engine string, timeout time.Duration) ([]string, error) {
	ports, err := freePorts(12)
	if err != nil {
		return nil, err
	}
	var nodes []string
	for i := range 6 {
		addr := "127.0.0.1:" + ports[i]
		nodes = append(nodes, addr)
		if err := h.start(addr, engine+"-server", "--port", ports[i], "--bind", "127.0.0.1", "--save", "", "--cluster-enabled", "yes",
			"--cluster-port", ports[6+i], "--cluster-node-timeout", fmt.Sprint(timeout.Milliseconds()), "--repl-diskless-sync-delay", "0"); err != nil {
			return nil, err
		}
	}
	if err := h.await(nodes, func(c *redis.Client) error { return c.Ping(h.ctx).Err() }); err != nil {
		return nil, err
	}
	words := append([]string{"--cluster", "create"}, nodes...)
	//nolint:gosec // the engine's own tool
	if said, err := exec.CommandContext(h.ctx, engine+"-cli", append(words, "--cluster-replicas", "1", "--cluster-yes")...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("making the cluster: %w\n%s", err, said)
	}
	return nodes, h.await(nodes, func(c *redis.Client) error {
		info, err := c.ClusterInfo(h.ctx).Result()
		if err == nil && !strings.Contains(info, "cluster_state:ok") {
			err = errors.New("the cluster is not ready")
		}
		return err
	})
}

// startServers starts three servers and waits until they decide.
func (h *house) startServers(program, store string) ([]string, error) {
	path, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	var servers []string
	for _, port := range ports {
		addr := "127.0.0.1:" + port
		servers = append(servers, addr)
		if err := h.start(addr, path, "--port", port, "--bind", "127.0.0.1", "--store", store); err != nil {
			return nil, fmt.Errorf("%w: make build makes the program", err)
		}
	}
	return servers, h.await(servers, func(c *redis.Client) error { return c.Exists(h.ctx, key).Err() })
}

// await returns when f is content with every address.
func (h *house) await(addrs []string, f func(c *redis.Client) error) error {
	for _, addr := range addrs {
		c := clientOf(addr)
		err := f(c)
		for deadline := time.Now().Add(20 * time.Second); err != nil && time.Now().Before(deadline) && h.ctx.Err() == nil; err = f(c) {
			time.Sleep(20 * time.Millisecond)
		}
		if err = errors.Join(err, c.Close()); err != nil {
			return fmt.Errorf("%s: %w", addr, err)
		}
	}
	return nil
}

func clientOf(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true, MaxRetries: -1})
}

// freePorts chooses ports that nobody listens on.
func freePorts(n int) (ports []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
