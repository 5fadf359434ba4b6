package env

import (
	"log/slog"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/stats"
)

// Options are what a session engine needs from its environment. All fields whose comment does not
// say what nil means must be set.
type Options struct {
	// NewStore returns a handle of the store for one worker.
	NewStore func() Store
	// Remote decides the asks of commands instead of the store; nil has the store decide.
	Remote Remote
	// RemoteInfo returns the fields of INFO about Remote; nil leaves them out.
	RemoteInfo func() []InfoField
	// Ledger counts values that were removed from the store while replies refer to them; nil makes
	// replies copy values.
	Ledger shared.Ledger
	// Stopwatch returns a monotonic reading, for measuring how long a command took. No decision
	// depends on it.
	Stopwatch func() time.Duration
	// Now returns the store's time, for the ages of clients.
	Now func() limit.Instant
	// Civil returns the time of day; nil stands for Now.
	Civil func() limit.Instant
	// Settings is the configuration that CONFIG shows and changes.
	Settings Settings
	// Process has the fields of INFO about the process; nil leaves them out.
	Process Process
	// ObserveExpiry registers an observer of keys that expire without a command; nil if there is
	// none.
	ObserveExpiry func(Observer)
	// SuspendExpiry stops (hold) or resumes the removal of expired keys; nil if keys are never
	// removed by themselves. Any goroutine may call it.
	SuspendExpiry func(hold bool)
	// Persistence persists effects; nil persists nothing.
	Persistence Persistence
	// Node replicates. nil stands for a primary that never has replicas.
	Node Node
	// UserFile is the file of ACL LOAD and ACL SAVE; nil without a file.
	UserFile UserFile
	// Report returns the JSON of a report, restricted to what the user u may see. Its error
	// describes what is wrong with the request. nil if there are no reports.
	Report func(u *acl.User, from, report string, given map[string][]string) ([]byte, error)
	// Stop ends the server; SHUTDOWN calls it.
	Stop func(StopMode)
	// ScriptRoom returns how many bytes of objects Go's heap may have while scripts run, and how
	// many of these are reserved for keys; nil is no bound.
	ScriptRoom func() (bound, kept int64)
	// Reload reads the configuration and its files again, and applies all of it or nothing. by
	// names the originator. closes says that the connection of the client with the ID caller has to
	// end after its reply, because its user was deleted or has other rules; connections of other
	// clients have been closed. nil if there is nothing to read.
	Reload func(by string, caller int64) (closes bool, err error)
	// Rewrite writes the configuration into the file that it was read from; nil if there is none.
	Rewrite func() error
	// FreeHeap returns garbage in Go's heap to the operating system; nil does nothing.
	FreeHeap func()
	// Policies are the policies that the server stores; nil without them.
	Policies *registry.Registry
	// PolicyFile is the file of RL.POLICY RELOAD; nil without a file.
	PolicyFile PolicyFile
	// Groups says how decisions are counted by group of keys.
	Groups stats.GroupOptions
	// Log receives messages for operators; nil discards them.
	Log *slog.Logger
}

// StopMode says whether a server that stops writes a snapshot first.
type StopMode uint8

const (
	// StopAsConfigured writes a snapshot if there are save points and no log.
	StopAsConfigured StopMode = iota
	// StopSaving writes a snapshot.
	StopSaving
	// StopWithoutSaving writes no snapshot.
	StopWithoutSaving
)

// Settings is the configuration as CONFIG uses it.
type Settings interface {
	// Get returns the names, in lower case, and current values of all parameters that match
	// accepts, in the order of their table.
	Get(match func(name string) bool) (pairs [][2]string)
	// Set changes all of the given parameters, whose names may be in any case, or none of them. It
	// may wait for a disk.
	Set(pairs [][2]string) resp.Error
	// ReadsFiles reports whether Set reads files for one of these parameters.
	ReadsFiles(pairs [][2]string) bool
}

// UserFile is a file of users. Load applies all of it or nothing, and returns the users that were
// deleted or have other permissions now.
type UserFile interface {
	Load(users *acl.Users) (changed []*acl.User, err error)
	Save(users *acl.Users) error
}

// PolicyFile is a file of policies. Load applies all of it or nothing, and returns how many
// policies and overrides have changed. It may wait for a disk.
type PolicyFile interface {
	Load(st registry.Store, by registry.Author) (changed int, err error)
}

// Process has the fields of INFO about the process of the server.
type Process interface {
	// Version is the server's own version. RunID is 40 hexadecimal digits that change with every
	// start.
	Version() string
	// Revision returns the first eight digits of the commit that the program was compiled from,
	// zeros if it is unknown, and whether the source had uncommitted changes.
	Revision() (commit string, modified bool)
	Uptime() time.Duration
	RunID() string
	PID() int
	// Transport names how connections are served, for the field multiplexing_api.
	Transport() string
	ConfigFile() string
	Executable() string
	TCPPort() int
	// Memory returns the resident set size, and the Go heap together with input buffers, in bytes.
	Memory() (rss, heap int64)
	// CPU returns the processor time used in the system and in user mode.
	CPU() (sys, user time.Duration)
	// Network returns the bytes that the transports have transferred and have queued.
	Network() stats.Traffic
	// ClockStep returns the difference between the wall clock and the server's own clock.
	ClockStep() time.Duration
}

// NoProcess is a Process without information, for an engine that runs without a server, such as in
// tests.
type NoProcess struct{}

// Version implements Process.
func (NoProcess) Version() string { return "dev" }

// Revision implements Process.
func (NoProcess) Revision() (commit string, modified bool) { return "00000000", false }

// Uptime implements Process.
func (NoProcess) Uptime() time.Duration { return 0 }

// RunID implements Process.
func (NoProcess) RunID() string { return "" }

// PID implements Process.
func (NoProcess) PID() int { return 0 }

// Transport implements Process.
func (NoProcess) Transport() string { return "" }

// ConfigFile implements Process.
func (NoProcess) ConfigFile() string { return "" }

// Executable implements Process.
func (NoProcess) Executable() string { return "" }

// TCPPort implements Process.
func (NoProcess) TCPPort() int { return 0 }

// Memory implements Process.
func (NoProcess) Memory() (rss, heap int64) { return 0, 0 }

// CPU implements Process.
func (NoProcess) CPU() (sys, user time.Duration) { return 0, 0 }

// Network implements Process.
func (NoProcess) Network() stats.Traffic { return stats.Traffic{} }

// ClockStep implements Process.
func (NoProcess) ClockStep() time.Duration { return 0 }
