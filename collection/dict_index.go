package collection

import "slices"

// indexCost is the number of bytes that a node's place in the index takes.
const indexCost = 8

// at returns the field with the given number, from 0 to count-1. The numbers have no relation to
// the order of the fields, and any change of the dict may change them. A large dict gets an index
// at the first call of at, since most dicts never need one.
func (d *dict) at(number int) []byte {
	if d.nodes != nil {
		if d.index == nil {
			d.index = make([]*node, 0, d.count+d.count/8)
			for n := d.first; n != nil; n = n.next {
				d.enlist(n)
			}
		}
		return bytesOf(d.index[number].field)
	}
	for b := d.flatForm.b[1:]; ; number-- {
		var field []byte
		field, b, _ = cut(b)
		if number == 0 {
			return field
		}
		_, b, _ = cut(b)
	}
}

func (d *dict) enlist(n *node) {
	n.at = int32(len(d.index))
	d.index = append(d.index, n)
	d.cost += indexCost
}

// delist removes the node n from the index. The last node of the index moves into its place.
func (d *dict) delist(n *node) {
	last := len(d.index) - 1
	d.index[n.at] = d.index[last]
	d.index[n.at].at = n.at
	d.index[last] = nil
	d.index = d.index[:last]
	if last < cap(d.index)/4 {
		d.index = slices.Clone(d.index)
	}
	d.cost -= indexCost
}
