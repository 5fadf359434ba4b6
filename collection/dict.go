package collection

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/shared"
)

// dict implements hashes and sets: fields with values, in the order of their insertion. In a set
// the fields are the members and the values are empty.
type dict struct {
	flatForm flat // the elements of a dict that is small
	count    int  // number of fields

	// A large dict is a map of nodes that are linked in order; nodes is nil while the dict is flat.
	// bytes is the size that the elements would have in the flat form, and cost is the number of
	// bytes of memory that they take.
	nodes       map[string]*node
	first, last *node
	index       []*node // the nodes in their order, for access by position: see at; nil until it is needed
	bytes       int
	cost        int64
	longs
	pins shared.Pins // counts the readers of the bytes of all elements: see Pin

	delta []byte
}

// node is a field of a large dict, with its value.
type node struct {
	field      string
	value      []byte
	prev, next *node
	at         int32 // position in dict.index; valid if there is an index
}

// nodeCost is about the number of bytes that a node takes in addition to field and value: the node,
// its entry in the map, and the free slots that a map keeps.
const nodeCost = 64 + 56

// flat returns the flat bytes of a small dict, without a copy; they are nil if the dict is empty.
// For a large dict it returns false.
func (d *dict) flat() ([]byte, bool) {
	if d.nodes != nil {
		return nil, false
	}
	if d.count == 0 {
		return nil, true
	}
	return d.flatForm.b, true
}

// appendFlat appends the flat bytes of a dict of any size to dst.
func (d *dict) appendFlat(dst []byte) []byte {
	if b, ok := d.flat(); ok {
		return append(dst, b...)
	}
	dst = binary.AppendUvarint(dst, uint64(d.count))
	for n := d.first; n != nil; n = n.next {
		dst = appendElement(dst, bytesOf(n.field))
		dst = appendElement(dst, n.value)
	}
	return dst
}

// each yields the fields and values in order.
func (d *dict) each(yield func(field, value []byte) bool) {
	if d.nodes != nil {
		for n := d.first; n != nil; n = n.next {
			if !yield(bytesOf(n.field), n.value) {
				return
			}
		}
		return
	}
	if d.count == 0 {
		return
	}
	for b := d.flatForm.b[1:]; len(b) > 0; {
		var field, value []byte
		field, b, _ = cut(b)
		value, b, _ = cut(b)
		if !yield(field, value) {
			return
		}
	}
}

// find returns the place of field in the flat bytes. begin is the offset of the element, middle is
// the offset of the length of its value, and end is the offset after the element. ok is false if
// there is no such field.
func (d *dict) find(field []byte) (begin, middle, end int, ok bool) {
	if d.count == 0 {
		return 0, 0, 0, false
	}
	all := d.flatForm.b
	for b := all[1:]; len(b) > 0; {
		begin = len(all) - len(b)
		var f []byte
		f, b, _ = cut(b)
		middle = len(all) - len(b)
		_, b, _ = cut(b)
		if string(f) == string(field) {
			return begin, middle, len(all) - len(b), true
		}
	}
	return 0, 0, 0, false
}

// get returns the value of field. It returns false if the field does not exist.
func (d *dict) get(field []byte) ([]byte, bool) {
	if d.nodes != nil {
		if n := d.nodes[string(field)]; n != nil {
			return n.value, true
		}
		return nil, false
	}
	_, middle, end, ok := d.find(field)
	if !ok {
		return nil, false
	}
	value, _, _ := cut(d.flatForm.b[middle:end])
	return value, true
}

// drop calls [shared.Drop] for all long fields and values of a large dict, because the dict has
// been removed from the keyspace.
func (d *dict) drop() {
	if d.long == 0 {
		return
	}
	for n := d.first; n != nil; n = n.next {
		d.gone(bytesOf(n.field))
		d.gone(n.value)
	}
	d.long = 0
}
