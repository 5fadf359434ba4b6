package collection

import "github.com/tidwall/btree"

// placedCost is about the memory of an element of a large list beside its value: 32
// bytes in the tree, whose nodes are half full where a list grows.
const placedCost = 64

// growFlat makes a small list a large one.
func (l *List) growFlat() {
	if l.Len() == 0 {
		l.grow(nil)
		return
	}
	l.grow(l.flatForm.b[listHeader:])
}

// grow makes the list a large one with the elements given, which begin at start.
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

// shrink makes it a small one if it has become one.
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

// account adds an element to the sums, or takes it off.
func (l *List) account(value []byte, sign int) {
	l.bytes += sign * valueSize(len(value))
	l.cost += int64(sign)*placedCost + l.add(value, sign)
}

func (l *List) putTree(position int64, value []byte) {
	if l.setTree(position, own(value)) {
		l.shrink()
	}
}

// setTree makes value, which is ours, an element, and says whether there was another.
func (l *List) setTree(position int64, value []byte) (known bool) {
	old, known := l.tree.Set(position, value)
	if known {
		l.account(old, -1)
	}
	l.account(value, 1)
	return known
}

// boundTree cuts the tree to the positions from start to before end.
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

// removeEqual removes, of the values equal to value, those behind the first skip and
// as many as removed, by writing all others anew.
func (l *List) removeEqual(value []byte, skip, removed int) {
	var next List
	next.start, next.end = l.start, l.start
	next.replaces = true
	seen := 0
	for v := range l.Range(0, l.Len()) {
		if string(v) == string(value) {
			seen++
			if seen > skip && seen <= skip+removed {
				continue
			}
		}
		_ = next.PushBack(v) // It has no Max.
	}
	next.changed = true
	next.Max, next.ledger = l.Max, l.ledger
	l.Drop()
	*l = next
}
