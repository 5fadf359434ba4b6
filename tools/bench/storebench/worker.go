package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// task describes what a worker does.
type task struct {
	Kind    string // the limiter to measure: redis_rate or cellserver
	Nodes   string // addresses of the nodes, separated by commas
	Callers int
	Keys    int // number of keys: 1, or this number with a Zipf distribution
	Lease   time.Duration
}

func (t task) arguments() []string {
	return []string{
		"worker", "--kind", t.Kind, "--nodes", t.Nodes, "--callers", strconv.Itoa(t.Callers),
		"--keys", strconv.Itoa(t.Keys), "--lease", t.Lease.String(),
	}
}

// report holds the results of a worker for the time of counting.
type report struct {
	Decisions, Failed int64
	Messages          int64 // number of commands that the nodes received; only for cellserver
	CPU               time.Duration
	Latencies         []byte // an encoded histogram of latencies in nanoseconds
	FirstError        string
}

// These are the phases of a worker. A call counts if it begins and ends while counting.
const (
	warming = iota
	counting
	ending
)

// decider makes one decision about a key. It must not be used concurrently.
type decider func(key string) error

// work runs a worker: a process that stands for one server, or for one program that uses a library.
// It prints "ready", starts calling at the line "start" on its input, counts from "count" and ends
// at "end".
func work(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var t task
	set := flag.NewFlagSet("storebench worker", flag.ContinueOnError)
	set.StringVar(&t.Kind, "kind", "", "redis_rate or cellserver")
	set.StringVar(&t.Nodes, "nodes", "", "addresses of the cluster")
	set.IntVar(&t.Callers, "callers", 64, "goroutines that call")
	set.IntVar(&t.Keys, "keys", 1, "number of keys")
	set.DurationVar(&t.Lease, "lease", 0, "take leases of this length")
	if err := set.Parse(args); err != nil {
		return err
	}
	s, err := connect(ctx, t)
	if err != nil {
		return err
	}
	defer s.close()
	if _, err := io.WriteString(out, "ready\n"); err != nil {
		return err
	}
	return t.call(s, bufio.NewScanner(in), out)
}

// subject is the limiter whose calls a worker measures.
type subject struct {
	newDecider func() decider // makes the decider of a caller; called once for each caller
	messages   func() int64   // returns the number of messages so far
	close      func()
}

// connect sets up the limiter that the task names.
func connect(ctx context.Context, t task) (*subject, error) {
	switch t.Kind {
	case library:
		return connectLibrary(ctx, strings.Split(t.Nodes, ","))
	case "cellserver":
		return connectStore(ctx, t)
	}
	return nil, fmt.Errorf("no kind %q", t.Kind)
}

// callers is the state that all callers of a worker share.
type callers struct {
	phase atomic.Int32
	mu    sync.Mutex
	hist  *hdrhistogram.Histogram // histogram of latencies in nanoseconds; guarded by mu
	told  report                  // the figures that were counted so far; guarded by mu
}

// call runs the callers through the phases that the input lines announce.
func (t task) call(s *subject, lines *bufio.Scanner, out io.Writer) error {
	if err := await(lines, "start"); err != nil {
		return err
	}
	c := &callers{hist: newHistogram()}
	var running sync.WaitGroup
	for i := range t.Callers {
		decide := s.newDecider()
		running.Go(func() { c.run(decide, t.chooser(uint64(i))) })
	}
	err := await(lines, "count")
	began, sent := ownCPU(), s.messages()
	c.phase.Store(counting)
	err = errors.Join(err, await(lines, "end"))
	c.phase.Store(ending)
	used := ownCPU() - began
	sent = s.messages() - sent
	running.Wait()
	if err != nil {
		return err
	}
	if c.told.Latencies, err = c.hist.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err != nil {
		return err
	}
	c.told.CPU, c.told.Messages = used, sent
	return json.NewEncoder(out).Encode(c.told)
}

// await reads a line, which must be want.
func await(lines *bufio.Scanner, want string) error {
	if !lines.Scan() || lines.Text() != want {
		return fmt.Errorf("expected the line %q", want)
	}
	return nil
}

// run makes calls until the phase is ending.
func (c *callers) run(decide decider, choose func() string) {
	hist := newHistogram()
	var failed int64
	var first error
	for {
		before := c.phase.Load()
		if before == ending {
			break
		}
		key, began := choose(), time.Now()
		err := decide(key)
		took := time.Since(began)
		if before != counting || c.phase.Load() != counting {
			continue
		}
		if err != nil {
			if failed++; first == nil {
				first = err
			}
			continue
		}
		_ = hist.RecordValue(min(int64(took), hist.HighestTrackableValue())) // no error: the value is in the range
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hist.Merge(hist)
	c.told.Decisions += hist.TotalCount()
	c.told.Failed += failed
	if first != nil && c.told.FirstError == "" {
		c.told.FirstError = first.Error()
	}
}

// chooser returns a function that chooses keys for one caller.
func (t task) chooser(seed uint64) func() string {
	if t.Keys == 1 {
		return func() string { return "hot" }
	}
	names := make([]string, t.Keys)
	for i := range names {
		names[i] = "key:" + strconv.Itoa(i)
	}
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, seed)), 1.1, 1, uint64(t.Keys-1))
	return func() string { return names[zipf.Uint64()] }
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Minute), 3) }
