package loadgen

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"
)

// Options say what one run does.
type Options struct {
	Mix  *Mix
	Keys KeySpec
	// Connections are spread over Threads; 0 threads are one for every two cores
	// of this machine, and never more than there are connections.
	Connections, Threads int
	// Pipeline is the number of commands in flight per connection in a closed loop.
	Pipeline int
	// Rate is how many commands per second leave in an open loop; 0 is a closed
	// loop.
	Rate float64
	// Warmup is the time during which nothing counts.
	Warmup time.Duration
	// The run ends after Count commands that count, or after Duration if Count is
	// 0.
	Count    int64
	Duration time.Duration
	// Seed makes runs repeatable: connection n draws the same keys every time.
	Seed uint64
	// Driver is one of the Driver constants, "" for the best of this system.
	Driver string
	// Grace is how long the last replies may take; 0 is ten seconds.
	Grace time.Duration
	// SkipChecks leaves the limits unchecked. SharedKeys says that others use the
	// same keys, so that a limit is not held to grant us anything.
	SkipChecks, SharedKeys bool
	// Progress, if not nil, is called about ten times a second.
	Progress func(Live)
}

// The drivers.
const (
	// DriverEpoll is an event loop per thread; it exists on Linux.
	DriverEpoll = "epoll"
	// DriverGoroutine is a goroutine per connection.
	DriverGoroutine = "goroutine"
)

const (
	defaultGrace = 10 * time.Second
	glanceEvery  = 100 * time.Millisecond
	maxPipeline  = 1024
)

// check fills in defaults and names what is out of range.
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

// share returns how many of the counting commands connection i sends.
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
