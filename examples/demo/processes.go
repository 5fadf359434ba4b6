// Package demo has what the demonstrations share. It starts programs on free ports of this machine,
// waits for them, and kills them. Its main type is [Processes]. What a demonstration shows is in
// its own folder.
package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience is how long Await waits for one address.
const patience = time.Minute

// Processes are the programs of a demonstration. One goroutine may use them.
type Processes struct {
	ctx    context.Context //nolint:containedctx // its end ends all processes
	dir    string
	byAddr map[string]*process
	work   sync.WaitGroup
}

// process is a program that was started.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
}

// NewProcesses returns none so far. Those that are started end with ctx, and have their
// folders in dir. The caller calls Wait after the end of ctx.
func NewProcesses(ctx context.Context, dir string) *Processes {
	return &Processes{ctx: ctx, dir: dir, byAddr: map[string]*process{}}
}

// Folder makes and returns the folder of the program that listens on addr.
func (p *Processes) Folder(addr string) (string, error) {
	folder := filepath.Join(p.dir, strings.ReplaceAll(addr, ":", "-"))
	return folder, os.MkdirAll(folder, 0o700)
}

// Start starts a program that will listen on addr, in the folder of that address. What it
// prints is in the file "log" there. After Kill the same address may be started again.
func (p *Processes) Start(addr, program string, args ...string) error {
	folder, err := p.Folder(addr)
	if err != nil {
		return err
	}
	said, err := os.OpenFile(filepath.Join(folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(p.ctx, program, args...) //nolint:gosec // the programs of the demonstration
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, said, said
	if err := cmd.Start(); err != nil {
		return errors.Join(err, said.Close())
	}
	started := &process{cmd: cmd, ended: make(chan struct{})}
	p.byAddr[addr] = started
	p.work.Go(func() {
		_ = cmd.Wait() // all are killed in the end
		said.Close()
		close(started.ended)
	})
	return nil
}

// Kill ends the program on addr with SIGKILL, and returns when it is gone.
func (p *Processes) Kill(addr string) error {
	started := p.byAddr[addr]
	if err := started.cmd.Process.Kill(); err != nil {
		return err
	}
	<-started.ended
	return nil
}

// Wait returns when all programs have ended, which they do after the end of the context.
func (p *Processes) Wait() { p.work.Wait() }

// Await returns when f has returned nil for every address. It repeats f for at most a minute.
func (p *Processes) Await(addrs []string, f func(c *redis.Client) error) error {
	for _, addr := range addrs {
		c := Client(addr)
		err := f(c)
		for deadline := time.Now().Add(patience); err != nil && time.Now().Before(deadline) && p.ctx.Err() == nil; err = f(c) {
			time.Sleep(20 * time.Millisecond)
		}
		if err = errors.Join(err, c.Close()); err != nil {
			return fmt.Errorf("%s: %w", addr, err)
		}
	}
	return nil
}

// Client returns a client of addr that tries each call once.
func Client(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true, MaxRetries: -1})
}

// Ports are chosen below those that systems choose for connections. So nothing takes one before
// its program listens on it, nor while that is killed and away.
const firstPort, lastPort = 18000, 32000

// FreePorts returns n different ports of this machine that are not in use.
func FreePorts(n int) (ports []string, err error) {
	for range 100 * n {
		port := strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort))
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err != nil {
			continue // it is in use
		}
		defer l.Close() // all at once, so that no port comes twice
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("looking for %d free ports: %w", n, err)
}
