package keyspace

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/shared"
)

// trees are collections that are too large for a value. They are objects of Go's own
// beside a table, whose entries have their number as value.
type trees struct {
	list []tree
	free []uint32
	cost int64 // of all
}

// tree is a large collection and the memory that it was last seen to take.
type tree struct {
	o    object.Object
	cost int64
}

// treeOverhead is about what a tree takes beside its cost: the object itself and its
// place in the list.
const treeOverhead = 224

// treeValue is how many bytes a number has.
const treeValue = 4

// plant keeps a large collection, which m counts, and appends its value to dst.
func (l *trees) plant(dst []byte, m shared.Ledger, o object.Object) []byte {
	number := uint32(0)
	if n := len(l.free); n > 0 {
		number = l.free[n-1]
		l.free = l.free[:n-1]
	} else {
		number = uint32(len(l.list))
		l.list = append(l.list, tree{})
	}
	o.SetLedger(m)
	l.list[number] = tree{o: o}
	dst = binary.LittleEndian.AppendUint32(dst, number)
	l.weigh(m, dst[len(dst)-treeValue:])
	return dst
}

// at returns the collection of a value that plant made.
func (l *trees) at(value []byte) *tree { return &l.list[binary.LittleEndian.Uint32(value)] }

// weigh counts the memory that the tree of a value takes now.
func (l *trees) weigh(m shared.Ledger, value []byte) {
	t := l.at(value)
	cost := t.o.Cost() + treeOverhead
	l.cost += cost - t.cost
	m.Count(cost - t.cost)
	t.cost = cost
}

// fell forgets the tree of a value, since its key holds something else or has moved.
func (l *trees) fell(m shared.Ledger, value []byte) {
	t := l.at(value)
	m.Count(-t.cost)
	l.cost -= t.cost
	if t.o != nil { // else it has moved
		t.o.Drop()
	}
	*t = tree{}
	l.free = append(l.free, binary.LittleEndian.Uint32(value))
}

// fellAll forgets all trees.
func (l *trees) fellAll(m shared.Ledger) {
	m.Count(-l.cost)
	for _, t := range l.list {
		if t.o != nil {
			t.o.Drop()
		}
	}
	*l = trees{}
}
