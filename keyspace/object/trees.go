package object

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/shared"
)

// Trees are the collections that are too large for a value. They are Go objects beside a table,
// whose entries have their number as value.
type Trees struct {
	list []Tree
	free []uint32
	cost int64 // of all
}

// Tree is a large collection with the memory that it took when it was last measured.
type Tree struct {
	Object Object
	Cost   int64
}

// treeOverhead is about the memory of a tree beside its cost: the object itself and its place in
// the list.
const treeOverhead = 224

// TreeValue is the length in bytes of the value of an entry whose collection is a tree.
const TreeValue = 4

// Add stores a large collection, which is counted in m, and appends its number to dst.
func (l *Trees) Add(dst []byte, m shared.Ledger, o Object) []byte {
	number := uint32(0)
	if n := len(l.free); n > 0 {
		number = l.free[n-1]
		l.free = l.free[:n-1]
	} else {
		number = uint32(len(l.list))
		l.list = append(l.list, Tree{})
	}
	o.SetLedger(m)
	l.list[number] = Tree{Object: o}
	dst = binary.LittleEndian.AppendUint32(dst, number)
	l.Weigh(m, dst[len(dst)-TreeValue:])
	return dst
}

// At returns the tree of a value that Add has made.
func (l *Trees) At(value []byte) *Tree { return &l.list[binary.LittleEndian.Uint32(value)] }

// Weigh updates the count of memory in m for the tree of a value.
func (l *Trees) Weigh(m shared.Ledger, value []byte) {
	t := l.At(value)
	cost := t.Object.Cost() + treeOverhead
	if more := cost - t.Cost; more != 0 { // about half of all changes take no more memory
		l.cost += more
		m.Count(more)
		t.Cost = cost
	}
}

// Remove removes the tree of a value, since its key holds something else or has moved.
func (l *Trees) Remove(m shared.Ledger, value []byte) {
	t := l.At(value)
	m.Count(-t.Cost)
	l.cost -= t.Cost
	if t.Object != nil { // otherwise it has moved
		t.Object.Drop()
	}
	*t = Tree{}
	l.free = append(l.free, binary.LittleEndian.Uint32(value))
}

// Clear removes all trees.
func (l *Trees) Clear(m shared.Ledger) {
	m.Count(-l.cost)
	for _, t := range l.list {
		if t.Object != nil {
			t.Object.Drop()
		}
	}
	*l = Trees{}
}
