package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/examples/demo"
)

// masterName is the name that the sentinels have for the primary.
const masterName = "limits"

// nodes has the processes of the servers and of the sentinels.
type nodes struct {
	*demo.Processes
	ctx     context.Context //nolint:containedctx // all processes end when this context ends
	program string          // path of the program of the servers
	acks    string
	servers []string // addresses of the servers; the first one is the primary at the start
	// sentinels has the addresses of the sentinels.
	sentinels []string
}

// startServers starts the primary and its replicas, and returns when all replicas have the state of
// the primary.
func (n *nodes) startServers(s *show) (err error) {
	if n.program, err = filepath.Abs(s.server); err != nil {
		return err
	}
	n.acks = fmt.Sprint(s.acks)
	ports, err := demo.FreePorts(1 + s.replicas)
	if err != nil {
		return err
	}
	for _, port := range ports {
		n.servers = append(n.servers, "127.0.0.1:"+port)
	}
	if err := n.startServer(n.servers[0]); err != nil {
		return fmt.Errorf("%w: make build makes the program", err)
	}
	if err := n.Await(n.servers[:1], func(c *redis.Client) error { return c.Ping(n.ctx).Err() }); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(n.servers[0])
	if err != nil {
		return err
	}
	for _, addr := range n.servers[1:] {
		if err := n.startServer(addr, "--replicaof", "127.0.0.1 "+port); err != nil {
			return err
		}
	}
	return n.Await(n.servers[1:], func(c *redis.Client) error { return contains(n.ctx, c, "replication", "master_link_status:up") })
}

// startServer starts the server at addr, for the first time or after it was killed, with more
// arguments.
func (n *nodes) startServer(addr string, more ...string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	args := []string{"--port", port, "--bind", "127.0.0.1"}
	if n.acks != "0" {
		args = append(args, "--repl-ack-replies", n.acks)
	}
	return n.Start(addr, n.program, append(args, more...)...)
}

// startSentinels starts three sentinels with a quorum of two. It returns when they know each other
// and all replicas.
func (n *nodes) startSentinels(s *show) error {
	_, master, err := net.SplitHostPort(n.servers[0])
	if err != nil {
		return err
	}
	ports, err := demo.FreePorts(3)
	if err != nil {
		return err
	}
	for _, port := range ports {
		addr := "127.0.0.1:" + port
		n.sentinels = append(n.sentinels, addr)
		folder, err := n.Folder(addr)
		if err != nil {
			return err
		}
		file := filepath.Join(folder, "sentinel.conf") // the sentinel writes its state into this file
		lines := fmt.Sprintf("bind 127.0.0.1\nport %s\nsentinel monitor %s 127.0.0.1 %s 2\n"+
			"sentinel down-after-milliseconds %s %d\nsentinel failover-timeout %s 10000\n",
			port, masterName, master, masterName, s.down.Milliseconds(), masterName)
		if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
			return err
		}
		words, err := demo.Sentinel(file)
		if err != nil {
			return err
		}
		if err := n.Start(addr, words[0], words[1:]...); err != nil {
			return err
		}
	}
	return n.Await(n.sentinels, func(c *redis.Client) error {
		return contains(n.ctx, c, "sentinel", fmt.Sprintf("status=ok,address=%s,slaves=%d,sentinels=3", n.servers[0], s.replicas))
	})
}

// primary returns the address of the primary according to the first sentinel that answers.
func (n *nodes) primary() (string, error) {
	for _, addr := range n.sentinels {
		c := demo.Client(addr)
		reply, err := c.Do(n.ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName).StringSlice()
		if err = errors.Join(err, c.Close()); err == nil && len(reply) == 2 {
			return net.JoinHostPort(reply[0], reply[1]), nil
		}
	}
	return "", errors.New("no sentinel answers")
}

// contains returns an error unless the given section of INFO contains words.
func contains(ctx context.Context, c *redis.Client, section, words string) error {
	info, err := c.Info(ctx, section).Result()
	if err == nil && !strings.Contains(info, words) {
		err = fmt.Errorf("INFO %s has no %s", section, words)
	}
	return err
}
