package keyspace

import (
	"github.com/cellserver/cellserver/entry"
)

// Observe makes o the observer of this handle's changes. o is notified of changes after
// [Handle.StartObserving].
func (v *Handle) Observe(o Observer) { v.observed.by = o }

// ObserveSweep makes o the observer of the changes that no handle of a caller makes: the changes of
// [Keyspace.Sweep], [Keyspace.ApplyRecord] and [Keyspace.Empty]. ApplyRecord and Empty notify o
// after they have unlocked the keys. Only one goroutine at a time calls the methods of o.
func (ks *Keyspace) ObserveSweep(o Observer) {
	shared := &sharedObserver{by: o}
	ks.observer.Store(shared)
	ks.sweepMu.Lock()
	defer ks.sweepMu.Unlock()
	ks.sweeper.handle.Observe(shared)
}

// besides returns the observer that ObserveSweep has set. It returns nil if there is none, or if
// observers are not yet notified.
func (ks *Keyspace) besides() *sharedObserver {
	if !ks.observing.Load() {
		return nil
	}
	return ks.observer.Load()
}

// StartObserving begins the notification of all observers. They are notified of every change under
// a lock that is taken after the call. StartObserving cannot be undone: the methods of an observer
// that is no longer interested should return at once.
func (ks *Keyspace) StartObserving() {
	if !ks.observing.Load() {
		ks.observing.Store(true)
		ks.attentive.Store(true)
	}
}

// StartObserving calls [Keyspace.StartObserving] of the handle's keyspace.
func (v *Handle) StartObserving() { v.ks.StartObserving() }

// flushed notifies the handle's observer, if there is one, that a database was flushed.
func (v *Handle) flushed() {
	if v.observed.by != nil && v.ks.observing.Load() {
		v.observed.told = true
		v.observed.by.Flushed()
	}
}

// expireSeen removes the expired keys that noteExpired has remembered, and forgets them. A key
// stays if it exists again, or if expired keys must not be removed now. The shards of the keys are
// locked.
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

// unlocked notifies the observer that the handle has unlocked all shards.
func (v *Handle) unlocked() {
	v.observed.told = false
	v.observed.by.Unlocked()
}
