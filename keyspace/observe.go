package keyspace

import (
	"bytes"

	"github.com/cellserver/cellserver/keyspace/entry"
)

// Observer is told what a view changes. The keyspace knows nothing of who reads which
// key; an observer does. Its methods are called by the goroutine that uses the view.
type Observer interface {
	// Changed says that key has changed, in whatever database, or with expired that it
	// is gone by time. The shard of the key is locked: Changed must be quick and must
	// not use the keyspace. It may not keep key.
	Changed(key []byte, expired bool)
	// Flushed says that all keys of a database are gone. All shards are locked.
	Flushed()
	// Released says that no shard is locked any more, after one of the others.
	Released()
}

// observed is what a view remembers for its observer.
type observed struct {
	by   Observer
	told bool      // something that Released has to follow
	seen []seenKey // that have expired and are still there
}

// mostSeen is how many keys a view remembers to have seen expired.
const mostSeen = 1024

// seenKey is a key that was looked for and had expired.
type seenKey struct {
	db   int
	hash uint64
	key  []byte
}

// Observe makes o the observer of what this view changes, from StartObserving on.
func (v *View) Observe(o Observer) { v.observed.by = o }

// ObserveSweep is [View.Observe] for what the sweep removes.
func (ks *Keyspace) ObserveSweep(o Observer) {
	ks.sweepMu.Lock()
	defer ks.sweepMu.Unlock()
	ks.sweeper.view.Observe(o)
}

// StartObserving has all observers told of changes. A change that is not told of was
// made before any lock that is taken after StartObserving. There is no way back: who
// does not want to know any more returns at once.
func (ks *Keyspace) StartObserving() {
	if !ks.observing.Load() {
		ks.observing.Store(true)
		ks.attentive.Store(true)
	}
}

// StartObserving is [Keyspace.StartObserving].
func (v *View) StartObserving() { v.ks.StartObserving() }

// changed tells the observer, if there is one.
func (o *observed) changed(key []byte, expired bool) {
	if o.by != nil {
		o.told = true
		o.by.Changed(key, expired)
	}
}

// flushed tells the observer of a flush.
func (v *View) flushed() {
	if v.observed.by != nil && v.ks.observing.Load() {
		v.observed.told = true
		v.observed.by.Flushed()
	}
}

// saw remembers a key that has expired. It is removed when the view unlocks its shard,
// so that the first who looks for it makes its end known, and not the sweep.
func (o *observed) saw(db int, h uint64, key []byte) {
	// A script may look for it again and again. What is beyond the bound is left to the sweep.
	if o.by != nil && len(o.seen) < mostSeen {
		o.told = true
		o.seen = append(o.seen, seenKey{db, h, bytes.Clone(key)})
	}
}

// expireSeen removes what was seen to have expired, unless it lives again. Its shards
// are locked.
func (v *View) expireSeen() {
	for i := range v.observed.seen {
		k := &v.observed.seen[i]
		s := &v.ks.shards[k.hash>>v.ks.shift]
		t := s.dbs[k.db].t
		if t == nil {
			continue
		}
		var p place
		p.db, p.hash = k.db, uint32(k.hash)
		p.r, p.old, p.oldExpiry, _ = t.Find(uint32(k.hash), k.key)
		if p.old != entry.None && p.oldExpiry <= s.last && !v.ks.expiry.Load() {
			s.expire(&p, k.key)
		}
	}
	clear(v.observed.seen)
	v.observed.seen = v.observed.seen[:0]
}

// released tells the observer that nothing is locked any more.
func (v *View) released() {
	v.observed.told = false
	v.observed.by.Released()
}

// lockBare locks the shard for somebody who is no view and tells nobody.
func (s *shard) lockBare() {
	s.mu.Lock()
	s.by = nil
}
