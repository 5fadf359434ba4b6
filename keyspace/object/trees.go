package object

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/shared"
)

// Trees has the collections of one database that are too large to be stored as flat values. They
// are Go objects beside the table, and the value of an entry of the table is the number of its
// tree. The zero value is empty.
type Trees struct {
	list []Tree
	free []uint32
	cost int64 // sum of the Cost of all trees, in bytes
}

// Tree is a large collection with Cost, the number of bytes that it took when [Trees.Weigh] last
// measured it.
type Tree struct {
	Object Object
	Cost   int64
}

// treeOverhead is about the number of bytes that a tree takes in addition to the cost of its
// elements: the object itself and its place in the list.
const treeOverhead = 224

// TreeValue is the length in bytes of the value of an entry whose collection is a tree.
const TreeValue = 4

// Add stores the large collection o and counts its memory in m. It appends the number of the new
// tree, TreeValue bytes, to dst and returns the result.
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

// At returns the tree with the number value, which Add has made. The pointer is valid until the
// next Add.
func (l *Trees) At(value []byte) *Tree { return &l.list[binary.LittleEndian.Uint32(value)] }

// Weigh measures the tree with the number value, and counts in m by how much its memory has
// changed.
func (l *Trees) Weigh(m shared.Ledger, value []byte) {
	t := l.At(value)
	cost := t.Object.Cost() + treeOverhead
	if more := cost - t.Cost; more != 0 { // about half of all changes take no more memory
		l.cost += more
		m.Count(more)
		t.Cost = cost
	}
}

// Remove removes the tree with the number value, because its key was removed, holds something else
// or has moved. The object is dropped, unless the caller has set it to nil because it has moved.
func (l *Trees) Remove(m shared.Ledger, value []byte) {
	t := l.At(value)
	m.Count(-t.Cost)
	l.cost -= t.Cost
	if t.Object != nil { // if the entry has moved, its new place refers to the tree
		t.Object.Drop()
	}
	*t = Tree{}
	l.free = append(l.free, binary.LittleEndian.Uint32(value))
}

// Clear removes all trees and subtracts their memory from the count of m.
func (l *Trees) Clear(m shared.Ledger) {
	m.Count(-l.cost)
	for _, t := range l.list {
		if t.Object != nil {
			t.Object.Drop()
		}
	}
	*l = Trees{}
}
