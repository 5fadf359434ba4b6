package keyspace

import (
	"fmt"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/keyspace/object"
)

// Restore stores e at key while a server loads its files. It records nothing and refuses nothing
// for lack of memory. If the expiry of e has passed, commands will not find the key. The error says
// that db, key or e is invalid, or that the table has no room. Several goroutines may call Restore
// at a time, but the calls for one key must come in the order in which the key has changed.
func (ks *Keyspace) Restore(db int, key []byte, e entry.Entry) error {
	switch {
	case !ks.HasDatabase(db):
		return ks.noDatabase(db)
	case len(key) > entry.MaxKeyLength:
		return fmt.Errorf("a key of %d bytes is too long", len(key))
	}
	if err := effect.CheckEntry(e); err != nil {
		return err
	}
	h, o := ks.hash(key), large(e.Kind, e.Value)
	s := &ks.shards[int(h>>ks.shift)]
	s.lockFree(h)
	defer s.mu.Unlock()
	var p place
	s.find(&p, db, h, key)
	s.tellSystem(db, key, e)
	if s.removes(e.Expiry) && !effect.Patchable(e.Kind) {
		s.discard(&p, key)
		return nil
	}
	return s.restore(&p, key, e, o)
}

// discard removes the entry of key at p, if there is one, even if it has expired.
func (s *shard) discard(p *place, key []byte) {
	if p.old != entry.None {
		s.remove(p, key)
	}
}

// Apply replays the effect e, which was recorded earlier, while a server loads its files. The rules
// of [Keyspace.Restore] hold.
func (ks *Keyspace) Apply(e effect.Effect) error {
	switch {
	case !ks.HasDatabase(e.DB):
		return ks.noDatabase(e.DB)
	case e.Flush:
		ks.dropAll(e.DB)
		return nil
	case len(e.Key) > entry.MaxKeyLength || e.Patch && !effect.Patchable(e.Entry.Kind):
		return fmt.Errorf("a key of %d bytes or a patch of kind %d is out of range", len(e.Key), e.Entry.Kind)
	case !e.Patch && e.Entry.Kind != entry.None:
		return ks.Restore(e.DB, e.Key, e.Entry)
	}
	h := ks.hash(e.Key)
	s := &ks.shards[int(h>>ks.shift)]
	s.lockFree(h)
	defer s.mu.Unlock()
	return s.replay(&e, h, nil)
}

// treeOf returns the value of e as a tree if e is a put of a large collection, otherwise nil.
func treeOf(e *effect.Effect) object.Object {
	if e.Patch || e.Flush {
		return nil
	}
	return large(e.Entry.Kind, e.Entry.Value)
}

// replay applies e to its key, whatever the present instant is. e has been checked and is not a
// flush. h is the hash of the key, and o is the result of treeOf.
func (s *shard) replay(e *effect.Effect, h uint64, o object.Object) error {
	var p place
	s.find(&p, e.DB, h, e.Key)
	s.tellSystem(e.DB, e.Key, e.Entry)
	switch {
	case e.Patch:
		return s.patch(&p, e)
	case e.Entry.Kind == entry.None:
		s.discard(&p, e.Key)
		return nil
	}
	return s.restore(&p, e.Key, e.Entry, o)
}

func (ks *Keyspace) noDatabase(db int) error {
	return fmt.Errorf("database %d is beyond the %d that there are, which is what the option databases says", db, ks.databases)
}

// Empty removes all keys of all databases at once, including the keys of [System]. It notifies the
// watchers and waiters of the keys and the observer of [Keyspace.ObserveSweep], but records
// nothing. It waits until no key is claimed, and locks all shards.
func (ks *Keyspace) Empty() {
	ks.claim.one.RLock() // RLock waits until no key is claimed
	for i := range ks.shards {
		ks.shards[i].lockBare()
	}
	ks.claim.one.RUnlock()
	var old []table
	for db := range ks.shards[0].dbs {
		old = ks.clear(db, old)
	}
	ks.tellSystem(System, nil, entry.Entry{})
	for i := range ks.shards {
		ks.shards[i].mu.Unlock()
	}
	for _, t := range old {
		t.Free()
	}
	if o := ks.besides(); o != nil {
		o.Flushed()
		o.Unlocked()
	}
}

func (ks *Keyspace) bareAll() {
	for i := range ks.shards {
		ks.shards[i].bare()
	}
}

// clear empties database db, appends its tables to old and returns old. All shards are locked. The
// caller frees the tables.
func (ks *Keyspace) clear(db int, old []table) []table {
	for i := range ks.shards {
		if t := ks.shards[i].clear(db); t != nil {
			old = append(old, t)
		}
	}
	return old
}

// dropAll removes all keys of database db, one shard after another, and frees the tables. It does
// not record that.
func (ks *Keyspace) dropAll(db int) {
	for i := range ks.shards {
		s := &ks.shards[i]
		s.lockBare()
		t := s.clear(db)
		s.mu.Unlock()
		if t != nil {
			t.Free()
		}
	}
}

