package keyspace

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// Journal receives the effects of commands. The effects on one key arrive in the order in which
// they happen. The methods are called with shards locked, by several goroutines at a time: they
// must be quick and must not use the keyspace.
type Journal interface {
	// Append adds record to the journal and returns the position after the record, which is never
	// 0. record has all effects of one command, transaction or script. Append copies what it keeps
	// of record. refs are long values that belong between the bytes of record, each at the offset
	// At. Append takes them over: their bytes do not change until the journal releases them. No
	// effect of the record happened later than at.
	Append(record []byte, refs []shared.Ref, at limit.Instant) (position uint64)
	// Refuses reports whether the journal could not keep an effect that was appended now. While it
	// returns true, commands that would change a key fail with limit.ErrNotKept and change nothing.
	Refuses() bool
}

// recorder has the record of the effects under the present locks of a handle.
type recorder struct {
	effect.Record
	flat []byte // buffer for the bytes of a tree
}

// Observer is notified of the changes that a handle makes, for client-side caching: the keyspace
// does not know which client has read which key. The goroutine that uses the handle calls the
// methods.
type Observer interface {
	// Changed is called when key was changed, in any of the databases for clients. If expired is
	// true, the key is gone because it has expired. The shard of the key is locked, or was a moment
	// ago: Changed must be quick, and must neither use the keyspace nor keep key.
	Changed(key []byte, expired bool)
	// Flushed is called when all keys of a database, or of all databases, were removed. All shards
	// are locked, or were a moment ago: Flushed must be quick and must not use the keyspace.
	Flushed()
	// Unlocked is called after Changed or Flushed, once the handle has unlocked all shards.
	Unlocked()
}

// sharedObserver is an [Observer] that several goroutines may call. It passes their calls to
// another observer, one at a time. That observer may act on the notification of one goroutine when
// another goroutine has unlocked its shards. This is safe: a command that then looks up a key which
// is still locked waits for the lock.
type sharedObserver struct {
	mu sync.Mutex
	by Observer // the observer that gets the calls; guarded by mu
}

// Changed implements [Observer].
func (o *sharedObserver) Changed(key []byte, expired bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.by.Changed(key, expired)
}

// Flushed implements [Observer].
func (o *sharedObserver) Flushed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.by.Flushed()
}

// Unlocked implements [Observer].
func (o *sharedObserver) Unlocked() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.by.Unlocked()
}

// observed has the observer of a handle, and what the handle has yet to do for it.
type observed struct {
	by   Observer  // the observer; nil if the handle has none
	told bool      // by was notified, or seen is not empty, so expireSeen and Unlocked have to be called
	seen []seenKey // expired keys that commands have looked up and that are still stored
}

// maxSeen is the maximum number of expired keys in observed.seen.
const maxSeen = 1024

// seenKey is a key that a command has looked up and found expired.
type seenKey struct {
	db   int
	hash uint64
	key  []byte
}

// changed notifies the observer, if there is one, of a change of key: see [Observer].
func (o *observed) changed(key []byte, expired bool) {
	if o.by != nil {
		o.told = true
		o.by.Changed(key, expired)
	}
}

// noteExpired remembers an expired key that was looked up, if there is an observer and fewer than
// maxSeen keys are remembered. The handle removes the key before it unlocks the shard, so that
// already the first lookup notifies the observer of the expiry, and not only the sweep.
func (o *observed) noteExpired(db int, h uint64, key []byte) {
	// A script may look up the same key again and again. The sweep removes the keys beyond the
	// bound.
	if o.by != nil && len(o.seen) < maxSeen {
		o.told = true
		o.seen = append(o.seen, seenKey{db, h, bytes.Clone(key)})
	}
}

// Watcher has the state of WATCH for one session: the watched keys, and whether one of them has
// changed. The zero value watches nothing. [Handle.Watch], [Handle.Unwatch] and [Handle.Dirty] use
// it. Only one session at a time may use a watcher.
type Watcher struct {
	dirty atomic.Bool // a watched key has changed; set while the shard is locked
	keys  []watchedKey
}

type watchedKey struct {
	name keyName
	hash uint64
	// alive is true if the key existed at WATCH, so that its expiry counts as a change.
	alive bool
}

// watchMark is one watcher in the list of the watchers of a key. alive is true if the key existed
// when w began to watch it.
type watchMark struct {
	w     *Watcher
	alive bool
}
