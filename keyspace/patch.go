package keyspace

import (
	"fmt"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/slidingwindow"
)

// wholeBound is the size up to which a value is recorded whole and not by patches.
const wholeBound = 64

// differ is a plan that can say what it changes in a large value; see AppendDelta of
// the families.
type differ interface {
	AppendDelta(dst, value []byte) (delta []byte, ok bool)
}

// deltaOf returns what plan, which is about to be applied, changes in the value at p,
// or nil if the whole is to be recorded, or nothing.
func (v *View) deltaOf(s *shard, p *place, k entry.Kind, plan applier) []byte {
	if s.recorder == nil || k != p.e.Kind || len(p.e.Value) <= wholeBound || !effect.Patchable(k) {
		return nil
	}
	delta, ok := plan.(differ).AppendDelta(v.delta[:0], p.e.Value)
	v.delta = delta[:0]
	if !ok {
		return nil
	}
	return delta
}

// recordNew records what a key holds that was not there before.
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

// recordExpiry records that e is to expire at another instant.
func (s *shard) recordExpiry(db int, key []byte, e *entry.Entry) {
	if k := base(e.Kind); isTree(e.Kind) || len(e.Value) > wholeBound && effect.Patchable(k) {
		s.recorder.Patch(db, key, k, e.Expiry, nil)
		return
	}
	s.recorder.Put(db, key, e)
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
		s.weighAt(p)
	default:
		return s.restoreTree(p, e.Key, entry.Entry{Kind: e.Entry.Kind, Expiry: expiry}, o)
	}
	return nil
}

// borrow returns what p holds as a collection: the key's own if it is a tree, else
// one that is given back by done.
func (s *shard) borrow(p *place, k entry.Kind) (o object.Object, done func()) {
	if isTree(p.e.Kind) {
		return s.tree(p.db, p.e.Value).o, func() {}
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
	var number [treeValue]byte
	e.Kind, e.Value = e.Kind|treeBit, s.plant(number[:0], p.db, o)
	return s.insert(p, key, e)
}

// reload is replace without telling anybody, for loading.
func (s *shard) reload(p *place, e entry.Entry) {
	s.becomes(p, e.Kind, e.Expiry)
	s.dbs[p.db].t.Store(p.r, e)
}
