package keyspace

import (
	"fmt"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
)

// Restore makes key hold e as it was stored earlier, for loading: e is checked,
// nothing is recorded or refused for want of memory, and an expiry that has passed
// leaves nothing that could be seen. It may be called from several goroutines; the order of calls for
// one key is the order of truth.
func (ks *Keyspace) Restore(db int, key []byte, e entry.Entry) error {
	switch {
	case db >= ks.Databases():
		return ks.noDatabase(db)
	case len(key) > entry.MaxKeyLength:
		return fmt.Errorf("a key of %d bytes is too long", len(key))
	}
	if err := effect.CheckEntry(e); err != nil {
		return err
	}
	h := ks.hash(key)
	s := &ks.shards[int(h>>ks.shift)]
	s.lockBare()
	defer s.mu.Unlock()
	var p place
	s.find(&p, db, h, key)
	switch {
	case e.Expiry <= s.last && !effect.Patchable(e.Kind):
		if p.old != entry.None {
			s.drop(&p)
		}
	default:
		return s.restore(&p, key, e)
	}
	return nil
}

// Apply replays an effect that was recorded earlier, as [Keyspace.Restore].
func (ks *Keyspace) Apply(e effect.Effect) error {
	switch {
	case e.DB >= ks.Databases():
		return ks.noDatabase(e.DB)
	case e.Flush:
		ks.dropAll(e.DB)
		return nil
	case e.Patch:
		return ks.patch(&e)
	case e.Entry.Kind == entry.None:
		// Nothing expires at the first instant, so this only deletes.
		e.Entry = entry.Entry{Kind: entry.String, Expiry: limit.MinInstant}
	}
	return ks.Restore(e.DB, e.Key, e.Entry)
}

// noDatabase is the error for something of a database that there is not.
func (ks *Keyspace) noDatabase(db int) error {
	return fmt.Errorf("database %d is beyond the %d that there are, which is what the option databases says", db, ks.Databases())
}

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

// patch replays a patch. What it belongs to may be absent or newer by now: then what
// the patch leaves is made right by effects that follow.
func (ks *Keyspace) patch(e *effect.Effect) error {
	if e.DB >= ks.Databases() || len(e.Key) > entry.MaxKeyLength || !effect.Patchable(e.Entry.Kind) {
		return fmt.Errorf("database %d, a key of %d bytes or kind %d is out of range", e.DB, len(e.Key), e.Entry.Kind)
	}
	h := ks.hash(e.Key)
	s := &ks.shards[int(h>>ks.shift)]
	s.lockBare()
	defer s.mu.Unlock()
	var p place
	s.find(&p, e.DB, h, e.Key)
	if p.e = (entry.Entry{}); base(p.old) == e.Entry.Kind {
		_, p.e = s.dbs[e.DB].t.At(p.r) // alive or not
	}
	if e.Entry.Kind.IsCollection() {
		return s.patchCollection(&p, e)
	}
	return s.patchLimiter(&p, e)
}

// patchLimiter patches a window or a lease set. One that is absent, or of another
// kind, has been removed or made anew since.
func (s *shard) patchLimiter(p *place, e *effect.Effect) (err error) {
	if p.old != e.Entry.Kind {
		return nil
	}
	p.e.Expiry = e.Entry.Expiry
	if delta := e.Entry.Value; len(delta) > 0 {
		if p.e.Value, err = applyDelta(p.old, p.e.Value, delta); err != nil {
			return fmt.Errorf("applying a delta of %d bytes: %w", len(delta), err)
		}
	}
	s.reload(p, p.e)
	return nil
}

func applyDelta(k entry.Kind, value, delta []byte) ([]byte, error) {
	if k.IsWindow() {
		return slidingwindow.ApplyDelta(k.WindowMode(), value, nil, delta)
	}
	return concurrency.ApplyDelta(k.LeaseMode(), value, nil, delta)
}

// patchCollection patches a collection, an empty one if there is none.
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
		s.drop(p)
	case o.Len() == 0:
	case small:
		return s.restoreValue(p, e.Key, entry.Entry{Kind: e.Entry.Kind, Expiry: expiry, Value: flat})
	case isTree(p.e.Kind):
		p.e.Expiry = expiry
		s.reload(p, p.e)
		s.weighTree(p)
	default:
		return s.restoreTree(p, e.Key, entry.Entry{Kind: e.Entry.Kind, Expiry: expiry}, o)
	}
	return nil
}

// borrow returns what p holds as a collection: the key's own if it is a tree, else
// one that is given back by done.
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

// restore makes e, which is checked, what is at p, without recording it.
func (s *shard) restore(p *place, key []byte, e entry.Entry) error {
	if o := large(e.Kind, e.Value); o != nil {
		return s.restoreTree(p, key, e, o)
	}
	return s.restoreValue(p, key, e)
}

// restoreValue is restore for what is no large collection.
func (s *shard) restoreValue(p *place, key []byte, e entry.Entry) error {
	if p.old != entry.None {
		s.reload(p, e)
		return nil
	}
	return s.insert(p, key, e)
}

// restoreTree is restore for e whose value is o.
func (s *shard) restoreTree(p *place, key []byte, e entry.Entry, o object.Object) error {
	if p.old != entry.None {
		s.drop(p)
		*p = place{db: p.db, hash: p.hash}
	}
	var number [object.TreeValue]byte
	e.Kind, e.Value = e.Kind|treeBit, s.addTree(number[:0], p.db, o)
	return s.insert(p, key, e)
}

// reload is replace without telling anybody, for loading.
func (s *shard) reload(p *place, e entry.Entry) {
	s.setKind(p, e.Kind, e.Expiry)
	s.dbs[p.db].t.Store(p.r, e)
}

// Whole is asked when all has been loaded. Its error says that patches have left a
// list without some of its values, which no crash explains.
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
		if err == nil && !whole { // it may hold something else by now
			return fmt.Errorf("a list of database %d lacks values that no record has", name.db)
		}
	}
	return nil
}
