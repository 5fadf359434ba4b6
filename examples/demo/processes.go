// Package demo has the helpers that all demonstrations use. It starts programs on free ports of this
// machine, waits for them, and kills them. Its main type is [Processes]. Each demonstration has a
// folder of its own.
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

// patience is the maximum time that Await waits for one address.
const patience = time.Minute

// Processes has the programs of a demonstration. It belongs to one goroutine.
type Processes struct {
	ctx    context.Context //nolint:containedctx // all processes end when this context ends
	dir    string
	byAddr map[string]*process
	work   sync.WaitGroup
}

// process is a program that was started.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the program has ended
}

// NewProcesses returns a Processes without programs. Programs that it starts have their folders in
// dir, and are killed when ctx ends. After that the caller must call Wait.
func NewProcesses(ctx context.Context, dir string) *Processes {
	return &Processes{ctx: ctx, dir: dir, byAddr: map[string]*process{}}
}

// Folder returns the folder of the program that listens on addr. It creates the folder if
// necessary.
func (p *Processes) Folder(addr string) (string, error) {
	folder := filepath.Join(p.dir, strings.ReplaceAll(addr, ":", "-"))
	return folder, os.MkdirAll(folder, 0o700)
}

// Start starts a program that will listen on addr, in the folder of that address. The output of the
// program goes to the file "log" in the folder. After Kill, another program may be started for the
// same address.
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
		_ = cmd.Wait() // the error does not matter, because all programs are killed in the end
		said.Close()
		close(started.ended)
	})
	return nil
}

// Kill ends the program that listens on addr with SIGKILL, and returns when the program has ended.
// Start must have started it.
func (p *Processes) Kill(addr string) error {
	started := p.byAddr[addr]
	if err := started.cmd.Process.Kill(); err != nil {
		return err
	}
	<-started.ended
	return nil
}

// Wait returns when all programs have ended. They end when the context of NewProcesses ends.
func (p *Processes) Wait() { p.work.Wait() }

// Await calls f with a client of each address, and repeats that until f returns nil, for at most a
// minute per address. It returns the last error, with the address.
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

// Client returns a client of the server at addr that does not retry calls.
func Client(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true, MaxRetries: -1})
}

// firstPort and lastPort are the range of ports. It is below the ports that systems choose for
// connections. So no connection takes a port before its program listens on it, or while that
// program is killed and not restarted yet.
const firstPort, lastPort = 18000, 32000

// FreePorts returns n different ports of this machine on which no process listens.
func FreePorts(n int) (ports []string, err error) {
	for range 100 * n {
		port := strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort))
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err != nil {
			continue // another process listens on the port already
		}
		defer l.Close() // the ports are closed together at the end, so that none is chosen twice
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("looking for %d free ports: %w", n, err)
}
