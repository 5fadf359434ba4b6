package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// member is a running worker process.
type member struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// workers returns a function that runs a turn of count workers with the same task.
func workers(count int, t task) func(ctx context.Context, b *bench) (figures, error) {
	return func(ctx context.Context, b *bench) (figures, error) {
		t.Nodes = strings.Join(b.nodes.addresses(), ",")
		if err := b.nodes.flush(ctx); err != nil {
			return figures{}, err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // cancel kills the workers that are still running
		var group []*member
		for range count {
			m, err := newMember(ctx, t)
			if err != nil {
				return figures{}, err
			}
			group = append(group, m)
		}
		for _, m := range group {
			if line, err := m.out.ReadString('\n'); err != nil {
				return figures{}, fmt.Errorf("a worker said %q: %w", line, err)
			}
		}
		f, err := b.turn(ctx, group)
		if t.Lease == 0 {
			f.Messages = 0 // without leases, this figure says no more than the number of decisions
		}
		return f, err
	}
}

func newMember(ctx context.Context, t task) (m *member, err error) {
	m = &member{cmd: exec.CommandContext(ctx, os.Args[0], t.arguments()...)}
	m.cmd.Stderr = os.Stderr
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	m.out = bufio.NewReader(out)
	return m, m.cmd.Start()
}

// turn takes a group through its phases, and reads the processor time of the nodes at the beginning
// and the end of counting.
func (b *bench) turn(ctx context.Context, group []*member) (f figures, err error) {
	say := func(line string) {
		for _, m := range group {
			_, failed := io.WriteString(m.in, line+"\n")
			err = errors.Join(err, failed)
		}
	}
	say("start")
	pause(ctx, b.warmup)
	before, failed := b.look()
	err = errors.Join(err, failed)
	say("count")
	pause(ctx, b.span)
	say("end")
	after, failed := b.look()
	if err = errors.Join(err, failed); err != nil {
		return f, err
	}
	return total(group, before, after)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// sight is the processor time of the nodes at an instant.
type sight struct {
	at  time.Time
	cpu time.Duration
}

func (b *bench) look() (sight, error) {
	cpu, err := b.nodes.cpu()
	return sight{time.Now(), cpu}, err
}

// total adds up the reports of the workers of a group, and returns the figures of the turn. It
// returns an error if more than one call in a hundred has failed.
func total(group []*member, before, after sight) (f figures, err error) {
	hist := newHistogram()
	var decisions, messages, least, most int64
	var own time.Duration
	for i, m := range group {
		var r report
		err := json.NewDecoder(m.out).Decode(&r)
		if err = errors.Join(err, m.cmd.Wait()); err != nil {
			return f, err
		}
		if r.Failed*100 > r.Decisions {
			return f, fmt.Errorf("%d of %d calls failed, with %q", r.Failed, r.Failed+r.Decisions, r.FirstError)
		}
		h, err := hdrhistogram.Decode(r.Latencies)
		if err != nil {
			return f, err
		}
		hist.Merge(h)
		if i == 0 {
			least = r.Decisions
		}
		messages += r.Messages
		decisions, least, most, own = decisions+r.Decisions, min(least, r.Decisions), max(most, r.Decisions), own+r.CPU
	}
	if decisions == 0 {
		return f, errors.New("nothing was decided")
	}
	seconds := after.at.Sub(before.at).Seconds()
	f = figures{
		PerSecond: float64(decisions) / seconds, P99: time.Duration(hist.ValueAtQuantile(99)),
		Engine: each(after.cpu-before.cpu, decisions), Own: each(own, decisions),
		Messages: float64(messages) / seconds,
	}
	if len(group) > 1 {
		f.Fairness = float64(least) / float64(most)
	}
	return f, nil
}

// each returns the time per decision in microseconds.
func each(d time.Duration, decisions int64) float64 {
	return float64(d) / float64(time.Microsecond) / float64(decisions)
}
