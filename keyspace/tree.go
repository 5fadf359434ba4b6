package keyspace

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/keyspace/dense"
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/keyspace/object"
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

// plant keeps a large collection, which m counts, and appends its value to dst.
func (l *trees) plant(dst []byte, m *dense.Memory, o object.Object) []byte {
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

// weigh counts the memory that a tree takes now.
func (l *trees) weigh(m *dense.Memory, value []byte) {
	t := l.at(value)
	cost := t.o.Cost() + treeOverhead
	l.cost += cost - t.cost
	m.AddObjects(cost - t.cost)
	t.cost = cost
}

// fell forgets a tree, since its key holds something else or has moved.
func (l *trees) fell(m *dense.Memory, value []byte) {
	t := l.at(value)
	m.AddObjects(-t.cost)
	l.cost -= t.cost
	if t.o != nil { // else it has moved
		t.o.Drop()
	}
	*t = tree{}
	l.free = append(l.free, binary.LittleEndian.Uint32(value))
}

// fellAll forgets all trees.
func (l *trees) fellAll(m *dense.Memory) {
	m.AddObjects(-l.cost)
	for _, t := range l.list {
		if t.o != nil {
			t.o.Drop()
		}
	}
	*l = trees{}
}

// wholeBound is the size up to which a value is recorded whole and not by patches.
const wholeBound = 64

// large returns value as a tree for [shard.plant] if it is one of kind k that is too
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
