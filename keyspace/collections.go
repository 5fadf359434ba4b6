package keyspace

import (
	"errors"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// Weigh returns the sizes of the value at key, from which the cost of a command can be estimated.
// For a collection that is stored as a tree, elements is its number of elements, and copied is the
// number of bytes that a reply with all of them would copy. For a string, elements is 0, and copied
// is the number of bytes that a reply with the string would copy. For all other keys, small
// collections included, and for an absent key both results are 0.
func (v *Handle) Weigh(db int, key []byte) (elements, copied int) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	switch {
	case p.e.Kind == entry.String:
		return 0, shared.Copied(len(p.e.Value))
	case isTree(p.e.Kind):
		o := s.tree(db, p.e.Value).Object
		return o.Len(), o.Copied()
	}
	return 0, 0
}

// ReadHash calls f with the hash at key, if the key exists; found reports whether it does. If the
// key holds another kind, f is not called and the error is limit.ErrWrongType. f is called with a
// shard locked: f must be quick, and must not use the keyspace, change h or keep it.
func (v *Handle) ReadHash(db int, key []byte, f func(h *collection.Hash)) (found bool, err error) {
	return read(v, db, key, entry.Hash, f)
}

// ReadSortedSet does for a sorted set what [Handle.ReadHash] does for a hash.
func (v *Handle) ReadSortedSet(db int, key []byte, f func(z *collection.SortedSet)) (found bool, err error) {
	return read(v, db, key, entry.SortedSet, f)
}

// ReadList does for a list what [Handle.ReadHash] does for a hash.
func (v *Handle) ReadList(db int, key []byte, f func(l *collection.List)) (found bool, err error) {
	return read(v, db, key, entry.List, f)
}

// ReadSet does for a set what [Handle.ReadHash] does for a hash.
func (v *Handle) ReadSet(db int, key []byte, f func(s *collection.Set)) (found bool, err error) {
	return read(v, db, key, entry.Set, f)
}

// WriteHash calls f with the hash at key, or with an empty hash if the key does not exist, and
// stores the hash as f leaves it. If the hash is empty afterwards, the key is removed. An existing
// key keeps its expiry, and a new key has none. If f changes nothing, nothing is stored or
// recorded.
//
// f is called with a shard locked: f must be quick, and must neither use the keyspace nor keep h. f
// should check everything before it changes anything: if f returns an error, WriteHash returns that
// error, and the changes that f has made may or may not be stored.
//
// The other errors are limit.ErrWrongType, without a call of f; limit.ErrNotKept, without a call of
// f, if the journal refuses effects; and limit.ErrFull, if memory is full or the hash takes 256
// MiB, and the hash would grow. A hash that has the maximum number of fields returns
// collection.ErrFull to f.
func (v *Handle) WriteHash(db int, key []byte, f func(h *collection.Hash) error) error {
	return write(v, db, key, entry.Hash, f)
}

// WriteSortedSet does for a sorted set what [Handle.WriteHash] does for a hash.
func (v *Handle) WriteSortedSet(db int, key []byte, f func(z *collection.SortedSet) error) error {
	return write(v, db, key, entry.SortedSet, f)
}

// WriteList does for a list what [Handle.WriteHash] does for a hash.
func (v *Handle) WriteList(db int, key []byte, f func(l *collection.List) error) error {
	return write(v, db, key, entry.List, f)
}

// WriteSet does for a set what [Handle.WriteHash] does for a hash.
func (v *Handle) WriteSet(db int, key []byte, f func(s *collection.Set) error) error {
	return write(v, db, key, entry.Set, f)
}

// maxTree is the memory in bytes beyond which a collection gets no further element. The bound makes
// sure that every collection fits into a record and into a snapshot.
const maxTree = 256 << 20

// read does what [Handle.ReadHash] does, for any kind of collection. C is the type of the
// collections of the given kind.
func read[C object.Object](v *Handle, db int, key []byte, kind entry.Kind, f func(C)) (found bool, err error) {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	switch {
	case p.e.Kind == entry.None:
		return false, nil
	case base(p.e.Kind) != kind:
		return false, limit.ErrWrongType
	}
	f(v.object(s, db, &p.e).(C))
	return true, nil
}

