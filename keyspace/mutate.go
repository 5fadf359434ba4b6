package keyspace

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/limit"
)

// The functions of this file change tables. Apart from them only [shard.reload], which stores what
// another keyspace or an earlier run has recorded, changes a table. Each function changes one key
// or one database, with the shard locked. It notifies the watchers and waiters of the key, and
// records the change for the journal. The expiry of a key is not recorded when it happens: the
// effect that stored the key has the instant of expiry.

// put stores e at key, whose place is p, and records it. For a new key put returns limit.ErrFull if
// memory is full or the table has no room; for an existing key it never fails. If e is a tree, the
// caller calls vacate first, or records the change itself: see replace.
func (s *shard) put(p *place, key []byte, e entry.Entry) error {
	if p.old == entry.None {
		return s.add(p, key, e)
	}
	if p.stale() {
		s.expired++
	}
	d := &s.dbs[p.db]
	if p.old != e.Kind || p.oldExpiry == entry.NoExpiry || e.Expiry == entry.NoExpiry {
		s.setKind(p, e.Kind, e.Expiry)
	}
	if s.recorder != nil && !e.Long() {
		s.recorder.Put(p.db, key, &e)
	}
	d.t.Store(p.r, e)
	if e.Long() {
		s.recordLong(p, key)
	}
	s.notify(p.db, key)
	return nil
}

// recordLong records the long string that is now stored for key. The record refers to the stored
// memory.
func (s *shard) recordLong(p *place, key []byte) {
	if s.recorder != nil {
		var e entry.Entry
		_, e.Kind, e.Expiry, e.Value = s.dbs[p.db].t.Find(p.hash, key)
		s.recorder.Refer(p.db, key, &e, &s.mem.Memory)
	}
}

// recordNew records e, the entry of a key that did not exist before. A tree is recorded with all
// its elements.
func (s *shard) recordNew(db int, key []byte, e *entry.Entry) {
	if !isTree(e.Kind) {
		s.recorder.Put(db, key, e)
		return
	}
	whole := s.whole(db, *e, s.recorder.flat)
	s.recorder.Put(db, key, &whole)
	if s.recorder.flat = whole.Value[:0]; cap(whole.Value) > maxScratch {
		s.recorder.flat = nil
	}
}

// recordExpiry records the new expiry of key, which is the expiry of e. For a large value it
// records an empty patch, so that the value is not recorded again.
func (s *shard) recordExpiry(db int, key []byte, e *entry.Entry) {
	if k := base(e.Kind); isTree(e.Kind) || len(e.Value) > wholeBound && effect.Patchable(k) {
		s.recorder.Patch(db, key, k, e.Expiry, nil)
		return
	}
	s.recorder.Put(db, key, e)
}

// setKind changes the counts of keys when an entry of kind k with the given expiry replaces the
// entry at p. If the replaced entry is a tree and k is another kind, setKind removes the tree.
func (s *shard) setKind(p *place, k entry.Kind, expiry limit.Instant) {
	d := &s.dbs[p.db]
	d.count.add(p.old, p.oldExpiry, -1)
	d.count.add(k, expiry, 1)
	if isTree(p.old) && p.old != k {
		s.removeTreeAt(p)
	}
}

// replace puts e over a live key without recording that. The caller has recorded the change.
func (s *shard) replace(p *place, key []byte, e entry.Entry) {
	r := s.recorder
	s.recorder = nil
	_ = s.put(p, key, e) // an error is impossible, because only a new key can be refused
	s.recorder = r
}

// vacate prepares the place p for the entry e. If e is a tree, or the entry at p is one, vacate
// removes the entry at p without a notification; p then describes an absent key. The reason is that
// a tree is added and removed together with its entry.
func (s *shard) vacate(p *place, e *entry.Entry) {
	if p.old == entry.None || !isTree(p.old) && !isTree(e.Kind) {
		return
	}
	if p.stale() {
		s.expired++
	}
	s.drop(p)
	*p = place{db: p.db, hash: p.hash}
}

// move puts e at key even if memory is full, because the memory of e was freed elsewhere or was
// checked before. It reports whether the table had room.
func (s *shard) move(p *place, key []byte, e entry.Entry) bool {
	s.vacate(p, &e)
	if p.old == entry.None {
		return s.insert(p, key, e) == nil
	}
	return s.put(p, key, e) == nil
}

// add stores e at key, which the table does not have. It returns limit.ErrFull if memory is full or
// the table has no room.
func (s *shard) add(p *place, key []byte, e entry.Entry) error {
	if s.mem.full(s.slack) {
		return limit.ErrFull
	}
	return s.insert(p, key, e)
}

// insert stores e at key, which the table does not have, even if memory is full, and records that.
// It makes the table if there is none. It returns limit.ErrFull if the table has no room.
func (s *shard) insert(p *place, key []byte, e entry.Entry) error {
	d := &s.dbs[p.db]
	if d.t == nil {
		d.t, d.count = s.newTable(&s.mem.Memory, s.tableHash), new(tally)
		t, _ := d.t.(*dense.Table) // t is nil if the table was supplied by a test
		s.seen[p.db].Store(t)
	}
	if !d.t.Insert(p.hash, key, e) {
		return limit.ErrFull
	}
	d.count.add(e.Kind, e.Expiry, 1)
	switch {
	case s.recorder == nil:
	case e.Long():
		s.recordLong(p, key)
	default:
		s.recordNew(p.db, key, &e)
	}
	s.notify(p.db, key)
	return nil
}

