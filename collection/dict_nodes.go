package collection

import "github.com/cellserver/cellserver/shared"

// grow makes the dict a large one. elements has its d.count elements in the flat form, without the
// count.
func (d *dict) grow(elements []byte) {
	d.nodes = make(map[string]*node, d.count+1)
	d.count = 0
	for b := elements; len(b) > 0; {
		var field, value []byte
		var ok bool
		if field, b, ok = cut(b); !ok {
			break
		}
		if value, b, ok = cut(b); !ok {
			break
		}
		d.putNode(field, value)
	}
	d.flatForm.drop()
}

// shrink makes a large dict a flat one if it has become small enough.
func (d *dict) shrink() {
	if d.count > backElements || d.bytes > backBytes {
		return
	}
	b := d.appendFlat(make([]byte, 0, 2*d.bytes+1))
	d.nodes, d.first, d.last, d.index, d.bytes, d.cost = nil, nil, nil, nil, 0, 0
	d.flatForm.take(b)
}

// putNode does what put does in a large dict.
func (d *dict) putNode(field, value []byte) (added bool) {
	if n := d.nodes[string(field)]; n != nil {
		d.accountValue(n, -1)
		if cap(n.value) > 2*len(value)+backBytes || max(len(n.value), len(value)) >= shared.Least || d.pins.Pinned() {
			n.value = own(value)
		} else {
			n.value = append(n.value[:0], value...)
		}
		d.accountValue(n, 1)
		d.shrink()
		return false
	}
	n := &node{field: ownString(field), value: own(value)}
	d.nodes[n.field] = n
	d.link(n)
	if d.index != nil {
		d.enlist(n)
	}
	d.count++
	d.account(n, 1)
	return true
}

// delNode does what del does in a large dict. It makes the dict a flat one if it has become small
// enough.
func (d *dict) delNode(field []byte) bool {
	n := d.nodes[string(field)]
	if n == nil {
		return false
	}
	delete(d.nodes, n.field)
	d.unlink(n)
	if d.index != nil {
		d.delist(n)
	}
	d.count--
	d.account(n, -1)
	d.shrink()
	return true
}

// account adds the node n to bytes and cost if sign is 1, and subtracts it if sign is -1.
func (d *dict) account(n *node, sign int) {
	d.bytes += sign * elementSize(len(n.field))
	d.cost += int64(sign)*nodeCost + d.add(bytesOf(n.field), sign)
	d.accountValue(n, sign)
}

// accountValue adds the value of n to bytes and cost if sign is 1, and subtracts it if sign is -1.
func (d *dict) accountValue(n *node, sign int) {
	d.bytes += sign * elementSize(len(n.value))
	d.cost += d.add(n.value, sign)
}

// link puts the node n at the end of the order.
func (d *dict) link(n *node) {
	n.prev, n.next = d.last, nil
	if d.last == nil {
		d.first = n
	} else {
		d.last.next = n
	}
	d.last = n
}

// unlink takes the node n out of the order.
func (d *dict) unlink(n *node) {
	if n.prev == nil {
		d.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		d.last = n.prev
	} else {
		n.next.prev = n.prev
	}
}
