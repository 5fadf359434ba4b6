package keyspace

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/limit"
)

// trees are the large collections of one shard in one database. They are objects of
// Go's own beside the table, whose entries have their number as value and treeBit in
// their kind. Outside of this package nobody sees that.
type trees struct {
	list []tree
	free []uint32
	cost int64 // of all
}

// treeBit is in the kind of a collection that is too large for a value: the table
// has its number in the place of that. It is never seen outside of this package, nor
// in a file.
const treeBit entry.Kind = 64

func isTree(k entry.Kind) bool { return k&treeBit != 0 }

// base is k as it is seen outside of this package.
func base(k entry.Kind) entry.Kind { return k &^ treeBit }

// tree is a large collection and the memory that it was last seen to take.
type tree struct {
	o    object.Object
	cost int64
}

// treeOverhead is about what a tree takes beside its cost: the object itself and its
// place in the list.
const treeOverhead = 224

const treeValue = 4 // bytes of a number

// plant keeps a large collection and appends its value to dst.
func (s *shard) plant(dst []byte, db int, o object.Object) []byte {
	if s.trees == nil {
		s.trees = make([]trees, len(s.dbs))
	}
	l, number := &s.trees[db], uint32(0)
	if n := len(l.free); n > 0 {
		number = l.free[n-1]
		l.free = l.free[:n-1]
	} else {
		number = uint32(len(l.list))
		l.list = append(l.list, tree{})
	}
	o.SetLedger(&s.ks.mem.Memory)
	l.list[number] = tree{o: o}
	s.weigh(db, number)
	return binary.LittleEndian.AppendUint32(dst, number)
}

// putTree is put for e whose value is o.
func (s *shard) putTree(p *place, key []byte, e entry.Entry, o object.Object) error {
	if p.old == entry.None && s.ks.mem.full(s.slack) {
		return limit.ErrFull
	}
	var number [treeValue]byte
	e.Kind, e.Value = e.Kind|treeBit, s.plant(number[:0], p.db, o)
	if !s.move(p, key, e) {
		s.fell(p.db, e.Value)
		return limit.ErrFull
	}
	return nil
}

// weigh counts the memory that a tree takes now.
func (s *shard) weigh(db int, number uint32) {
	l := &s.trees[db]
	t := &l.list[number]
	cost := t.o.Cost() + treeOverhead
	l.cost += cost - t.cost
	s.ks.mem.AddObjects(cost - t.cost)
	t.cost = cost
}

// fell forgets a tree, since its key holds something else or has moved.
func (s *shard) fell(db int, value []byte) {
	l, number := &s.trees[db], binary.LittleEndian.Uint32(value)
	s.ks.mem.AddObjects(-l.list[number].cost)
	l.cost -= l.list[number].cost
	if o := l.list[number].o; o != nil { // else it has moved
		o.Drop()
	}
	l.list[number] = tree{}
	l.free = append(l.free, number)
}

// fellAt forgets the tree that the table has at p, alive or not.
func (s *shard) fellAt(p *place) {
	_, e := s.dbs[p.db].t.At(p.r)
	s.fell(p.db, e.Value)
}

// weighAt is weigh for the tree at p.
func (s *shard) weighAt(p *place) { s.weigh(p.db, binary.LittleEndian.Uint32(p.e.Value)) }

// fellAll forgets the trees of a database.
func (s *shard) fellAll(db int) {
	if s.trees != nil {
		s.ks.mem.AddObjects(-s.trees[db].cost)
		for _, t := range s.trees[db].list {
			if t.o != nil {
				t.o.Drop()
			}
		}
		s.trees[db] = trees{}
	}
}

// tree returns the collection of a value that plant made.
func (s *shard) tree(db int, value []byte) *tree {
	return &s.trees[db].list[binary.LittleEndian.Uint32(value)]
}

// whole returns e as it is outside of this package: in the place of a tree's number
// the bytes of all its elements, in the capacity of dst.
func (s *shard) whole(db int, e entry.Entry, dst []byte) entry.Entry {
	if isTree(e.Kind) {
		e.Value = s.tree(db, e.Value).o.AppendFlat(dst[:0])
		e.Kind = base(e.Kind)
	}
	return e
}

// costAt is how many bytes the entry at r takes.
func (s *shard) costAt(db int, r dense.Ref) int64 {
	t := s.dbs[db].t
	n := t.Cost(r)
	if _, e := t.At(r); isTree(e.Kind) {
		n += s.tree(db, e.Value).cost
	}
	return n
}
