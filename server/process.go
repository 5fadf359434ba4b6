package server

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"runtime/metrics"
	"time"

	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// process implements [env.Process] for the running program.
type process struct {
	s          *Server
	runID      string
	executable string
}

func newProcess(s *Server) *process {
	id := make([]byte, 20)
	_, _ = rand.Read(id) // rand.Read never fails, by its contract
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	return &process{s: s, runID: hex.EncodeToString(id), executable: exe}
}

func (p *process) Version() string                          { return Version }
func (p *process) Revision() (commit string, modified bool) { return shortRevision() }
func (p *process) Uptime() time.Duration                    { return p.s.stopwatch() }
func (p *process) RunID() string                            { return p.runID }
func (p *process) PID() int                                 { return os.Getpid() }
func (p *process) Transport() string                        { return string(p.s.kind) }
func (p *process) ConfigFile() string                       { return p.s.config.File() }
func (p *process) Executable() string                       { return p.executable }
func (p *process) TCPPort() int                             { return p.s.tcpPort() }

// Memory returns the resident set size of the process and the size of the objects in Go's heap, in
// bytes. Input outside of Go's heap counts as a part of the heap. If the operating system does not
// tell the resident set size, rss is heap.
func (p *process) Memory() (rss, heap int64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() == metrics.KindUint64 {
		heap = int64(sample[0].Value.Uint64()) + transport.MappedInput()
	}
	if rss = residentSet(); rss == 0 {
		rss = heap
	}
	return rss, heap
}

// Measures implements [stats.Measured].
func (p *process) Measures() stats.Measures {
	start, peak := p.s.recent.memory()
	return stats.Measures{
		SystemMemory: systemMemory(), StartMemory: start, PeakMemory: peak, ExpireTime: time.Duration(p.s.recent.swept.Load()),
	}
}

// CPU implements [env.Process].
func (p *process) CPU() (sys, user time.Duration) { return cpuTime() }

// Network implements [env.Process] with the counters of the transport.
func (p *process) Network() stats.Traffic {
	var t transport.Stats
	if p.s.transport != nil {
		t = p.s.transport.Stats()
	}
	return p.s.recent.traffic(t)
}

// ClockStep implements [env.Process].
func (p *process) ClockStep() time.Duration {
	if c, ok := p.s.clock.(interface{ Step() time.Duration }); ok {
		return c.Step()
	}
	return 0
}
