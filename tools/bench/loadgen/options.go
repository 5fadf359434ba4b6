package loadgen

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"
)

// Options specify one run.
type Options struct {
	Mix  *Mix
	Keys KeySpec
	// Connections are spread over Threads. 0 threads means one for every two cores of this machine.
	// There are never more threads than connections.
	Connections, Threads int
	// Pipeline is the number of commands in flight per connection in a closed loop.
	Pipeline int
	// Rate is the number of commands per second of an open loop. 0 means a closed loop.
	Rate float64
	// Warmup is the time at the beginning during which nothing is measured.
	Warmup time.Duration
	// The run ends after Count measured commands, or after Duration if Count is 0.
	Count    int64
	Duration time.Duration
	// Seed makes runs repeatable: connection n draws the same keys every time.
	Seed uint64
	// Driver is one of the Driver constants, "" for the best driver of this system.
	Driver string
	// Grace is the maximum time for which the run waits for the last replies. 0 means 10 s.
	Grace time.Duration
	// SkipChecks turns off the checks of limits. SharedKeys says that other clients use the same
	// keys, so that only the upper bounds are checked.
	SkipChecks, SharedKeys bool
	// Progress, if not nil, is called about ten times a second.
	Progress func(Live)
}

// These are the values of [Options.Driver].
const (
	// DriverEpoll is one event loop per thread; it exists only on Linux.
	DriverEpoll = "epoll"
	// DriverGoroutine is one goroutine per connection.
	DriverGoroutine = "goroutine"
)

const (
	defaultGrace = 10 * time.Second
	glanceEvery  = 100 * time.Millisecond
	maxPipeline  = 1024
)

// check fills in defaults and returns an error if a value is out of range.
func (o *Options) check() error {
	if o.Threads == 0 {
		o.Threads = max(1, runtime.NumCPU()/2)
	}
	o.Threads = min(o.Threads, o.Connections)
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	switch {
	case o.Mix == nil:
		return errors.New("there is no command to send")
	case o.Connections < 1:
		return errors.New("there must be a connection")
	case o.Threads < 1:
		return errors.New("there must be a thread")
	case o.Pipeline < 1 || o.Pipeline > maxPipeline:
		return fmt.Errorf("the pipeline must be between 1 and %d commands deep", maxPipeline)
	case o.Rate < 0 || o.Rate > 1e9:
		return errors.New("the rate must be between 0 and 1e9 commands a second")
	case o.Count < 0 || o.Warmup < 0 || o.Duration < 0 || o.Count == 0 && o.Duration == 0:
		return errors.New("a run needs a duration or a count, and no time can be negative")
	}
	return o.Keys.check()
}

// open reports whether the run is an open loop.
func (o *Options) open() bool { return o.Rate > 0 }

// share returns the number of measured commands that connection i may send: its part of Count. If
// Count is 0, there is no bound.
func (o *Options) share(i int) int64 {
	if o.Count == 0 {
		return math.MaxInt64
	}
	n := int64(o.Connections)
	share := o.Count / n
	if int64(i) < o.Count%n {
		share++
	}
	return share
}
