package keyspace

import (
	"bytes"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/limit"
)

// Kind returns the kind of the value at key, or [entry.None] if the key does not exist.
func (v *Handle) Kind(db int, key []byte) entry.Kind {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	return base(p.e.Kind)
}

// Exists reports whether key exists in database db.
func (v *Handle) Exists(db int, key []byte) bool { return v.Kind(db, key) != entry.None }

// Delete removes key and reports whether it existed. Before the call the caller makes sure that the
// journal accepts effects: see [Handle.Refuses].
func (v *Handle) Delete(db int, key []byte) bool {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	if p.e.Kind == entry.None {
		return false
	}
	s.remove(&p, key)
	return true
}

// Load returns a copy of the entry at key, and whether the key exists. The value of a large
// collection is the bytes of all its elements.
func (v *Handle) Load(db int, key []byte) (entry.Entry, bool) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	s.find(&p, db, h, key)
	if isTree(p.e.Kind) {
		return s.whole(db, p.e, nil), true
	}
	p.e.Value = bytes.Clone(p.e.Value)
	return p.e, p.e.Kind != entry.None
}

// Put stores a copy of value, of kind k, at key, whatever the key held. The key expires at expiry;
// if that instant has passed, Put deletes the key. The only error is limit.ErrFull: the key is new
// and memory is full, or the table has no room. Before the call the caller makes sure that the
// journal accepts effects: see [Handle.Refuses].
func (v *Handle) Put(db int, key []byte, k entry.Kind, value []byte, expiry limit.Instant) error {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	s.find(&p, db, h, key)
	if expiry <= s.last {
		if p.e.Kind != entry.None {
			s.remove(&p, key)
		}
		return nil
	}
	if p.e.Kind != entry.None && p.e.Kind != k {
		// The first waiter for the former limiter at this key has to decide again.
		s.freed(db, key)
	}
	e := entry.Entry{Kind: k, Expiry: expiry, Value: value}
	if o := large(k, value); o != nil {
		return s.putTree(&p, key, e, o)
	}
	return s.put(&p, key, e)
}

// AppendString appends to dst what GET replies for key, and returns the result as value: the bytes
// of a string, or a cell's TAT in decimal nanoseconds. found reports whether the key exists. For
// other kinds the error is limit.ErrWrongType. A string of [shared.Least] bytes or more is not
// appended: value is then the stored memory itself, held by [shared.Hold]. The caller must not
// change that memory. It must release the Ref that [shared.Held] returns for value and
// [Keyspace.Ledger].
func (v *Handle) AppendString(dst []byte, db int, key []byte) (value []byte, found bool, err error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	return v.reference(dst, &p.e)
}

// Rename moves the value and the expiry of a key to another name. from is the old name, and to is
// the new name. If a key with the new name exists, Rename overwrites it, or does nothing if nx is
// true. found reports whether a key with the old name existed, and renamed whether it was renamed.
// If the names are equal, nothing is changed and renamed is !nx. If the table has no room, the
// value is lost and renamed is false. Before the call the caller makes sure that the journal
// accepts effects: see [Handle.Refuses].
func (v *Handle) Rename(db int, from, to []byte, nx bool) (renamed, found bool) {
	hf, ht := v.ks.hash(from), v.ks.hash(to)
	var set shardSet
	set.add(int(hf >> v.ks.shift))
	set.add(int(ht >> v.ks.shift))
	defer v.unlockHere(v.lockHere(&set, func(c *claim) bool { return c.has(hf) || c.has(ht) }))

	src := v.lock(hf)
	var p, target place
	src.find(&p, db, hf, from)
	if p.e.Kind == entry.None {
		return false, false
	}
	dst := v.lock(ht)
	if bytes.Equal(from, to) {
		return !nx, true
	}
	dst.find(&target, db, ht, to)
	if nx && target.e.Kind != entry.None {
		return false, true
	}
	e := p.e
	e.Value = bytes.Clone(e.Value)
	var o object.Object
	if isTree(e.Kind) {
		t := src.tree(db, e.Value)
		o, t.Object = t.Object, nil // the tree is moved, so removing from must not drop it
	}
	src.remove(&p, from)
	if o != nil {
		e.Value = dst.addTree(e.Value[:0], db, o)
	}
	// Find the place of to again: removing from may have moved its entry.
	target = place{}
	dst.find(&target, db, ht, to)
	dst.freed(db, to)
	return dst.move(&target, to, e), true
}

