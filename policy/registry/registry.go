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

// Store is what the registry needs of the store. It is used by one goroutine at a time, which
// has locked no key.
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

// Need says what a change may do when memory is full.
type Need uint8

// The needs, the least first.
const (
	Spare  Need = iota // it fails
	Urgent             // it does not fail, up to a bound
	Frees              // it never fails for want of memory
)

// Options are what a [Registry] is made of.
type Options struct {
	// Failed is told, once, of the record of an entry that cannot be read; nil is not called.
	Failed func(err error)
}

// Registry is the policies of a server. Any goroutine may use it, but only one that may block
// calls what has a Store, or says so.
type Registry struct {
	table atomic.Pointer[policy.Table]
	// behind says that something was told which the table does not have yet.
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

// recordBounds are those of clauses in records: what was accepted once stays readable, whatever
// the options say now. A call applies the options that are in force.
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

// SetFile says which policy file this server reads. What it defines no command changes from now on.
func (r *Registry) SetFile(path string) { r.file.Store(&path) }

// HasFile reports whether this server reads a policy file.
func (r *Registry) HasFile() bool { return r.file.Load() != nil }

// Defines reports whether the policy file defines e, so that no command may change it. Any goroutine
// may call it.
func (r *Registry) Defines(e *policy.Entry) bool { return e.File && r.file.Load() != nil }
