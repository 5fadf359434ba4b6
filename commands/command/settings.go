package command

import (
	"time"

	"github.com/cellserver/cellserver/resp"
)

// Settings is the configuration as CONFIG sees it.
type Settings interface {
	// Get returns the names, in lower case, and current values of every parameter
	// that match accepts, in the order of their table.
	Get(match func(name string) bool) (pairs [][2]string)
	// Set changes all of the given parameters, in any case, or none.
	Set(pairs [][2]string) resp.Error
}

// Process is what INFO says of the process that holds the engine.
type Process interface {
	// Version is our own version, Started when the process began (civil, unix
	// seconds), RunID 40 hexadecimal digits that change with every start.
	Version() string
	Uptime() time.Duration
	RunID() string
	PID() int
	// Transport names how connections are served, as multiplexing_api.
	Transport() string
	ConfigFile() string
	Executable() string
	TCPPort() int
	// Memory is the resident set and the Go heap in bytes.
	Memory() (rss, heap int64)
	// CPU is the processor time used, in the system and as user.
	CPU() (sys, user time.Duration)
	// Network is what the transports have moved, and what waits in them: replies to be
	// sent and input that is no whole command yet.
	Network() (in, out, pending int64)
	// ClockStep is by how much the wall clock is off the server's own clock.
	ClockStep() time.Duration
}

// StoreStats is what INFO says of the store: its databases, in order, and what they
// take.
type StoreStats struct {
	Databases []DatabaseStats
	Memory    MemoryStats
}

// DatabaseStats is a line of INFO keyspace.
type DatabaseStats struct {
	Keys, Expires int64
	AvgTTL        time.Duration
}

// MemoryStats is what the store says of its memory.
type MemoryStats struct {
	// Dataset is what keys take, in bytes, and InHeap what of that is in Go's heap. Max
	// is maxmemory, 0 without a bound.
	Dataset, InHeap, Max int64
	// Expired is how many keys have expired since the start.
	Expired int64
}

// Used is what the process takes for keys and everything else, given its heap.
func (m *MemoryStats) Used(heap int64) int64 { return m.Dataset + heap - m.InHeap }

// Process returns what INFO asks.
func (e *Server) Process() Process {
	if e.Opts.Process == nil {
		return noProcess{}
	}
	return e.Opts.Process
}

// noProcess stands in where an engine runs without a server around it.
type noProcess struct{}

func (noProcess) Version() string { return "dev" }

func (noProcess) Uptime() time.Duration { return 0 }

func (noProcess) RunID() string { return "" }

func (noProcess) PID() int { return 0 }

func (noProcess) Transport() string { return "" }

func (noProcess) ConfigFile() string { return "" }

func (noProcess) Executable() string { return "" }

func (noProcess) TCPPort() int { return 0 }

func (noProcess) Memory() (rss, heap int64) { return 0, 0 }

func (noProcess) CPU() (sys, user time.Duration) { return 0, 0 }

func (noProcess) Network() (in, out, pending int64) { return 0, 0, 0 }

func (noProcess) ClockStep() time.Duration { return 0 }
