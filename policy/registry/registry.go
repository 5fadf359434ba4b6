package registry

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
)

// Database is the number of the database that contains the records.
const Database = entry.SystemDatabase

// Store is the registry's view of the keyspace. Only one goroutine at a time uses a Store. This
// goroutine holds no lock of a key.
type Store interface {
	// Refresh reads the clock and returns the present instant. Before that, it reads the changes of other servers and
	// has the Registry observe them. The error comes from reading them.
	Refresh() (limit.Instant, error)
	// Civil converts an instant of the store into the civil instant; FromCivil is the inverse.
	Civil(limit.Instant) limit.Instant
	FromCivil(limit.Instant) limit.Instant
	// SetStrings sets keys to strings without an expiry, all at one instant. pairs has the keys and
	// the values alternately, beginning with a key. With an error nothing is changed, unless the
	// text of the error says that this is not known. The error [ErrStale] makes [Registry.Update]
	// start again.
	SetStrings(pairs [][]byte, need Need) error
	// Delete removes keys. After an error it has removed none, and the Registry calls it again
	// later.
	Delete(keys ...[]byte) error
	// Removes reports whether SetStrings removes a key that it sets to an empty value. If not,
	// Delete has to follow.
	Removes() bool
}

// Need says what happens to a change when memory is full.
type Need uint8

// These are the needs, ordered from the least.
const (
	Spare  Need = iota // the change fails
	Urgent             // the change does not fail, up to a bound
	Frees              // the change never fails for lack of memory
)

// Options are the options of a [Registry].
type Options struct {
	// Failed, if not nil, is called once, for the first record of an entry that cannot be read. It
	// must not call a method of the Registry that waits for a change in progress.
	Failed func(err error)
	// Missing, if not nil, is called once for each time zone that a record names and this program's tzdata does not
	// have, with the name of one policy that uses the zone. Like Failed, it must not call a method that waits for a
	// change in progress.
	Missing func(zone, policy string)
	// Shared says that the records are in a store which other servers change, too. Then the entries
	// of the policy file are not records: see [Registry.Overlay].
	Shared bool
	// Rules says that there may be rules of files: see [Registry.SetRules].
	Rules bool
	// Unfit, if not nil, is called when [Registry.Unfit] becomes more than 0, with that number. It
	// must not wait, nor call a method of the Registry that waits for a change in progress.
	Unfit func(n int)
	// Readable, if not nil, returns an error if another server with the same records cannot read entries of the given
	// level: see [policy.Entry.Level]. A change of such entries gets that error.
	Readable func(level int) error
}

// Registry holds the policies of a server. Any goroutine may call the methods. Methods with a
// Store, and those that wait for a change in progress, are only for goroutines that may block.
type Registry struct {
	published atomic.Pointer[published]
	// behind is true if records have arrived which the table does not contain yet.
	behind atomic.Bool
	bytes  atomic.Int64           // approximate memory of all records: see Bytes
	file   atomic.Pointer[string] // path of the policy file; nil if there is none
	shared bool                   // Options.Shared: other servers change the records, too
	failed func(err error)
	// readable is Options.Readable, or nil.
	readable func(level int) error
	// absent is Options.Missing, or nil.
	absent func(zone, policy string)
	unfit  atomic.Int64 // number of records with an unsuitable pattern: see Unfit
	// tellUnfit is Options.Unfit, or nil.
	tellUnfit func(n int)
	// urgent is the number of urgent changes that wait or are in progress. Other changes give way
	// to them.
	urgent atomic.Int32

	mu         sync.Mutex
	calm       *sync.Cond                       // signals, with mu, that no urgent change is left
	patient    bool                             // whether the change in progress gives way to urgent ones; guarded by mu
	builder    *policy.Builder                  // the entries from which the next table is made; guarded by mu
	overlay    *overlay                         // the entries of files; nil without Options.Shared and Options.Rules; guarded by mu
	files      ruleFiles                        // the rules that SetRules and SetLimits have set; guarded by mu
	history    history                          // the latest changes; guarded by mu
	fault      error                            // the error of the first record of an entry that could not be read; guarded by mu
	unreadable unreadable                       // the records that cannot be read; guarded by mu
	unread     atomic.Pointer[map[string]error] // an error for each policy with such records: see UnreadablePolicy; nil for none
	missing    map[string]bool                  // the zones with which absent was called; guarded by mu

	told told
}

// recordBounds has the bounds of clauses in records. They are the largest possible, so that an
// accepted entry stays readable whatever the present options are. Calls apply the present options. A
// program with a later release of tzdata may have written a record, so it may have any time zone.
var recordBounds = policy.Bounds{LogMaxEntries: math.MaxInt64, MaxMembers: math.MaxInt64, AnyZone: true}

// New returns a registry without policies.
func New(o Options) *Registry {
	r := &Registry{failed: o.Failed, absent: o.Missing, readable: o.Readable, tellUnfit: o.Unfit, missing: map[string]bool{}, shared: o.Shared}
	r.calm = sync.NewCond(&r.mu)
	if o.Shared || o.Rules {
		r.overlay = &overlay{file: map[name]*policy.Entry{}}
	}
	r.begin()
	r.history.reset()
	r.published.Store(&published{table: r.builder.Table()})
	return r
}

// publish puts the entries of the builder in force. The caller holds mu.
func (r *Registry) publish() {
	r.bytes.Store(r.builder.Bytes() + r.overlay.bytes() + r.history.bytes + r.files.bytes())
	r.publishUnreadable()
	r.published.Store(&published{r.builder.Table(), r.files})
	r.countUnfit()
}

// Bytes returns the approximate memory in bytes of the table and the history, without the records.
// It returns 0 if r is nil.
func (r *Registry) Bytes() int64 {
	if r == nil {
		return 0
	}
	return r.bytes.Load()
}

// SetFile sets the path of this server's policy file. From now on commands cannot change the
// entries that the file defines.
func (r *Registry) SetFile(path string) { r.file.Store(&path) }

// HasFile reports whether this server reads a policy file.
func (r *Registry) HasFile() bool { return r.file.Load() != nil }

// Defines reports whether the policy file defines e, so that no command may change e.
func (r *Registry) Defines(e *policy.Entry) bool {
	return e.File && r.file.Load() != nil && r.ruled(e) == ""
}
