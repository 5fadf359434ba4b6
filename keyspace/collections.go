package keyspace

import (
	"errors"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// Weigh says how many elements the collection at key has if they lie in a tree, and how
// many bytes a reply with all of it would copy. Of a string it says only the latter.
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

// ReadHash calls f with what key holds, if it exists, and returns limit.ErrWrongType
// if that is no hash. f is called with a shard locked: it must be quick, use nothing
// of the keyspace, change nothing, and keep nothing.
func (v *Handle) ReadHash(db int, key []byte, f func(h *collection.Hash)) (found bool, err error) {
	return read(v, db, key, entry.Hash, f)
}

// ReadSortedSet is [Handle.ReadHash] for a sorted set.
func (v *Handle) ReadSortedSet(db int, key []byte, f func(z *collection.SortedSet)) (found bool, err error) {
	return read(v, db, key, entry.SortedSet, f)
}

// ReadList is [Handle.ReadHash] for a list.
func (v *Handle) ReadList(db int, key []byte, f func(l *collection.List)) (found bool, err error) {
	return read(v, db, key, entry.List, f)
}

// ReadSet is [Handle.ReadHash] for a set.
func (v *Handle) ReadSet(db int, key []byte, f func(s *collection.Set)) (found bool, err error) {
	return read(v, db, key, entry.Set, f)
}

// WriteHash calls f with what key holds, an empty hash if it does not exist, and
// stores what f makes of it. An empty one is no key. The expiry of a key stays what
// it is, and a new key has none. If f changes nothing, nothing has happened.
//
// f is called with a shard locked: it must be quick, use nothing of the keyspace and
// keep nothing. It should look before it changes anything: its error is returned, and
// if it has changed something before, that may be stored or not.
//
// Other errors are limit.ErrWrongType; limit.ErrFull, when memory is full and the
// hash would grow; limit.ErrNotKept, without calling f. f itself gets
// collection.ErrFull from a hash of as many fields as there may be.
func (v *Handle) WriteHash(db int, key []byte, f func(h *collection.Hash) error) error {
	return write(v, db, key, entry.Hash, f)
}

// WriteSortedSet is [Handle.WriteHash] for a sorted set.
func (v *Handle) WriteSortedSet(db int, key []byte, f func(z *collection.SortedSet) error) error {
	return write(v, db, key, entry.SortedSet, f)
}

// WriteList is [Handle.WriteHash] for a list.
func (v *Handle) WriteList(db int, key []byte, f func(l *collection.List) error) error {
	return write(v, db, key, entry.List, f)
}

// WriteSet is [Handle.WriteHash] for a set.
func (v *Handle) WriteSet(db int, key []byte, f func(s *collection.Set) error) error {
	return write(v, db, key, entry.Set, f)
}

// maxTree is the memory from which on a collection gets no larger, so that a record or
// a snapshot always has room for it.
const maxTree = 256 << 20

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
	e.Kind |= kind // an absent key becomes one
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

// object returns e as a collection: the key's own if it is a tree, else one of the
// handle's.
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

// keep stores what a write that ended with why has made of o.
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
		return why // o is forgotten
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
	v.objects[kind.Ordinal()] = nil // it is the key's from now on
	var number [object.TreeValue]byte
	e := entry.Entry{Kind: kind | treeBit, Expiry: p.e.Expiry, Value: s.addTree(number[:0], p.db, o)}
	err := s.keepFlat(p, key, e, delta)
	if err != nil {
		s.removeTree(p.db, e.Value)
	}
	o.ResetDelta()
	return err
}

// keepTree stores a tree that was changed in place, and may have become small.
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

// keepFlat stores a collection that was a value or nothing before, and has become e
// by delta.
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
