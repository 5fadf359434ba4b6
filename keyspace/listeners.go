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

// Journal is where effects go, in the order in which they happen to each key. Its
// methods are called with shards locked: they must be quick and must not use the
// keyspace.
type Journal interface {
	// Append adds a record, all effects of one command together, and returns the
	// position behind it, which is never 0. It copies what it keeps of record, and takes
	// over refs: long values that are no part of its bytes but belong between them, each
	// where its At says. Their bytes stay what they are until it has released them.
	// Nothing in the record happened later than at.
	Append(record []byte, refs []shared.Ref, at limit.Instant) (position uint64)
	// Refuses reports whether what would be appended now could not be kept. Then
	// decisions that would have an effect are limit.ErrNotKept, and nothing changes.
	Refuses() bool
}

// recorder is the record of what a handle does under the present locks.
type recorder struct {
	effect.Record
	flat []byte // scratch for the bytes of a tree
}

// Observer is told what a handle changes. The keyspace knows nothing of who reads which
// key; an observer does. Its methods are called by the goroutine that uses the handle.
type Observer interface {
	// Changed says that key has changed, in whatever database, or with expired that it
	// is gone by time. The shard of the key is locked, or was a moment ago: Changed must be
	// quick and must not use the keyspace. It may not keep key.
	Changed(key []byte, expired bool)
	// Flushed says that all keys of a database are gone. All shards are locked.
	Flushed()
	// Released says that no shard is locked any more, after one of the others.
	Unlocked()
}

// sharedObserver has an observer told by several goroutines, one at a time. What one of them
// has told may be acted upon when another one has unlocked its shards: who looks for a key
// that is locked still waits for it.
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
	told bool      // something that Released has to follow
	seen []seenKey // that have expired and are still there
}

// mostSeen is how many keys a handle remembers to have seen expired.
const mostSeen = 1024

// seenKey is a key that was looked for and had expired.
type seenKey struct {
	db   int
	hash uint64
	key  []byte
}

// changed tells the observer, if there is one.
func (o *observed) changed(key []byte, expired bool) {
	if o.by != nil {
		o.told = true
		o.by.Changed(key, expired)
	}
}

// noteExpired remembers a key that has expired. It is removed when the handle unlocks its shard,
// so that the first who looks for it makes its end known, and not the sweep.
func (o *observed) noteExpired(db int, h uint64, key []byte) {
	// A script may look for it again and again. What is beyond the bound is left to the sweep.
	if o.by != nil && len(o.seen) < mostSeen {
		o.told = true
		o.seen = append(o.seen, seenKey{db, h, bytes.Clone(key)})
	}
}

// Watcher is what WATCH remembers for one session: the keys it watches, and
// whether any of them has changed. The zero value watches nothing. Its methods are
// those of [Handle]; a watcher is used by one session at a time.
type Watcher struct {
	dirty atomic.Bool // set under the shard's lock, by whoever changes a key
	keys  []watchedKey
}

type watchedKey struct {
	name keyName
	hash uint64
	// alive says that the key existed at WATCH: then its expiry is a change.
	alive bool
}

// watchMark is a watcher in the list of a key.
type watchMark struct {
	w     *Watcher
	alive bool
}

// Waiter is somebody who waits for room under a key, behind those who came before.
// It is made with Wake set and used for one wait.
type Waiter struct {
	// Wake is called when there may be room now, or when this waiter has become the
	// first. It is called with a shard locked: it must neither block nor use the
	// keyspace. It may be called when there is no room after all.
	Wake func()

	name   keyName
	hash   uint64
	queued bool // guarded by the shard's lock
}

// queue holds the waiters of one key, the first in front.
type queue struct{ waiters []*Waiter }

// PopWaiter is somebody who waits for elements under one of several keys, behind those
// who came before. It is made with the exported fields set and used for one wait.
type PopWaiter struct {
	// Kind is List or SortedSet: keys that hold something else are none to it.
	Kind entry.Kind
	// Dest is the key that what it takes is moved to; nil if it is not moved.
	Dest []byte
	// Owner is for whoever serves it.
	Owner any
	// Ready is called when a key that it is the first for has changed and whoever did that
	// does not serve: see [Handle.Serve]. It is called with a shard locked and may only
	// start something that leads to MarkReady. Until then it is not called again for the
	// key, however often that changes.
	Ready func(db int, key string)

	places []popPlace
}

// popPlace is where a waiter stands in the queue of a key.
type popPlace struct {
	queue *popQueue
	at    *list.Element
}

// popQueue holds those who wait for elements under one key, the first in front.
type popQueue struct {
	name    keyName
	hash    uint64
	waiters list.List // of *PopWaiter
	// kind is the base kind of what the key held after its last change. Any goroutine may read it.
	kind atomic.Uint32
	// lacking is the waiter that was not served since not all of what it needs was held.
	lacking *PopWaiter
	ready   bool // is among those that the handle which holds the key has to serve
	called  bool // Ready was called and MarkReady, by which it is answered, was not
}

// wake calls the first waiter, if there is one.
func (q *popQueue) wake() {
	if e := q.waiters.Front(); e != nil {
		q.call(e.Value.(*PopWaiter))
	}
}

// call calls Ready of w, a waiter of q, unless one that was called has yet to come.
func (q *popQueue) call(w *PopWaiter) {
	if !q.called {
		q.called = true
		w.Ready(q.name.db, q.name.key)
	}
}

// mostStrange is of how many keys a waiter is told that they hold what it cannot take.
const mostStrange = 16

// strange ranges over the keys of w that hold, or held until they ended, what it cannot take: they
// are an error to it if it comes to them first. Of a key that is not locked that may change.
func (w *PopWaiter) strange(yield func(q *popQueue) bool) {
	n := 0
	for i := range w.places {
		q := w.places[i].queue
		if k := entry.Kind(q.kind.Load()); k == entry.None || k == w.Kind {
			continue
		}
		if n++; n > mostStrange || !yield(q) {
			return
		}
	}
}

// popServer is what a handle knows of those whom it is to serve.
type popServer struct {
	serving bool        // see [Handle.Serving]
	ready   []*popQueue // of keys that have changed since
}

// endServing tells those whom nobody has served, because what should have went wrong.
func (p *popServer) endServing() {
	p.serving = false
	for _, q := range p.ready {
		q.ready = false
		q.wake()
	}
	p.ready = nil
}
