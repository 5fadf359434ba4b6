package server

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"time"

	"github.com/cellserver/cellserver/process"
	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// processInfo implements [env.Process] for the running program.
type processInfo struct {
	s          *Server
	runID      string
	executable string
}

func newProcessInfo(s *Server) *processInfo {
	id := make([]byte, 20)
	_, _ = rand.Read(id) // Read never fails, as its documentation says
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	return &processInfo{s: s, runID: hex.EncodeToString(id), executable: exe}
}

func (p *processInfo) Version() string                          { return Version }
func (p *processInfo) Revision() (commit string, modified bool) { return process.ShortRevision() }
func (p *processInfo) Uptime() time.Duration                    { return p.s.stopwatch() }
func (p *processInfo) RunID() string                            { return p.runID }
func (p *processInfo) PID() int                                 { return os.Getpid() }
func (p *processInfo) Transport() string                        { return string(p.s.kind) }
func (p *processInfo) ConfigFile() string                       { return p.s.config.File() }
func (p *processInfo) Executable() string                       { return p.executable }
func (p *processInfo) TCPPort() int                             { return p.s.tcpPort() }

// Memory returns the resident set size of the process and the size of the objects in Go's heap, in
// bytes. heap also includes client input outside of Go's heap; it is 0 if Go's runtime does not
// report the size. If the operating system does not report the resident set size, rss is heap.
func (p *processInfo) Memory() (rss, heap int64) {
	if heap = process.HeapObjects(); heap > 0 {
		heap += transport.MappedInput()
	}
	if rss = process.ResidentSet(); rss == 0 {
		rss = heap
	}
	return rss, heap
}

// Measures implements [stats.Measured].
func (p *processInfo) Measures() stats.Measures {
	m := p.s.recent.Measures()
	m.SystemMemory = process.SystemMemory()
	return m
}

// CPU implements [env.Process].
func (p *processInfo) CPU() (sys, user time.Duration) { return process.CPUTime() }

// Network implements [env.Process] with [Server.Traffic].
func (p *processInfo) Network() stats.Traffic {
	return p.s.recent.Traffic(trafficOf(p.s.Traffic()))
}

// trafficOf returns the counters of the transport as statistics, without figures about the last
// seconds.
func trafficOf(t transport.Stats) stats.Traffic {
	return stats.Traffic{In: t.BytesIn, Out: t.BytesOut, Reads: t.Reads, Writes: t.Writes, Pending: t.Pending + t.Unread}
}

// ClockStep implements [env.Process].
func (p *processInfo) ClockStep() time.Duration {
	if c, ok := p.s.clock.(interface{ Step() time.Duration }); ok {
		return c.Step()
	}
	return 0
}
