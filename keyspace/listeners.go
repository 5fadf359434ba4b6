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

// Journal receives effects, in the order in which they happen to each key. Its methods are called
// with shards locked: they must be quick and must not use the keyspace.
type Journal interface {
	// Append adds a record, which has all effects of one command, and returns the position behind
	// it, which is never 0. It copies what it keeps of record and takes over refs: long values that
	// are not among the bytes of record but belong between them, each at its At. Their bytes do not
	// change until the journal releases them. No effect in the record is later than at.
	Append(record []byte, refs []shared.Ref, at limit.Instant) (position uint64)
	// Refuses reports whether the journal could not keep an effect that was appended now. Then
	// decisions with an effect fail with limit.ErrNotKept and change nothing.
	Refuses() bool
}

// recorder has the record of a handle's effects under the present locks.
type recorder struct {
	effect.Record
	flat []byte // scratch for the bytes of a tree
}

// Observer is notified of the changes that a handle makes. The keyspace does not know which client
// reads which key; an observer does. The goroutine that uses the handle calls its methods.
type Observer interface {
	// Changed reports that key has changed, in any database of clients, or, with expired, that it
	// is gone because it has expired. The shard of the key is locked, or was a moment ago: Changed
	// must be quick, and must neither use the keyspace nor keep key.
	Changed(key []byte, expired bool)
	// Flushed reports that all keys of a database are gone. All shards are locked, or were a moment
	// ago.
	Flushed()
	// Unlocked reports, after a call of one of the others, that the handle has unlocked all shards.
	Unlocked()
}

// sharedObserver serializes the calls of several goroutines to one observer. The observer may act
// on the notification of one goroutine when another one has unlocked its shards. That is safe: a
// command that then looks up a key which is still locked waits for it.
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

// observed is what a handle remembers for its observer.
type observed struct {
	by   Observer
	told bool      // Unlocked has to be called
	seen []seenKey // expired keys that are still stored
}

// maxSeen is the maximum number of expired keys that a handle remembers.
const maxSeen = 1024

// seenKey is a key that a command has looked up and found expired.
type seenKey struct {
	db   int
	hash uint64
	key  []byte
}

// changed notifies the observer, if there is one.
func (o *observed) changed(key []byte, expired bool) {
	if o.by != nil {
		o.told = true
		o.by.Changed(key, expired)
	}
}

// noteExpired remembers an expired key that was looked up. The handle removes it before it unlocks
// the shard, so that the first lookup notifies the observer of the expiry, and not only the sweep.
func (o *observed) noteExpired(db int, h uint64, key []byte) {
	// A script may look up the key again and again. The sweep removes keys beyond the bound.
	if o.by != nil && len(o.seen) < maxSeen {
		o.told = true
		o.seen = append(o.seen, seenKey{db, h, bytes.Clone(key)})
	}
}

// Watcher is the state of WATCH for one session: the watched keys, and whether one of them has
// changed. The zero value watches nothing. Its methods are those of [Handle]; only one session at a
// time may use a watcher.
type Watcher struct {
	dirty atomic.Bool // set under the shard's lock when a watched key changes
	keys  []watchedKey
}

type watchedKey struct {
	name keyName
	hash uint64
	// alive says that the key existed at WATCH, so that its expiry is a change.
	alive bool
}

// watchMark is one watcher of a key.
type watchMark struct {
	w     *Watcher
	alive bool
}

// Waiter waits for room in the limiter at a key, behind the waiters that came before. It is made
// with Wake set and used for one wait.
type Waiter struct {
	// Wake is called when there may be room, and when this waiter becomes the first. It is called
	// with a shard locked: it must neither block nor use the keyspace. A call does not guarantee
	// that there is room.
	Wake func()

	name   keyName
	hash   uint64
	queued bool // guarded by the shard's lock
}

// queue holds the waiters of one key, the first in front.
type queue struct{ waiters []*Waiter }

// PopWaiter waits for elements under one of several keys, behind the waiters that came before. It
// is made with the exported fields set and used for one wait.
type PopWaiter struct {
	// Kind is List or SortedSet, the kind of key that the waiter takes elements from.
	Kind entry.Kind
	// Dest is the key that the taken element is moved to; nil if it is not moved.
	Dest []byte
	// Owner is for the function that serves the waiter: see [Handle.Serve].
	Owner any
	// Ready is called when a key has changed for which this waiter is the first, if the goroutine
	// that changed it does not serve waiters: see [Handle.Serve]. It is called with a shard locked
	// and may only start something that leads to MarkReady. Until then it is not called again for
	// the key, however often the key changes.
	Ready func(db int, key string)

	places []popPlace
}

// popPlace is the place of a waiter in the queue of a key.
type popPlace struct {
	queue *popQueue
	at    *list.Element
}

// popQueue has the waiters for elements under one key, the first in front.
type popQueue struct {
	name    keyName
	hash    uint64
	waiters list.List // of *PopWaiter
	// kind is the base kind of the key after its last change. Any goroutine may read it.
	kind atomic.Uint32
	// lacking is the waiter that was not served because the handle did not hold all keys it needs.
	lacking *PopWaiter
	ready   bool // is among the queues that the handle which holds the key has to serve
	called  bool // Ready was called, and MarkReady has not answered yet
}

// wake calls the first waiter, if there is one.
func (q *popQueue) wake() {
	if e := q.waiters.Front(); e != nil {
		q.call(e.Value.(*PopWaiter))
	}
}

// call calls Ready of w, a waiter of q, unless MarkReady has yet to answer an earlier call.
func (q *popQueue) call(w *PopWaiter) {
	if !q.called {
		q.called = true
		w.Ready(q.name.db, q.name.key)
	}
}

// maxStrange is the maximum number of keys that strange yields for one waiter.
const maxStrange = 16

// strange ranges over the queues of those keys of w that hold another kind than w waits for, or
// held it until they expired. Such a key is an error to w if it is the first that w is served with.
// The answer may change for a key that is not locked.
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

// popServer has the queues that a handle has to serve.
type popServer struct {
	serving bool        // see [Handle.Serving]
	ready   []*popQueue // of keys that have changed since
}

// endServing wakes the waiters that were not served because of a failure of their server.
func (p *popServer) endServing() {
	p.serving = false
	for _, q := range p.ready {
		q.ready = false
		q.wake()
	}
	p.ready = nil
}
