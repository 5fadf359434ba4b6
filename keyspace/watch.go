package keyspace

import (
	"github.com/cellserver/cellserver/entry"
)

// Watch makes w watch key from now on.
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

// Unwatch makes w watch nothing and resets its state of dirty.
func (v *Handle) Unwatch(w *Watcher) {
	for i := range w.keys {
		v.unwatchKey(w, &w.keys[i])
	}
	w.keys = nil
	w.dirty.Store(false)
}

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

// WatchedRefs appends the keys that w watches, for [Handle.Lock].
func (w *Watcher) WatchedRefs(dst []Ref) []Ref {
	for i := range w.keys {
		dst = append(dst, Ref{DB: w.keys[i].name.db, Key: []byte(w.keys[i].name.key)})
	}
	return dst
}

// Dirty reports whether a key that w watches has been written, deleted, renamed or flushed since,
// in any database, or was alive at WATCH and has expired. The caller must hold the watched keys to
// act on the answer.
func (v *Handle) Dirty(w *Watcher) bool {
	for i := range w.keys {
		k := &w.keys[i]
		if k.alive && !w.dirty.Load() && v.hasExpired(k) {
			w.dirty.Store(true)
		}
	}
	return w.dirty.Load()
}

// hasExpired reports whether a key that was alive at WATCH has expired by now. All other changes
// set dirty.
func (v *Handle) hasExpired(k *watchedKey) bool {
	s := v.lock(k.hash)
	defer v.unlock(s)
	return s.get(k.name.db, k.hash, []byte(k.name.key)).Kind == entry.None
}