// setExpiry sets the expiry of a live key to at and records that. The value stays as it is.
func (s *shard) setExpiry(p *place, key []byte, at limit.Instant) {
	e := p.e
	if e.Kind == entry.Cell {
		e.Value = entry.AppendCell(s.scratch[:0], entry.CellTAT(&e), at)
	}
	e.Expiry = at
	if at < p.oldExpiry {
		s.freed(p.db, key)
	}
	s.setKind(p, e.Kind, e.Expiry)
	if s.recorder != nil && !e.Long() {
		s.recordExpiry(p.db, key, &e)
	}
	s.dbs[p.db].t.Store(p.r, e)
	if e.Long() {
		s.recordLong(p, key)
	}
	s.notify(p.db, key)
}

// remove deletes key, which is stored at p, and records that.
func (s *shard) remove(p *place, key []byte) {
	if s.recorder != nil {
		s.recorder.Remove(p.db, key)
	}
	s.notify(p.db, key)
	s.freed(p.db, key)
	s.drop(p)
}

// expire removes the expired entry of key at p. Commands have not found the key since it expired.
// So only the observer is notified, and the watchers for which the key existed at WATCH. expire
// wakes the first waiter in the key's queue. The removal is not recorded.
func (s *shard) expire(p *place, key []byte) {
	s.notifyExpired(p.db, key)
	s.freed(p.db, key)
	s.drop(p)
	s.expired++
}

// drop removes the entry at p, and its tree, from the table and the counts. It notifies nothing.
func (s *shard) drop(p *place) {
	d := &s.dbs[p.db]
	d.count.add(p.old, p.oldExpiry, -1)
	if isTree(p.old) {
		s.removeTreeAt(p)
	}
	d.t.Remove(p.r)
}

// clear empties database db, notifies the watchers and waiters of its keys, and returns its table,
// or nil if there was none. The caller frees the table's memory once the lock is released.
func (s *shard) clear(db int) table {
	d := &s.dbs[db]
	if d.t == nil {
		return nil
	}
	s.notifyFlushed(db)
	s.freedAll(db)
	s.removeTrees(db)
	old := d.t
	*d = database{}
	s.seen[db].Store(nil)
	return old
}

// notify marks the watchers of key after a write, and notifies the observer and the waiters for
// elements.
func (s *shard) notify(db int, key []byte) {
	if s.watched != nil {
		s.mark(db, key, false)
	}
	if s.by != nil && db != System {
		s.by.changed(key, false)
	}
	if s.pops.Any() {
		s.notifyPops(db, key)
	}
}

// notifyExpired marks the watchers for which key existed at WATCH, and notifies the observer.
func (s *shard) notifyExpired(db int, key []byte) {
	if s.watched != nil {
		s.mark(db, key, true)
	}
	if s.by != nil && db != System {
		s.by.changed(key, true)
	}
}

// notifyFlushed marks the watchers of the keys that a flush of db is about to remove.
func (s *shard) notifyFlushed(db int) {
	if s.watched != nil {
		s.markAll(db)
	}
}

// freed wakes the first waiter in the queue of key, because the limiter at key may have room now.
func (s *shard) freed(db int, key []byte) {
	if s.room.Any() {
		s.room.Wake(db, key)
	}
}

// freedAll wakes the first waiter of every queue in db.
func (s *shard) freedAll(db int) {
	if s.room.Any() {
		s.room.WakeAll(db)
	}
}

// putTree stores e at key with the tree o as its value. It returns limit.ErrFull if the key is new
// and memory is full, or if the table has no room.
func (s *shard) putTree(p *place, key []byte, e entry.Entry, o object.Object) error {
	if p.old == entry.None && s.mem.full(s.slack) {
		return limit.ErrFull
	}
	var number [object.TreeValue]byte
	e.Kind, e.Value = e.Kind|treeBit, s.addTree(number[:0], p.db, o)
	if !s.move(p, key, e) {
		s.removeTree(p.db, e.Value)
		return limit.ErrFull
	}
	return nil
}

// mark marks the watchers of key as dirty. If byTime is true, it marks only those for which key
// existed at WATCH.
func (s *shard) mark(db int, key []byte, byTime bool) {
	for _, m := range s.watched[keyName{db, string(key)}] {
		if m.alive || !byTime {
			m.w.dirty.Store(true)
		}
	}
}

// markAll marks the watchers of the keys of db as dirty. For a key that does not exist or has
// expired it marks only the watchers for which the key existed at WATCH.
func (s *shard) markAll(db int) {
	for name := range s.watched {
		if name.db == db {
			key := []byte(name.key)
			s.mark(db, key, s.get(db, s.hash(key), key).Kind == entry.None)
		}
	}
}

// notifyPops tells the waiters for elements of key, if there are any, that key has changed: see
// [waiting.PopQueue.Changed].
func (s *shard) notifyPops(db int, key []byte) {
	if q := s.pops.Queue(db, key); q != nil {
		q.Changed(base(s.get(db, q.Hash, key).Kind), s.server)
	}
}
