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

// Options has the parts of the server that a session engine needs. A field must be set unless its
// comment defines its zero value.
type Options struct {
	// NewStore returns a new handle of the store, for one worker.
	NewStore func() Store
	// Remote decides the asks of commands instead of the store; nil means that the store decides
	// them.
	Remote Remote
	// RemoteInfo returns the fields of INFO about Remote; nil means that INFO shows none.
	RemoteInfo func() []InfoField
	// Ledger counts the values that were removed from the store while replies still refer to them.
	// nil means that replies copy values.
	Ledger shared.Ledger
	// Stopwatch reads a monotonic clock, which measures the durations of commands. No decision
	// depends on it.
	Stopwatch func() time.Duration
	// Now returns the instant of the store's clock, for the ages of clients.
	Now func() limit.Instant
	// Civil returns the time of day; nil means that Now is used.
	Civil func() limit.Instant
	// MoveClock moves the store's clock forward by d. It returns when all waiting calls that were due up to the new
	// instant are decided. The error says that the clock cannot move so far. MoveClock is nil unless the clock is
	// manual.
	MoveClock func(d time.Duration) error
	// Machine is the clock of the machine if the store's clock is manual. nil means the store's clock.
	Machine Machine
	// Settings is the configuration that CONFIG shows and changes.
	Settings Settings
	// Process has the fields of INFO about the process; nil means [NoProcess].
	Process Process
	// ObserveExpiry registers an observer of the keys that expire without a command; nil if keys
	// never expire without a command.
	ObserveExpiry func(Observer)
	// SuspendExpiry stops the removal of expired keys if hold is true, and resumes it otherwise. It
	// is nil if only commands remove expired keys. Any goroutine may call it.
	SuspendExpiry func(hold bool)
	// Persistence persists the effects of commands; nil means that nothing is persisted.
	Persistence Persistence
	// Node is the server's side of replication; nil means a primary that never has replicas.
	Node Node
	// UserFile is the file of ACL LOAD and ACL SAVE; nil if there is no such file.
	UserFile UserFile
	// Report returns the JSON of the report called report, restricted to what the user u may see.
	// given has the parameters of the report, and from is the caller's address. An error says what
	// is wrong with the request. Report is nil if there are no reports.
	Report func(u *acl.User, from, report string, given map[string][]string) ([]byte, error)
	// Stop stops the server. SHUTDOWN calls it.
	Stop func(StopMode)
	// MakeRoom closes a client that can do without its connection, and returns false if there is none. It is called for a client
	// beyond maxclients. nil means that there is none.
	MakeRoom func() bool
	// ScriptRoom returns how many bytes of objects Go's heap may have while scripts run, and how
	// many bytes of these are reserved for keys. nil means that there is no bound.
	ScriptRoom func() (bound, kept int64)
	// Reload reads the configuration and its files again, and applies all of it or nothing. by is
	// the originator, for the list of changes. Connections of users that were deleted or have other
	// rules are closed. closes is true if that concerns the client with the ID caller, whose
	// connection has to end after its reply. Reload is nil if there is nothing to read.
	Reload func(by string, caller int64) (closes bool, err error)
	// Rewrite writes the configuration into the file that it was read from (CONFIG REWRITE); nil if
	// there is no such file.
	Rewrite func() error
	// FreeHeap returns unused memory of Go's heap to the operating system; nil means that it is not
	// returned.
	FreeHeap func()
	// Policies are the policies that the server stores; nil if it stores none.
	Policies *registry.Registry
	// ChangePolicies calls f with the store that has the records of Policies; f may wait for that store. confirm waits
	// until a replica of that store has the change that f has made, for about a second at most. Its error is
	// [registry.ErrUnconfirmed], or says that the change was lost. ChangePolicies is nil if the store of a
	// worker has the records.
	ChangePolicies func(f func(st registry.Store)) (confirm func() error)
	// PoliciesUnread returns an error as long as the store that has the records of Policies has not been read since the
	// start. nil means that they are always read.
	PoliciesUnread func() error
	// Summaries returns, for each of the other servers of the store, the bytes of the summary of its most frequent keys
	// that it has published for RL.TOP FLEET; nil for a server without one. It waits for the store, a few seconds at
	// most. nil means that there are no other servers.
	Summaries func() ([][]byte, error)
	// PolicyUnreadable returns the error of a record of the policy with the given name that this server cannot read;
	// nil if it can read all. If there is an error, pass says whether calls for the given key pass. nil means that all
	// records can be read.
	PolicyUnreadable func(name, key []byte) (pass bool, why error)
	// SyncPolicies waits, for a few seconds at most, until all servers that share the store have the policies that this
	// server has. The error names those that do not have them. nil means that there are no other servers.
	SyncPolicies func() error
	// PoliciesStale returns the time since the store that has the records of Policies has last confirmed them. stale is
	// false if the latest request to that store was successful. nil means that they are never stale.
	PoliciesStale func() (age time.Duration, stale bool)
	// PolicyFile is the file of RL.POLICY RELOAD; nil if there is no such file.
	PolicyFile PolicyFile
	// ReloadRules reads the files of rules again, and returns the number of policies that have changed. It may wait for a
	// disk. It is nil without an option that names such files.
	ReloadRules func() (changed int, err error)
	// RuleFiles describes the files of rules, one element for each option that names some.
	RuleFiles []RuleFiles
	// Groups says how decisions are counted by groups of keys.
	Groups stats.GroupOptions
	// Log receives messages for operators; nil means that they are discarded.
	Log *slog.Logger
}

