package loadgen

import (
	"context"
	"fmt"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen/process"
)

// IdleResult is the memory that idle connections cost a server.
type IdleResult struct {
	Target, Server string
	Connections    int
	// Before and After are the server's resident memory in bytes, with one connection and with all
	// of them.
	Before, After int64
}

// BytesPerConnection returns the memory that one more connection takes.
func (r *IdleResult) BytesPerConnection() float64 {
	return float64(r.After-r.Before) / float64(r.Connections)
}

// Idle opens connections, sends one PING on each, and waits for the time settle, in which a server
// may release buffers. It reads the memory of the server's process before and after that. It
// returns an error if the process is not known.
func Idle(ctx context.Context, target Target, connections int, settle time.Duration) (*IdleResult, error) {
	if connections < 1 {
		return nil, fmt.Errorf("there must be a connection")
	}
	first, err := target.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer first.Close()
	pid := target.PID
	if pid == 0 {
		if pid, err = process.Find(first.Addr()); err != nil {
			return nil, fmt.Errorf("looking for the process of %s: %w", target.Name, err)
		}
	}
	r := &IdleResult{Target: target.Name, Server: first.Version(), Connections: connections}
	if r.Before, err = memory(pid); err != nil {
		return nil, err
	}
	sessions, err := dialAll(ctx, &target, connections)
	defer closeAll(sessions)
	if err != nil {
		return nil, err
	}
	for _, s := range sessions {
		if _, err := s.Do("PING"); err != nil {
			return nil, fmt.Errorf("using a connection to %s: %w", target.Name, err)
		}
	}
	if err := pause(ctx, settle); err != nil {
		return nil, err
	}
	r.After, err = memory(pid)
	return r, err
}

func memory(pid int) (int64, error) {
	u, err := process.Of(pid)
	return u.RSS, err
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