// write does what [Handle.WriteHash] does, for any kind of collection. C is the type of the
// collections of the given kind.
func write[C object.Object](v *Handle, db int, key []byte, kind entry.Kind, f func(C) error) error {
	h := v.hash(key)
	s := v.lock(h)
	defer v.unlock(s)
	var p place
	v.find(s, &p, db, h, key)
	switch {
	case p.e.Kind != entry.None && base(p.e.Kind) != kind:
		return limit.ErrWrongType
	case v.refuses():
		return limit.ErrNotKept
	}
	e := p.e
	e.Kind |= kind // a key that does not exist gets this kind
	o, most := v.object(s, db, &e), int(v.ks.most.Load())
	full := v.full() || o.Cost() >= maxTree
	if full {
		most = min(most, max(1, o.Len()))
	}
	object.Bound(o, most, full)
	err := f(o.(C))
	if full && errors.Is(err, collection.ErrFull) {
		err = limit.ErrFull
	}
	return v.keep(s, &p, key, kind, o, err)
}

// object returns the collection whose entry is e. If e is a tree, the result is the key's own
// object. Otherwise it is an object of the handle, which is loaded with e's elements and is valid
// until the next call for the same kind.
func (v *Handle) object(s *shard, db int, e *entry.Entry) object.Object {
	if isTree(e.Kind) {
		return s.tree(db, e.Value).Object
	}
	o := v.objects[e.Kind.Ordinal()]
	if o == nil {
		o = object.New(e.Kind)
		v.objects[e.Kind.Ordinal()] = o
	}
	o.Load(e.Value)
	return o
}

// keep stores o, the collection at p as a write has left it, and records the change. kind is the
// kind of o, and why is the error of the write. keep returns why, or if why is nil, limit.ErrFull
// if memory does not suffice. With an error a small collection is not stored; a tree is, since it
// was changed in place.
func (v *Handle) keep(s *shard, p *place, key []byte, kind entry.Kind, o object.Object, why error) error {
	delta := o.Delta()
	switch {
	case len(delta) == 0:
		return why
	case isTree(p.e.Kind):
		s.keepTree(p, key, kind, o, delta)
		o.ResetDelta()
		return why
	case why != nil:
		return why // the change of o is not stored
	case o.Len() == 0:
		if p.e.Kind != entry.None {
			s.remove(p, key)
		}
		return nil
	}
	flat, small := o.Flat()
	if v.full() && (p.e.Kind == entry.None || !small || len(flat) > len(p.e.Value)) {
		return limit.ErrFull
	}
	if small {
		return s.keepFlat(p, key, entry.Entry{Kind: kind, Expiry: p.e.Expiry, Value: flat}, delta)
	}
	v.objects[kind.Ordinal()] = nil // from now on o belongs to the key
	var number [object.TreeValue]byte
	e := entry.Entry{Kind: kind | treeBit, Expiry: p.e.Expiry, Value: s.addTree(number[:0], p.db, o)}
	err := s.keepFlat(p, key, e, delta)
	if err != nil {
		s.removeTree(p.db, e.Value)
	}
	o.ResetDelta()
	return err
}

// keepTree stores o, a tree that was changed in place, and records delta. An empty tree is removed
// with its key, and a tree that has become small is stored as a flat value.
func (s *shard) keepTree(p *place, key []byte, kind entry.Kind, o object.Object, delta []byte) {
	if o.Len() == 0 {
		s.remove(p, key)
		return
	}
	if s.recorder != nil {
		s.recorder.Patch(p.db, key, kind, p.e.Expiry, delta)
	}
	if flat, small := o.Flat(); small {
		s.replace(p, key, entry.Entry{Kind: kind, Expiry: p.e.Expiry, Value: flat})
		return
	}
	s.weighTree(p)
	s.notify(p.db, key)
}

// keepFlat stores e, the new entry of a collection that was absent before or stored as a flat
// value. It records delta, the change, or all of e if that takes fewer bytes. A new key has no
// expiry and is recorded with all of e; for such a key the error is limit.ErrFull if memory is full
// or the table has no room.
func (s *shard) keepFlat(p *place, key []byte, e entry.Entry, delta []byte) error {
	if p.e.Kind == entry.None {
		e.Expiry = entry.NoExpiry
		s.vacate(p, &e)
		return s.put(p, key, e)
	}
	if s.recorder != nil {
		if isTree(e.Kind) || len(delta) < len(e.Value) {
			s.recorder.Patch(p.db, key, base(e.Kind), e.Expiry, delta)
		} else {
			s.recorder.Put(p.db, key, &e)
		}
	}
	s.replace(p, key, e)
	return nil
}