// Flush deletes all keys of database db at one instant. It locks all shards while it does so.
// Before the call the caller makes sure that the journal accepts effects: see [Handle.Refuses].
func (v *Handle) Flush(db int) { v.flush(db, db+1) }

// FlushAll deletes all keys of all databases for clients at one instant, but not the keys of
// [System]. It locks all shards while it does so. Before the call the caller makes sure that the
// journal accepts effects: see [Handle.Refuses].
func (v *Handle) FlushAll() { v.flush(0, v.ks.Databases()) }

// flush deletes all keys of the databases from, ..., to-1. It detaches their tables while all
// shards are locked, which is quick for tables of any size, and frees the memory of the tables
// afterwards.
func (v *Handle) flush(from, to int) {
	for _, t := range v.detach(from, to) {
		t.Free()
	}
}

// detach locks all shards, empties the databases from, ..., to-1, records that, and returns the
// detached tables.
func (v *Handle) detach(from, to int) (tables []table) {
	var all shardSet
	for i := range v.ks.shards {
		all.add(i)
	}
	defer v.unlockHere(v.lockHere(&all, anyKey))
	if v.ks.journal.Load() != nil {
		for db := from; db < to; db++ {
			v.recorder.Flush(db)
		}
	}
	for i := range v.ks.shards {
		s := v.lockAt(i)
		for db := from; db < to; db++ {
			if t := s.clear(db); t != nil {
				tables = append(tables, t)
			}
		}
	}
	v.flushed()
	return tables
}

// Expiry returns at, the instant at which key expires. exists reports whether the key exists, and
// has whether it has an expiry. If has is false, at is 0.
func (v *Handle) Expiry(db int, key []byte) (at limit.Instant, has, exists bool) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	e := s.get(db, h, key)
	if e.Kind == entry.None {
		return 0, false, false
	}
	if e.Expiry == entry.NoExpiry {
		return 0, false, true
	}
	return e.Expiry, true, true
}

// Expire sets the expiry of key to at, or deletes the key if at has passed, if the key exists and
// cond allows it: see [decide.Reschedule]. It reports whether the key was changed or deleted.
// Before the call the caller makes sure that the journal accepts effects: see [Handle.Refuses].
func (v *Handle) Expire(db int, key []byte, at limit.Instant, cond decide.ExpireCondition) bool {
	return v.reschedule(db, key, func(e *entry.Entry) (limit.Instant, decide.Action) {
		return decide.Reschedule(e, v.now, at, cond)
	})
}

// Persist removes the expiry of key, so that the key stays until it is deleted, and reports whether
// the key had an expiry. Before the call the caller makes sure that the journal accepts effects:
// see [Handle.Refuses].
func (v *Handle) Persist(db int, key []byte) bool { return v.reschedule(db, key, decide.Forever) }

// reschedule calls decided with the entry of key and carries out the action that decided returns:
// it removes the key, or sets its expiry to the returned instant. It reports whether the key was
// changed.
func (v *Handle) reschedule(db int, key []byte, decided func(*entry.Entry) (limit.Instant, decide.Action)) bool {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	s.find(&p, db, h, key)
	at, action := decided(&p.e)
	switch action {
	case decide.Remove:
		s.remove(&p, key)
	case decide.Store:
		s.setExpiry(&p, key, at)
	}
	return action != decide.Keep
}
