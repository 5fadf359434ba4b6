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

// Options are what an Engine needs of the world around it. All but
// Process, Stop, ScriptRoom, FreeHeap and Log must be set.
type Options struct {
	// NewStore returns a handle of the store for one worker.
	NewStore func() Store
	// Remote decides what commands ask, instead of the store; nil has the store decide.
	Remote Remote
	// RemoteInfo is what INFO says of Remote; nil leaves that out.
	RemoteInfo func() []InfoField
	// Ledger counts values that have left the store while replies refer to them. Without
	// one replies are copies.
	Ledger shared.Ledger
	// Stopwatch is a monotonic reading, for measuring how long a command took. It
	// decides nothing.
	Stopwatch func() time.Duration
	// Now reads the store's clock, for the ages of clients.
	Now func() limit.Instant
	// Civil is the time of day; nil stands for Now.
	Civil func() limit.Instant
	// Settings is the configuration that CONFIG shows and changes.
	Settings Settings
	// Process is what INFO says of the process; nil leaves those fields out.
	Process Process
	// ObserveExpiry has an observer told of what expires without anybody's doing; nil
	// tells nobody.
	ObserveExpiry func(Observer)
	// SuspendExpiry keeps keys that have expired from being removed, or lets them go again;
	// nil if there is nothing to hold. Any goroutine may call it.
	SuspendExpiry func(hold bool)
	// Persistence keeps effects; nil keeps nothing.
	Persistence Persistence
	// Node replicates. nil stands for a primary without replicas that never has any.
	Node Node
	// UserFile is where ACL LOAD and ACL SAVE find users; nil without a file.
	UserFile UserFile
	// Report makes the JSON of a report as a user may see it. An error says what is wrong with
	// what was asked. nil makes none.
	Report func(u *acl.User, from, report string, given map[string][]string) ([]byte, error)
	// Stop ends the server; SHUTDOWN calls it.
	Stop func(StopMode)
	// ScriptRoom says how many bytes of objects Go's heap may have while scripts run, and
	// how many of them are kept for keys; nil stands for any number.
	ScriptRoom func() (bound, kept int64)
	// Reload reads the configuration and its files again, and puts all of it in force or
	// nothing; by says whose doing it is. closes says that the connection of caller, the ID of
	// a client, ends after its reply, since its user is gone or has other rules; those of others
	// have ended. nil if there is nothing to read.
	Reload func(by string, caller int64) (closes bool, err error)
	// Rewrite writes the configuration into the file that it was read from; nil if there is
	// none.
	Rewrite func() error
	// FreeHeap gives what is garbage in Go's heap back to the system; nil does nothing.
	FreeHeap func()
	// Policies are the limits that live in the server; nil without them.
	Policies *registry.Registry
	// PolicyFile is where RL.POLICY RELOAD finds policies; nil without a file.
	PolicyFile PolicyFile
	// Groups says how decisions are counted by group of keys.
	Groups stats.GroupOptions
	// Log receives what an operator should know; nil discards it.
	Log *slog.Logger
}

// StopMode says whether a server that stops writes a snapshot first.
type StopMode uint8

const (
	// StopAsConfigured writes one if there are save points and no log.
	StopAsConfigured StopMode = iota
	// StopSaving writes one.
	StopSaving
	// StopWithoutSaving writes none.
	StopWithoutSaving
)

// Settings is the configuration as CONFIG sees it.
type Settings interface {
	// Get returns the names, in lower case, and current values of every parameter
	// that match accepts, in the order of their table.
	Get(match func(name string) bool) (pairs [][2]string)
	// Set changes all of the given parameters, in any case, or none. It may wait for a disk.
	Set(pairs [][2]string) resp.Error
	// ReadsFiles reports whether Set reads files for one of these parameters.
	ReadsFiles(pairs [][2]string) bool
}

// UserFile is a file of users. Load puts all of it in force or nothing, and returns the
// users that are gone or may do something else.
type UserFile interface {
	Load(users *acl.Users) (changed []*acl.User, err error)
	Save(users *acl.Users) error
}

// PolicyFile is a file of policies. Load puts all of it in force or nothing, and returns how many
// policies and overrides that has changed. It may wait for a disk.
type PolicyFile interface {
	Load(st registry.Store, by registry.Author) (changed int, err error)
}

// Process is what INFO says of the process that holds the engine.
type Process interface {
	// Version is our own version, Started when the process began (civil, unix
	// seconds), RunID 40 hexadecimal digits that change with every start.
	Version() string
	// Revision is eight digits of the commit that the program was compiled from, zeros if that is not
	// known, and whether files differed from it.
	Revision() (commit string, modified bool)
	Uptime() time.Duration
	RunID() string
	PID() int
	// Transport names how connections are served, as multiplexing_api.
	Transport() string
	ConfigFile() string
	Executable() string
	TCPPort() int
	// Memory is the resident set, and the Go heap with the input beside it, in bytes.
	Memory() (rss, heap int64)
	// CPU is the processor time used, in the system and as user.
	CPU() (sys, user time.Duration)
	// Network is what the transports have moved, and what waits in them.
	Network() stats.Traffic
	// ClockStep is by how much the wall clock is off the server's own clock.
	ClockStep() time.Duration
}

// NoProcess stands in where an engine runs without a server around it.
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
