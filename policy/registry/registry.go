package registry

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
)

// Database is the number of the database that records are in.
const Database = entry.SystemDatabase

// Store is the registry's view of the store. One goroutine at a time uses it, and holds no lock
// of a key.
type Store interface {
	// Refresh reads the clock.
	Refresh() limit.Instant
	// Civil turns an instant of the store into one of the civil clock; FromCivil is the way back.
	Civil(limit.Instant) limit.Instant
	FromCivil(limit.Instant) limit.Instant
	// SetStrings makes every even of pairs hold the value behind it for ever, all at one
	// instant.
	SetStrings(pairs [][]byte, need Need) error
	// Delete removes a key.
	Delete(key []byte)
}

// Need is how a change may use memory when memory is full.
type Need uint8

// The needs, the least first.
const (
	Spare  Need = iota // it fails
	Urgent             // it does not fail, up to a bound
	Frees              // it never fails for want of memory
)

// Options are the options of a [Registry].
type Options struct {
	// Failed is called once for the first record of an entry that cannot be read; it may be nil.
	Failed func(err error)
}

// Registry has the policies of a server. Any goroutine may use it, but only one that may block
// may call methods with a Store, or those whose comment says so.
type Registry struct {
	table atomic.Pointer[policy.Table]
	// behind reports that records have arrived which the table does not have yet.
	behind atomic.Bool
	bytes  atomic.Int64           // see Bytes
	file   atomic.Pointer[string] // the policy file, nil without one
	failed func(err error)
	// urgent is how many changes there are that others give way to.
	urgent atomic.Int32

	mu      sync.Mutex
	calm    *sync.Cond      // of mu: there is no urgent change any more
	patient bool            // guarded by mu: the change that is under way gives way
	builder *policy.Builder // guarded by mu
	history history         // guarded by mu
	fault   error           // guarded by mu: of the first record of an entry that could not be read

	told told
}

// recordBounds are the bounds of clauses in records: an accepted entry stays readable, whatever
// the options are now. Calls apply the current options.
var recordBounds = policy.Bounds{LogMaxEntries: math.MaxInt64, MaxMembers: math.MaxInt64}

// New returns a registry without policies.
func New(o Options) *Registry {
	r := &Registry{failed: o.Failed, builder: policy.NewBuilder(policy.Sizes{})}
	r.calm = sync.NewCond(&r.mu)
	r.history.reset()
	r.table.Store(r.builder.Table())
	return r
}

// publish puts the entries of the builder in force. The caller holds mu.
func (r *Registry) publish() {
	r.bytes.Store(r.builder.Bytes() + r.history.bytes)
	r.table.Store(r.builder.Table())
}

// Bytes is about how much memory the table and the history take, beside the records. It is 0 for no
// registry.
func (r *Registry) Bytes() int64 {
	if r == nil {
		return 0
	}
	return r.bytes.Load()
}

// SetFile sets the policy file of this server. From now on commands cannot change the entries
// that it defines.
func (r *Registry) SetFile(path string) { r.file.Store(&path) }

// HasFile reports whether this server reads a policy file.
func (r *Registry) HasFile() bool { return r.file.Load() != nil }

// Defines reports whether the policy file defines e, so that no command may change it. Any goroutine
// may call it.
func (r *Registry) Defines(e *policy.Entry) bool { return e.File && r.file.Load() != nil }
