package attack

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
)

// Latency has the latencies of the commands of a client that takes no part in the attack. The client
// sends at a constant rate, so that a stall counts for every command that it delays.
type Latency struct {
	Count                 int64
	P50, P99, P999, Worst time.Duration
	// Refused counts error replies, of which First is the first. Unanswered counts commands without
	// a reply.
	Refused    int64
	First      string
	Unanswered int64
}

// Probe measures the latency of commands at an address until ctx ends, and calls ready after the
// first reply. [Measure] is a Probe. A program that can start another process measures there, so
// that the clients of the attack do not delay the measuring.
type Probe func(ctx context.Context, address string, commands []string, ready func()) (Latency, error)

const (
	// probeRate is the number of commands per second of a probe, spread over as many connections as
	// there are commands.
	probeRate = 1000
	// probeGrace is the maximum time for which the probe waits for the last replies.
	probeGrace = 30 * time.Second
)

// Measure is a [Probe] in this process. It returns an error if no command was answered.
func Measure(ctx context.Context, address string, commands []string, ready func()) (Latency, error) {
	mix, err := loadgen.ParseMix(commands, loadgen.Shape{KeyWidth: 6})
	if err != nil {
		return Latency{}, err
	}
	var once sync.Once
	progress := func(live loadgen.Live) {
		if live.Completed > 0 {
			once.Do(ready)
		}
	}
	result, err := loadgen.Run(ctx, loadgen.Target{Name: "the server", Network: "tcp", Address: address}, loadgen.Options{
		Mix: mix, Keys: loadgen.KeySpec{Kind: loadgen.KeyUniform, Count: 1000}, Connections: len(commands), Threads: 1,
		Pipeline: 1, Rate: probeRate, Duration: time.Hour, Grace: probeGrace, SkipChecks: true, Progress: progress,
	})
	if err != nil {
		return Latency{}, err
	}
	if result.Count() == 0 {
		return Latency{}, errors.New("no command was answered")
	}
	at := func(percent float64) time.Duration { return time.Duration(result.Latency.ValueAtQuantile(percent)) }
	l := Latency{
		Count: result.Count(), P50: at(50), P99: at(99), P999: at(99.9), Worst: time.Duration(result.Latency.Max()),
		Unanswered: result.Unanswered,
	}
	for i := range result.Commands {
		l.Refused += result.Commands[i].Errors
		if l.First == "" {
			l.First = result.Commands[i].FirstError
		}
	}
	return l, nil
}

// look is a running probe.
type look struct {
	ready context.Context // done after the first reply, or when the probe has ended
	done  chan struct{}   // closed when saw and fault are set
	saw   Latency
	fault string
}

// result waits until the probe has ended. fault is the reason if it has failed, and "" otherwise.
func (l *look) result() (saw Latency, fault string) {
	<-l.done
	return l.saw, l.fault
}

// probes returns the commands of the client that measures latency.
func (i *instance) probes() []string {
	if i.cell {
		return []string{"CL.THROTTLE others:{key} 15 30 60", "SET other:{key} x"}
	}
	return []string{"GET others:{key}", "SET other:{key} x"}
}
