package keyspace

import (
	"github.com/cellserver/cellserver/entry"
)

// Watch makes w watch key of database db from now on, in addition to the keys that it watches
// already.
func (v *Handle) Watch(w *Watcher, db int, key []byte) {
	h := v.ks.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	if s.watched == nil {
		s.watched = make(map[keyName][]watchMark)
	}
	for _, m := range s.watched[keyName{db, string(key)}] {
		if m.w == w {
			return
		}
	}
	name := keyName{db, string(key)}
	alive := s.get(db, h, key).Kind != entry.None
	s.watched[name] = append(s.watched[name], watchMark{w, alive})
	w.keys = append(w.keys, watchedKey{name, h, alive})
}

// Unwatch makes w watch no key and forget that watched keys have changed.
func (v *Handle) Unwatch(w *Watcher) {
	for i := range w.keys {
		v.unwatchKey(w, &w.keys[i])
	}
	w.keys = nil
	w.dirty.Store(false)
}

// unwatchKey removes w from the watchers of k. It locks the shard of k, unless the handle has
// locked it.
func (v *Handle) unwatchKey(w *Watcher, k *watchedKey) {
	i := int(k.hash >> v.ks.shift)
	s := &v.ks.shards[i]
	if !v.holding || !v.held.has(i) {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	marks := s.watched[k.name]
	for j := range marks {
		if marks[j].w == w {
			marks = append(marks[:j], marks[j+1:]...)
			break
		}
	}
	if len(marks) > 0 {
		s.watched[k.name] = marks
		return
	}
	delete(s.watched, k.name)
	if len(s.watched) == 0 {
		s.watched = nil
	}
}

// WatchedRefs appends the keys that w watches to dst and returns the result, which is for
// [Handle.Lock].
func (w *Watcher) WatchedRefs(dst []Ref) []Ref {
	for i := range w.keys {
		dst = append(dst, Ref{DB: w.keys[i].name.db, Key: []byte(w.keys[i].name.key)})
	}
	return dst
}

// Dirty reports whether a key that w watches has changed since [Handle.Watch]: it was written,
// deleted, renamed or flushed, or it existed at that time and has expired. To act on the answer,
// the caller must hold the watched keys.
func (v *Handle) Dirty(w *Watcher) bool {
	for i := range w.keys {
		k := &w.keys[i]
		if k.alive && !w.dirty.Load() && v.hasExpired(k) {
			w.dirty.Store(true)
		}
	}
	return w.dirty.Load()
}

// hasExpired reports whether k, which existed at WATCH, has expired by now. The function is needed
// because an expiry sets dirty only when the key is removed. All other changes set it at once.
func (v *Handle) hasExpired(k *watchedKey) bool {
	s := v.lock(k.hash)
	defer v.unlock(s)
	return s.get(k.name.db, k.hash, []byte(k.name.key)).Kind == entry.None
}
