package keyspace

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/limit"
)

// This file is the only one that changes tables. Each function has one effect on one key (or on a
// database), runs under the lock of the shard, and notifies the watchers and waiters of the key and
// the journal. Expiry is not recorded: an effect carries the expiry of its key.

// put stores e at key. Only a new key can be refused, with limit.ErrFull. A tree may only be put
// where the table has no entry; see vacate.
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

// recordLong records the long string that is now stored at p.
func (s *shard) recordLong(p *place, key []byte) {
	if s.recorder != nil {
		var e entry.Entry
		_, e.Kind, e.Expiry, e.Value = s.dbs[p.db].t.Find(p.hash, key)
		s.recorder.Refer(p.db, key, &e, &s.mem.Memory)
	}
}

// recordNew records the entry of a key that did not exist before.
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

// recordExpiry records the new expiry of e.
func (s *shard) recordExpiry(db int, key []byte, e *entry.Entry) {
	if k := base(e.Kind); isTree(e.Kind) || len(e.Value) > wholeBound && effect.Patchable(k) {
		s.recorder.Patch(db, key, k, e.Expiry, nil)
		return
	}
	s.recorder.Put(db, key, e)
}

// setKind counts an entry of kind k in place of the entry at p, and removes the tree of that.
func (s *shard) setKind(p *place, k entry.Kind, expiry limit.Instant) {
	d := &s.dbs[p.db]
	d.count.add(p.old, p.oldExpiry, -1)
	d.count.add(k, expiry, 1)
	if isTree(p.old) && p.old != k {
		s.removeTreeAt(p)
	}
}

// replace is put over a live key for a change that was recorded already.
func (s *shard) replace(p *place, key []byte, e entry.Entry) {
	r := s.recorder
	s.recorder = nil
	_ = s.put(p, key, e) // only a new key can be refused
	s.recorder = r
}

// vacate removes the entry at p if it or e is a tree: a tree is added and removed together with its
// entry.
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

// move is put for an entry that was removed elsewhere, so it is not refused when memory is full. It
// reports whether the table had room.
func (s *shard) move(p *place, key []byte, e entry.Entry) bool {
	s.vacate(p, &e)
	if p.old == entry.None {
		return s.insert(p, key, e) == nil
	}
	return s.put(p, key, e) == nil
}

// add is put for a key that the table does not have.
func (s *shard) add(p *place, key []byte, e entry.Entry) error {
	if s.mem.full(s.slack) {
		return limit.ErrFull
	}
	return s.insert(p, key, e)
}

func (s *shard) insert(p *place, key []byte, e entry.Entry) error {
	d := &s.dbs[p.db]
	if d.t == nil {
		d.t, d.count = s.newTable(&s.mem.Memory, s.tableHash), new(tally)
		t, _ := d.t.(*dense.Table) // nil for a table of tests
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

// setExpiry changes the expiry of a live key, and nothing else.
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

// remove deletes a live key.
func (s *shard) remove(p *place, key []byte) {
	if s.recorder != nil {
		s.recorder.Remove(p.db, key)
	}
	s.notify(p.db, key)
	s.freed(p.db, key)
	s.drop(p)
}

// expire removes an expired entry. Commands have not seen it since it expired: it is a change only
// for the observer and for watchers that saw it alive.
func (s *shard) expire(p *place, key []byte) {
	s.notifyExpired(p.db, key)
	s.freed(p.db, key)
	s.drop(p)
	s.expired++
}

func (s *shard) drop(p *place) {
	d := &s.dbs[p.db]
	d.count.add(p.old, p.oldExpiry, -1)
	if isTree(p.old) {
		s.removeTreeAt(p)
	}
	d.t.Remove(p.r)
}

// clear empties a database and returns its table, or nil. The caller frees the table's memory once
// the lock is released.
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
	if s.pops != nil {
		s.notifyPops(db, key)
	}
}

// notifyExpired marks the watchers that saw key alive, and notifies the observer.
func (s *shard) notifyExpired(db int, key []byte) {
	if s.watched != nil {
		s.mark(db, key, true)
	}
	if s.by != nil && db != System {
		s.by.changed(key, true)
	}
}

// notifyFlushed marks the watchers of keys that a flush of db removes.
func (s *shard) notifyFlushed(db int) {
	if s.watched != nil {
		s.markAll(db)
	}
}

// freed wakes the first waiter in the queue for key, since there may be room now.
func (s *shard) freed(db int, key []byte) {
	if s.queues != nil {
		s.wakeHead(db, key)
	}
}

// freedAll wakes the first waiter of every queue in db.
func (s *shard) freedAll(db int) {
	if s.queues != nil {
		s.wakeHeads(db)
	}
}

// putTree is put for e with the tree o as its value.
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

// mark sets dirty for the watchers of key; with byTime only for those that saw it alive.
func (s *shard) mark(db int, key []byte, byTime bool) {
	for _, m := range s.watched[keyName{db, string(key)}] {
		if m.alive || !byTime {
			m.w.dirty.Store(true)
		}
	}
}

// markAll sets dirty for the watchers of the live keys of db, and for the watchers that saw an
// expired key of db alive.
func (s *shard) markAll(db int) {
	for name := range s.watched {
		if name.db == db {
			key := []byte(name.key)
			s.mark(db, key, s.get(db, s.hash(key), key).Kind == entry.None)
		}
	}
}

func (s *shard) wakeHead(db int, key []byte) {
	if q := s.queues[keyName{db, string(key)}]; q != nil {
		q.waiters[0].Wake()
	}
}

func (s *shard) wakeHeads(db int) {
	for name, q := range s.queues {
		if name.db == db {
			q.waiters[0].Wake()
		}
	}
}

// notifyPops notes that key has changed, for the waiters for its elements.
func (s *shard) notifyPops(db int, key []byte) {
	q := s.pops[keyName{db, string(key)}]
	if q == nil {
		return
	}
	kind := base(s.get(db, q.hash, key).Kind)
	q.kind.Store(uint32(kind))
	switch {
	case q.ready:
	case s.server != nil && s.server.serving:
		q.ready = true
		s.server.ready = append(s.server.ready, q)
	case kind == entry.List || kind == entry.SortedSet: // no waiter takes elements of other kinds
		q.wake()
	}
}
