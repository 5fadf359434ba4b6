package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/examples/demo"
)

// house has the processes of the demonstration.
type house struct {
	*demo.Processes
	ctx context.Context //nolint:containedctx // all processes end when this context ends
}

// startCluster starts six nodes, makes a cluster of them with the command line client of the
// engine, and waits until the cluster is ready. It returns the addresses of the nodes.
func (h *house) startCluster(engine string, timeout time.Duration) ([]string, error) {
	ports, err := demo.FreePorts(12)
	if err != nil {
		return nil, err
	}
	var nodes []string
	for i := range 6 {
		addr := "127.0.0.1:" + ports[i]
		nodes = append(nodes, addr)
		if err := h.Start(addr, engine+"-server", "--port", ports[i], "--bind", "127.0.0.1", "--save", "", "--cluster-enabled", "yes",
			"--cluster-port", ports[6+i], "--cluster-node-timeout", fmt.Sprint(timeout.Milliseconds()), "--repl-diskless-sync-delay", "0"); err != nil {
			return nil, err
		}
	}
	if err := h.Await(nodes, func(c *redis.Client) error { return c.Ping(h.ctx).Err() }); err != nil {
		return nil, err
	}
	words := append([]string{"--cluster", "create"}, nodes...)
	//nolint:gosec // the engine's own tool
	if said, err := exec.CommandContext(h.ctx, engine+"-cli", append(words, "--cluster-replicas", "1", "--cluster-yes")...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("making the cluster: %w\n%s", err, said)
	}
	return nodes, h.Await(nodes, func(c *redis.Client) error {
		info, err := c.ClusterInfo(h.ctx).Result()
		if err == nil && !strings.Contains(info, "cluster_state:ok") {
			err = errors.New("the cluster is not ready")
		}
		return err
	})
}

// startServers starts three servers that use the given store, and waits until they decide. It
// returns their addresses.
func (h *house) startServers(program, store string) ([]string, error) {
	path, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	ports, err := demo.FreePorts(3)
	if err != nil {
		return nil, err
	}
	var servers []string
	for _, port := range ports {
		addr := "127.0.0.1:" + port
		servers = append(servers, addr)
		if err := h.Start(addr, path, "--port", port, "--bind", "127.0.0.1", "--store", store); err != nil {
			return nil, fmt.Errorf("%w: make build makes the program", err)
		}
	}
	return servers, h.Await(servers, func(c *redis.Client) error { return c.Exists(h.ctx, key).Err() })
}