// patch replays e, which is a patch, over the value at p. While files are loaded, the value that
// the patch belongs to may be absent or newer by now. In that case the effects that follow correct
// the result.
func (s *shard) patch(p *place, e *effect.Effect) error {
	if p.e = (entry.Entry{}); base(p.old) == e.Entry.Kind {
		_, p.e = s.dbs[e.DB].t.At(p.r) // the entry, which may have expired
	}
	if e.Entry.Kind.IsCollection() {
		return s.patchCollection(p, e)
	}
	return s.patchLimiter(p, e)
}

// patchLimiter applies e, a patch of a limiter, to the value at p. If the value is
// absent or of another kind, it has been removed or replaced since the patch was recorded; then the
// patch is only checked.
func (s *shard) patchLimiter(p *place, e *effect.Effect) (err error) {
	if p.old != e.Entry.Kind {
		return effect.Check(*e)
	}
	p.e.Expiry = e.Entry.Expiry
	if delta := e.Entry.Value; len(delta) > 0 {
		if p.e.Value, err = effect.ApplyDelta(p.old, p.e.Value, delta); err != nil {
			return fmt.Errorf("applying a delta of %d bytes: %w", len(delta), err)
		}
	}
	s.reload(p, e.Key, p.e)
	return nil
}

// patchCollection applies e, a patch, to the collection at p, or to an empty collection if there is
// none. It stores the result, or removes the key if the result is empty.
func (s *shard) patchCollection(p *place, e *effect.Effect) error {
	o, done := s.borrow(p, e.Entry.Kind)
	defer done()
	if err := o.Apply(e.Entry.Value); err != nil {
		return fmt.Errorf("applying a delta of %d bytes: %w", len(e.Entry.Value), err)
	}
	s.holes.note(p.db, e.Key, o)
	flat, small := o.Flat()
	expiry := e.Entry.Expiry
	switch {
	case o.Len() == 0 && p.old != entry.None:
		s.remove(p, e.Key)
	case o.Len() == 0:
	case small:
		return s.restoreValue(p, e.Key, entry.Entry{Kind: e.Entry.Kind, Expiry: expiry, Value: flat})
	case isTree(p.e.Kind):
		p.e.Expiry = expiry
		s.reload(p, e.Key, p.e)
		s.weighTree(p)
	default:
		return s.restoreTree(p, e.Key, entry.Entry{Kind: e.Entry.Kind, Expiry: expiry}, o)
	}
	return nil
}

// borrow returns the collection at p, of kind k, as an object. If it is a tree, o is the key's own
// object. Otherwise o comes from a pool and is loaded with the value. The caller calls done at the
// end, which returns o to the pool, unless o has become large.
func (s *shard) borrow(p *place, k entry.Kind) (o object.Object, done func()) {
	if isTree(p.e.Kind) {
		return s.tree(p.db, p.e.Value).Object, func() {}
	}
	pool := &s.objects[k.Ordinal()]
	o, ok := pool.Get().(object.Object)
	if !ok {
		o = object.New(k)
	}
	o.Load(p.e.Value)
	return o, func() {
		if _, small := o.Flat(); small {
			pool.Put(o)
		}
	}
}

// restore stores e at key, whose place is p, without recording it. e has been checked. o is the
// value of e as a tree, or nil if e is not large.
func (s *shard) restore(p *place, key []byte, e entry.Entry, o object.Object) error {
	if o != nil {
		return s.restoreTree(p, key, e, o)
	}
	return s.restoreValue(p, key, e)
}

// restoreValue does what restore does for an entry that is not large.
func (s *shard) restoreValue(p *place, key []byte, e entry.Entry) error {
	if p.old != entry.None {
		s.reload(p, key, e)
		return nil
	}
	return s.insert(p, key, e)
}

// restoreTree does what restore does for a large entry, whose value is the tree o.
func (s *shard) restoreTree(p *place, key []byte, e entry.Entry, o object.Object) error {
	if p.old != entry.None {
		s.freed(p.db, key)
		s.drop(p)
		*p = place{db: p.db, hash: p.hash}
	}
	var number [object.TreeValue]byte
	e.Kind, e.Value = e.Kind|treeBit, s.addTree(number[:0], p.db, o)
	return s.insert(p, key, e)
}

// reload stores e over the entry at p, which may have expired, without recording it. It wakes the
// first waiter in the queue of key, since the change may have made room.
func (s *shard) reload(p *place, key []byte, e entry.Entry) {
	s.setKind(p, e.Kind, e.Expiry)
	s.dbs[p.db].t.Store(p.r, e)
	s.notify(p.db, key)
	s.freed(p.db, key)
}

// Whole checks the keyspace after all files have been loaded. It returns an error if patches have
// left a list that lacks some of its values. A crash cannot cause that, so the files are damaged.
func (ks *Keyspace) Whole() error {
	ks.holes.mu.Lock()
	names := ks.holes.names
	ks.holes.names = nil
	ks.holes.mu.Unlock()
	v := ks.NewHandle()
	defer v.Close()
	for name := range names {
		whole := true
		_, err := v.ReadList(name.db, []byte(name.key), func(l *collection.List) { whole = l.Whole() })
		if err == nil && !whole { // the key may have another kind of value by now
			return fmt.Errorf("a list of database %d lacks values that no record has", name.db)
		}
	}
	return nil
}
