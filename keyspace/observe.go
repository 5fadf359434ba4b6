package keyspace

import (
	"github.com/cellserver/cellserver/entry"
)

// Observe makes o the observer of what this handle changes, from StartObserving on.
func (v *Handle) Observe(o Observer) { v.observed.by = o }

// ObserveSweep is [Handle.Observe] for what no handle of a caller changes: what the sweep
// removes, and what [Keyspace.ApplyRecord] and [Keyspace.Empty] change. These tell of a key
// when it is locked no more. The observer is told by one goroutine at a time.
func (ks *Keyspace) ObserveSweep(o Observer) {
	shared := &sharedObserver{by: o}
	ks.observer.Store(shared)
	ks.sweepMu.Lock()
	defer ks.sweepMu.Unlock()
	ks.sweeper.handle.Observe(shared)
}

// besides returns the observer of what no handle of a caller changes, or nil.
func (ks *Keyspace) besides() *sharedObserver {
	if !ks.observing.Load() {
		return nil
	}
	return ks.observer.Load()
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
func (v *Handle) StartObserving() { v.ks.StartObserving() }

// flushed tells the observer of a flush.
func (v *Handle) flushed() {
	if v.observed.by != nil && v.ks.observing.Load() {
		v.observed.told = true
		v.observed.by.Flushed()
	}
}

// expireSeen removes what was seen to have expired, unless it lives again. Its shards
// are locked.
func (v *Handle) expireSeen() {
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
		if p.old != entry.None && s.removes(p.oldExpiry) && !v.ks.expiry.Load() {
			s.expire(&p, k.key)
		}
	}
	clear(v.observed.seen)
	v.observed.seen = v.observed.seen[:0]
}

// unlocked tells the observer that nothing is locked any more.
func (v *Handle) unlocked() {
	v.observed.told = false
	v.observed.by.Unlocked()
}
