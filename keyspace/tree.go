package keyspace

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/keyspace/object"
)

// treeBit is set in the stored kind of a collection that is too large to be stored as a flat value.
// Such a collection is called a tree, and the value in the table is its number in [object.Trees].
// The bit is never visible outside of this package, nor in a file.
const treeBit entry.Kind = 64

// isTree reports whether k, the kind of a stored entry, has treeBit.
func isTree(k entry.Kind) bool { return k&treeBit != 0 }

// base returns k without treeBit, the kind that other packages see.
func base(k entry.Kind) entry.Kind { return k &^ treeBit }

// wholeBound is the maximum size in bytes of a limiter's value that is always recorded whole, and
// not by patches.
const wholeBound = 64

// large returns value, which is of kind k, as an object for [shard.addTree] if it is a collection
// that is too large to be stored as a flat value. Otherwise large returns nil.
func large(k entry.Kind, value []byte) object.Object {
	// An element takes two bytes or more, except for an empty value of a list, so nearly all
	// shorter values are small.
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

// addTree stores the large collection o in database db. It appends the number of the new tree,
// which is the value of the entry in the table, to dst and returns the result.
func (s *shard) addTree(dst []byte, db int, o object.Object) []byte {
	if s.trees == nil {
		s.trees = make([]object.Trees, len(s.dbs))
	}
	return s.trees[db].Add(dst, &s.mem.Memory, o)
}

// removeTree removes the tree of database db whose entry has the given value.
func (s *shard) removeTree(db int, value []byte) { s.trees[db].Remove(&s.mem.Memory, value) }

// removeTreeAt removes the tree of the entry at p, even if the entry has expired.
func (s *shard) removeTreeAt(p *place) {
	_, e := s.dbs[p.db].t.At(p.r)
	s.removeTree(p.db, e.Value)
}

func (s *shard) removeTrees(db int) {
	if s.trees != nil {
		s.trees[db].Clear(&s.mem.Memory)
	}
}

// weighTree updates the count of memory after a change of the tree at p.
func (s *shard) weighTree(p *place) { s.trees[p.db].Weigh(&s.mem.Memory, p.e.Value) }

// tree returns the tree of database db whose entry has the given value, which addTree has made.
func (s *shard) tree(db int, value []byte) *object.Tree { return s.trees[db].At(value) }

// whole returns e as other packages see it. If e is a tree, its value becomes the bytes of all
// elements, which are written to the memory of dst if they fit. Otherwise whole returns e itself.
func (s *shard) whole(db int, e entry.Entry, dst []byte) entry.Entry {
	if isTree(e.Kind) {
		e.Value = s.tree(db, e.Value).Object.AppendFlat(dst[:0])
		e.Kind = base(e.Kind)
	}
	return e
}

// costAt returns the number of bytes that the entry at r takes, including the collection if it is a
// tree.
func (s *shard) costAt(db int, r dense.Ref) int64 {
	t := s.dbs[db].t
	n := t.Cost(r)
	if _, e := t.At(r); isTree(e.Kind) {
		n += s.tree(db, e.Value).Cost
	}
	return n
}
