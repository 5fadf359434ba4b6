package keyspace

import (
	"github.com/cellserver/cellserver/entry"
)

// Observe makes o the observer of this handle's changes, from StartObserving on.
func (v *Handle) Observe(o Observer) { v.observed.by = o }

// ObserveSweep sets the observer of changes that no handle of a caller makes: those of the sweep,
// of [Keyspace.ApplyRecord] and of [Keyspace.Empty]. The latter two notify it after they have
// unlocked the key. Only one goroutine at a time calls the observer.
func (ks *Keyspace) ObserveSweep(o Observer) {
	shared := &sharedObserver{by: o}
	ks.observer.Store(shared)
	ks.sweepMu.Lock()
	defer ks.sweepMu.Unlock()
	ks.sweeper.handle.Observe(shared)
}

// besides returns the observer of ObserveSweep, or nil while observers are not notified.
func (ks *Keyspace) besides() *sharedObserver {
	if !ks.observing.Load() {
		return nil
	}
	return ks.observer.Load()
}

// StartObserving makes all observers be notified of changes. Every change under a lock that is
// taken after StartObserving is reported. It cannot be undone: the methods of an observer that is
// no longer interested should return at once.
func (ks *Keyspace) StartObserving() {
	if !ks.observing.Load() {
		ks.observing.Store(true)
		ks.attentive.Store(true)
	}
}

// StartObserving is [Keyspace.StartObserving].
func (v *Handle) StartObserving() { v.ks.StartObserving() }

// flushed notifies the observer of a flush.
func (v *Handle) flushed() {
	if v.observed.by != nil && v.ks.observing.Load() {
		v.observed.told = true
		v.observed.by.Flushed()
	}
}

// expireSeen removes the keys that noteExpired has remembered, unless they exist again. Their
// shards are locked.
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

// unlocked notifies the observer that nothing is locked any more.
func (v *Handle) unlocked() {
	v.observed.told = false
	v.observed.by.Unlocked()
}