// RuleFiles describes files of another rate limiter, whose limits are policies.
type RuleFiles struct {
	// Figures are the names of their figures, in the order of INFO, and Field is the field of INFO that has the fault.
	Figures []string
	Field   string
	// Fault returns why the files were not loaded when they were looked at last, in one line; "" if their rules are in
	// force. Any goroutine may call it.
	Fault func() string
}

// Machine is the clock by which clients are delayed, for example after failed logins and by CLIENT PAUSE. A [Store] is
// one. Any goroutine may call the methods.
type Machine interface {
	Now() limit.Instant
	// AfterFunc does what AfterFunc of [Store] does, by this clock.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// StopMode says whether a server that stops writes a snapshot first.
type StopMode uint8

const (
	// StopAsConfigured writes a snapshot if there are save points and no AOF, or if the AOF refuses
	// changes.
	StopAsConfigured StopMode = iota
	// StopSaving writes a snapshot.
	StopSaving
	// StopWithoutSaving writes no snapshot, unless the AOF refuses changes.
	StopWithoutSaving
)

// Settings is the configuration as the commands CONFIG GET and CONFIG SET use it.
type Settings interface {
	// Get returns the name, in lower case, and the current value of each parameter whose name match
	// accepts, in the order of the table of parameters.
	Get(match func(name string) bool) (pairs [][2]string)
	// Set changes the parameters in pairs, each a name in any case and a value. It changes all of
	// them or, if it returns an error, none. It may wait for a disk.
	Set(pairs [][2]string) resp.Error
	// ReadsFiles reports whether Set would read files to change the parameters in pairs.
	ReadsFiles(pairs [][2]string) bool
}

// UserFile is the file with the users of the server. Load replaces users by the content of the
// file, all or nothing, and returns the users that were deleted or whose permissions have changed.
// Save writes users to the file. Both may wait for a disk.
type UserFile interface {
	Load(users *acl.Users) (changed []*acl.User, err error)
	Save(users *acl.Users) error
}

// PolicyFile is the file with the policies of the server. Load applies all of it to st or nothing,
// with by as the author, and returns the number of policies and overrides that have changed. It may
// wait for a disk.
type PolicyFile interface {
	Load(st registry.Store, by registry.Author) (changed int, err error)
}

// Process has the fields of INFO about the process of the server.
type Process interface {
	// Version returns the server's own version.
	Version() string
	// Revision returns the first eight digits of the commit that the program was compiled from, or
	// zeros if the commit is unknown, and whether the source had uncommitted changes.
	Revision() (commit string, modified bool)
	Uptime() time.Duration
	// RunID returns 40 hexadecimal digits that are different after every start.
	RunID() string
	PID() int
	// Transport returns the name of the transport that serves connections, for the field
	// multiplexing_api.
	Transport() string
	ConfigFile() string
	Executable() string
	TCPPort() int
	// Memory returns the resident set size of the process, and the size of Go's heap together with
	// the input buffers. Both are in bytes.
	Memory() (rss, heap int64)
	// CPU returns the processor time that the process has used in system mode and in user mode.
	CPU() (sys, user time.Duration)
	// Network returns the traffic of the transports: the numbers of bytes transferred and queued, and
	// their rates.
	Network() stats.Traffic
	// ClockStep returns by how much the wall clock is ahead of the server's own clock.
	ClockStep() time.Duration
}

// NoProcess is a Process without information, for an engine that runs without a server, as in
// tests.
type NoProcess struct{}

// Version implements [Process] and returns "dev".
func (NoProcess) Version() string { return "dev" }

// Revision implements [Process] and returns zeros and false.
func (NoProcess) Revision() (commit string, modified bool) { return "00000000", false }

// Uptime implements [Process] and returns 0.
func (NoProcess) Uptime() time.Duration { return 0 }

// RunID implements [Process] and returns "".
func (NoProcess) RunID() string { return "" }

// PID implements [Process] and returns 0.
func (NoProcess) PID() int { return 0 }

// Transport implements [Process] and returns "".
func (NoProcess) Transport() string { return "" }

// ConfigFile implements [Process] and returns "".
func (NoProcess) ConfigFile() string { return "" }

// Executable implements [Process] and returns "".
func (NoProcess) Executable() string { return "" }

// TCPPort implements [Process] and returns 0.
func (NoProcess) TCPPort() int { return 0 }

// Memory implements [Process] and returns zeros.
func (NoProcess) Memory() (rss, heap int64) { return 0, 0 }

// CPU implements [Process] and returns zeros.
func (NoProcess) CPU() (sys, user time.Duration) { return 0, 0 }

// Network implements [Process] and returns zeros.
func (NoProcess) Network() stats.Traffic { return stats.Traffic{} }

// ClockStep implements [Process] and returns 0.
func (NoProcess) ClockStep() time.Duration { return 0 }
