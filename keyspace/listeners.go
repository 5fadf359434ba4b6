package keyspace

import (
	"bytes"
	"container/list"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// Journal receives the effects of commands. The effects on one key arrive in the order in which
// they happen. The methods are called with shards locked, by several goroutines at a time: they
// must be quick and must not use the keyspace.
type Journal interface {
	// Append adds record to the journal and returns the position behind the record, which is never
	// 0. record has all effects of one command, transaction or script. Append copies what it keeps
	// of record. refs are long values that belong between the bytes of record, each at the offset
	// At. Append takes them over: their bytes do not change until the journal releases them. No
	// effect of the record happened later than at.
	Append(record []byte, refs []shared.Ref, at limit.Instant) (position uint64)
	// Refuses reports whether the journal could not keep an effect that was appended now. While it
	// returns true, commands that would change a key fail with limit.ErrNotKept and change nothing.
	Refuses() bool
}

// recorder has the record of the effects that a handle has had under its present locks.
type recorder struct {
	effect.Record
	flat []byte // scratch for the bytes of a tree
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
	by Observer // guarded by mu
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
	by   Observer  // nil if the handle has no observer
	told bool      // by was notified, or seen is not empty: the handle has to call expireSeen and Unlocked
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

// Waiter waits in the queue of a key for room in the limiter at that key. The caller makes a Waiter
// with Wake set and uses it for one wait, with [Handle.Enqueue] and [Handle.Dequeue].
type Waiter struct {
	// Wake is called when this waiter is the first in the queue and there may be room, and when it
	// becomes the first. Wake is called with a shard locked: it must neither block nor use the
	// keyspace. A call does not guarantee that there is room.
	Wake func()

	name   keyName
	hash   uint64
	queued bool // guarded by the shard's lock
}

// queue has the waiters for one key in the order of their arrival. It is never empty.
type queue struct{ waiters []*Waiter }

// PopWaiter waits in the queues of several keys until one of the keys has elements. The caller
// makes a PopWaiter with the exported fields set and uses it for one wait, with [Handle.EnqueuePop]
// and [Handle.DequeuePop].
type PopWaiter struct {
	// Kind is [entry.List] or [entry.SortedSet]: the kind of the keys from which the waiter takes
	// elements.
	Kind entry.Kind
	// Dest is the key to which the taken element is moved; nil if the element is not moved.
	Dest []byte
	// Owner is not used by the keyspace. The function that serves the waiter finds its own data
	// there: see [Handle.Serve].
	Owner any
	// Ready is called when the key has changed, this waiter is the first in the key's queue, and
	// the goroutine that changed the key does not serve waiters: see [Handle.Serve]. It is also
	// called for a waiter that could not be served because the handle did not hold all keys that
	// the waiter needs. Ready is called with a shard locked: it may only arrange for a call of
	// [Handle.MarkReady]. Until that call Ready is not called again for the key, however often the
	// key changes.
	Ready func(db int, key string)

	places []popPlace
}

// popPlace is the place of a PopWaiter in the queue of one key.
type popPlace struct {
	queue *popQueue
	at    *list.Element
}

// popQueue has the waiters for elements of one key in the order of their arrival.
type popQueue struct {
	name    keyName
	hash    uint64
	waiters list.List // of *PopWaiter
	// kind is the kind of the key, without treeBit, after the key's last change. Any goroutine may
	// read it.
	kind atomic.Uint32
	// lacking is the waiter that was not served because the handle did not hold all keys that the
	// waiter needs, or nil.
	lacking *PopWaiter
	ready   bool // the queue is in popServer.ready of the handle that holds the key
	called  bool // Ready was called, and MarkReady was not called since
}

// wake calls Ready of the first waiter, if there is a waiter: see call.
func (q *popQueue) wake() {
	if e := q.waiters.Front(); e != nil {
		q.call(e.Value.(*PopWaiter))
	}
}

// call calls Ready of w, a waiter of q, unless Ready was called for q and MarkReady was not called
// since.
func (q *popQueue) call(w *PopWaiter) {
	if !q.called {
		q.called = true
		w.Ready(q.name.db, q.name.key)
	}
}

// maxStrange is the maximum number of queues that strange yields for one waiter.
const maxStrange = 16

// strange yields the queues of those keys of w that hold another kind than w waits for, or held
// another kind until they expired. If w is served with such a key before any other, the command of
// w gets an error. The kind of a key that is not locked may change at any time.
func (w *PopWaiter) strange(yield func(q *popQueue) bool) {
	n := 0
	for i := range w.places {
		q := w.places[i].queue
		if k := entry.Kind(q.kind.Load()); k == entry.None || k == w.Kind {
			continue
		}
		if n++; n > maxStrange || !yield(q) {
			return
		}
	}
}

// popServer has the queues that a handle has to serve before it unlocks their keys.
type popServer struct {
	serving bool        // see [Handle.Serving]
	ready   []*popQueue // queues of the keys that have changed since Serving was called
}

// endServing ends the state that Serving has begun. If Serve has failed and left queues unserved,
// endServing calls Ready of their first waiters.
func (p *popServer) endServing() {
	p.serving = false
	for _, q := range p.ready {
		q.ready = false
		q.wake()
	}
	p.ready = nil
}
