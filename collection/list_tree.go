package collection

import (
	"slices"

	"github.com/tidwall/btree"
)

// placedCost is about the number of bytes that an element of a large list takes in addition to its
// value: 32 bytes in the tree, whose nodes are half full where a list grows.
const placedCost = 64

// growFlat makes a small list, which may be empty, a large one.
func (l *List) growFlat() {
	if l.Len() == 0 {
		l.grow(nil)
		return
	}
	l.grow(l.flatForm.b[listHeader:])
}

// grow makes the list a large one. elements has its elements in the flat form, without the header;
// the first of them has the position l.start.
func (l *List) grow(elements []byte) {
	l.tree = new(btree.Map[int64, []byte])
	position := l.start
	for b := elements; len(b) > 0; {
		value, holes, rest, ok := cutValue(b)
		if !ok {
			break
		}
		if holes == 0 {
			element := own(value)
			l.tree.Load(position, element)
			l.account(element, 1)
			holes = 1
		}
		position += int64(holes)
		b = rest
	}
	l.flatForm.drop()
}

// shrink makes a large list a flat one if it has become small enough.
func (l *List) shrink() {
	if l.Len() > backElements || l.bytes > backBytes {
		return
	}
	var b []byte
	if l.Len() > 0 {
		b = l.appendFlat(make([]byte, 0, 2*l.bytes+listHeader))
	}
	l.tree, l.bytes, l.cost = nil, 0, 0
	l.flatForm.take(b)
}

// account adds an element with the given value to bytes and cost if sign is 1, and subtracts it if
// sign is -1.
func (l *List) account(value []byte, sign int) {
	l.bytes += sign * valueSize(len(value))
	l.cost += int64(sign)*placedCost + l.add(value, sign)
}

// putTree stores a copy of value at position in a large list.
func (l *List) putTree(position int64, value []byte) {
	if l.setTree(position, own(value)) {
		l.shrink()
	}
}

// setTree stores value, which the list then owns, at position, and reports whether the position had
// a value before.
func (l *List) setTree(position int64, value []byte) (known bool) {
	old, known := l.tree.Set(position, value)
	if known {
		l.account(old, -1)
	}
	l.account(value, 1)
	return known
}

// boundTree makes start and end the bounds of a large list, and removes all values outside of them.
func (l *List) boundTree(start, end int64) {
	l.start, l.end = start, end
	for {
		position, value, ok := l.tree.Min()
		if !ok || position >= start {
			break
		}
		l.tree.PopMin()
		l.account(value, -1)
	}
	for {
		position, value, ok := l.tree.Max()
		if !ok || position < end {
			break
		}
		l.tree.PopMax()
		l.account(value, -1)
	}
	l.shrink()
}

// placedSize is about the number of bytes that an element of a delta takes in addition to its
// value.
const placedSize = 8

// removeTree removes the values at positions, which are sorted, from a large list. It does not copy
// the other values. It closes the gaps by moving either the values before the last of positions or
// the values after the first, whichever have fewer bytes. Only the moved values are added to the
// delta.
func (l *List) removeTree(positions []int64) {
	first, last := positions[0], positions[len(positions)-1]
	// These are the numbers of bytes that the delta would get if the values before the last
	// position moved, or the values after the first.
	before, behind := 0, 0
	l.tree.Scan(func(position int64, value []byte) bool {
		if position < last {
			before += placedSize + len(value)
		}
		if position > first {
			behind += placedSize + len(value)
		}
		return true
	})
	for _, position := range positions {
		value, _ := l.tree.Get(position)
		l.account(value, -1)
	}
	l.changed = true
	l.beginDelta()
	l.delta = slices.Grow(l.delta, min(before, behind))
	if before < behind {
		l.moveUp(positions)
	} else {
		l.moveDown(positions)
	}
	l.shrink()
}

// moveUp closes the gaps at positions by moving the values before them to higher positions.
func (l *List) moveUp(positions []int64) {
	last := len(positions) - 1
	to := positions[last]
	for from := to; from >= l.start; from-- {
		if last >= 0 && positions[last] == from {
			last--
			continue
		}
		l.moveTree(from, to)
		to--
	}
	for ; l.start <= to; l.start++ {
		l.tree.Delete(l.start)
	}
}

// moveDown closes the gaps at positions by moving the values behind them to lower positions.
func (l *List) moveDown(positions []int64) {
	next, to := 0, positions[0]
	for from := to; from < l.end; from++ {
		if next < len(positions) && positions[next] == from {
			next++
			continue
		}
		l.moveTree(from, to)
		to++
	}
	for ; l.end > to; l.end-- {
		l.tree.Delete(l.end - 1)
	}
}

// moveTree stores the value at position from also at position to, without a copy of its bytes, and
// adds it to the delta.
func (l *List) moveTree(from, to int64) {
	value, _ := l.tree.Get(from)
	l.tree.Set(to, value)
	l.record(to, value)
}
