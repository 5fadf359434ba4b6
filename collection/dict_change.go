package collection

// load makes d the dict with the flat bytes b, which are valid, and clears the delta.
func (d *dict) load(b []byte) {
	d.nodes, d.first, d.last, d.index, d.bytes, d.cost, d.count = nil, nil, nil, nil, 0, 0, 0
	d.long, d.longBytes = 0, 0
	d.delta = resetDelta(d.delta)
	d.flatForm.load(b)
	if len(b) == 0 {
		return
	}
	n, rest, _ := cutUvarint(b)
	d.count = int(n)
	if n > flatElements || len(b) > flatBytes {
		d.grow(rest)
	}
}

// set does what put does and adds the effect to the delta. If the field is new and the dict has
// limit or more fields, set returns ErrFull and changes nothing. A limit of 0 means no limit.
func (d *dict) set(field, value []byte, limit int) (added bool, err error) {
	if limit > 0 && d.count >= limit {
		if _, ok := d.get(field); !ok {
			return false, ErrFull
		}
	}
	added = d.put(field, value)
	op := byte(opUpdate)
	if added {
		op = opNew
	}
	d.delta = appendElement(append(d.delta, op), field)
	d.delta = appendElement(d.delta, value)
	return added, nil
}

// remove does what del does. If the field existed, it also adds the removal to the delta.
func (d *dict) remove(field []byte) bool {
	if !d.del(field) {
		return false
	}
	d.delta = appendElement(append(d.delta, opGone), field)
	return true
}

// put sets field to value: it changes an existing field in its place, and adds a new field at the
// end. added reports whether the field is new. put makes the dict a large one if it becomes too
// large for the flat form.
func (d *dict) put(field, value []byte) (added bool) {
	if d.nodes != nil {
		return d.putNode(field, value)
	}
	size := elementSize(len(field)) + elementSize(len(value))
	_, middle, end, ok := d.find(field)
	switch {
	case ok && len(d.flatForm.b)-(end-middle)+elementSize(len(value)) <= flatBytes:
		putElement(d.flatForm.gap(middle, end-middle, elementSize(len(value))), value)
		return false
	case !ok && d.count < flatElements && max(len(d.flatForm.b), 1)+size <= flatBytes:
		if d.count == 0 {
			d.flatForm.gap(0, len(d.flatForm.b), 1)
		}
		putElement(putElement(d.flatForm.gap(len(d.flatForm.b), 0, size), field), value)
		d.count++
		d.flatForm.b[0] = byte(d.count)
		return true
	}
	var elements []byte
	if d.count > 0 {
		elements = d.flatForm.b[1:]
	}
	d.grow(elements)
	return d.putNode(field, value)
}

// del removes field and reports whether it existed.
func (d *dict) del(field []byte) bool {
	if d.nodes != nil {
		return d.delNode(field)
	}
	begin, _, end, ok := d.find(field)
	if !ok {
		return false
	}
	d.flatForm.gap(begin, end-begin, 0)
	d.count--
	d.flatForm.b[0] = byte(d.count)
	return true
}
