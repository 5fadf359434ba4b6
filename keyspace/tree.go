package keyspace

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/keyspace/object"
)

// treeBit is in the kind of a collection that is too large for a value: the table has its
// number in [object.Trees] in the place of that. It is never seen outside of this package,
// nor in a file.
const treeBit entry.Kind = 64

func isTree(k entry.Kind) bool { return k&treeBit != 0 }

// base is k as it is seen outside of this package.
func base(k entry.Kind) entry.Kind { return k &^ treeBit }

// wholeBound is the size up to which a value is recorded whole and not by patches.
const wholeBound = 64

// large returns value as a tree for [shard.addTree] if it is one of kind k that is too
// large for a value, else nil.
func large(k entry.Kind, value []byte) object.Object {
	// The smallest element takes two bytes.
	if !k.IsCollection() || len(value) <= 2*wholeBound {
		return nil
	}
	o := object.New(k)
	o.Load(value)
	if _, small := o.Flat(); small {
		return nil
	}
	return o
}

// addTree keeps a large collection and appends its value to dst.
func (s *shard) addTree(dst []byte, db int, o object.Object) []byte {
	if s.trees == nil {
		s.trees = make([]object.Trees, len(s.dbs))
	}
	return s.trees[db].Add(dst, &s.mem.Memory, o)
}

// removeTree forgets the tree of a value.
func (s *shard) removeTree(db int, value []byte) { s.trees[db].Remove(&s.mem.Memory, value) }

// removeTreeAt forgets the tree that the table has at p, alive or not.
func (s *shard) removeTreeAt(p *place) {
	_, e := s.dbs[p.db].t.At(p.r)
	s.removeTree(p.db, e.Value)
}

// removeTrees forgets the trees of a database.
func (s *shard) removeTrees(db int) {
	if s.trees != nil {
		s.trees[db].Clear(&s.mem.Memory)
	}
}

// weighTree counts the memory that the tree at p takes now.
func (s *shard) weighTree(p *place) { s.trees[p.db].Weigh(&s.mem.Memory, p.e.Value) }

// tree returns the collection of a value that addTree made.
func (s *shard) tree(db int, value []byte) *object.Tree { return s.trees[db].At(value) }

// whole returns e as it is outside of this package: in the place of a tree's number
// the bytes of all its elements, in the capacity of dst.
func (s *shard) whole(db int, e entry.Entry, dst []byte) entry.Entry {
	if isTree(e.Kind) {
		e.Value = s.tree(db, e.Value).Object.AppendFlat(dst[:0])
		e.Kind = base(e.Kind)
	}
	return e
}

// costAt is how many bytes the entry at r takes.
func (s *shard) costAt(db int, r dense.Ref) int64 {
	t := s.dbs[db].t
	n := t.Cost(r)
	if _, e := t.At(r); isTree(e.Kind) {
		n += s.tree(db, e.Value).Cost
	}
	return n
}
