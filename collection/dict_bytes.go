package collection

// apply replays delta: the delta of a hash if values is true, otherwise the delta of a set, whose
// values must be empty. It returns ErrCorrupt for an invalid delta; then nothing is changed. It
// does not change d.delta.
func (d *dict) apply(delta []byte, values bool) error {
	for b := delta; len(b) > 0; {
		_, _, value, rest, ok := cutEffect(b)
		if !ok || !values && len(value) > 0 {
			return ErrCorrupt
		}
		b = rest
	}
	for b := delta; len(b) > 0; {
		op, field, value, rest, _ := cutEffect(b)
		b = rest
		switch op {
		case opNew:
			// A newer state may have the field already, at another place in the order.
			d.del(field)
			d.put(field, value)
		case opUpdate:
			d.put(field, value)
		case opGone:
			d.del(field)
		}
	}
	return nil
}

// cutEffect decodes the first effect of b, a part of a delta, which must not be empty. rest is the
// rest of b. value is nil if op is opGone. ok is false if b does not begin with an effect.
func cutEffect(b []byte) (op byte, field, value, rest []byte, ok bool) {
	op = b[0]
	if op < opNew || op > opGone {
		return 0, nil, nil, nil, false
	}
	field, rest, ok = cut(b[1:])
	if ok && op != opGone {
		value, rest, ok = cut(rest)
	}
	return op, field, value, rest, ok
}

// checkDict returns ErrCorrupt unless b has the form that appendFlat writes, and for a set (values
// is false) only empty values.
func checkDict(b []byte, values bool) error {
	if len(b) == 0 {
		return nil
	}
	n, b, ok := cutUvarint(b)
	// An element has at least two bytes, so a larger count is invalid.
	if !ok || n == 0 || n > uint64(len(b)/2) {
		return ErrCorrupt
	}
	seen := make(map[string]struct{}, n)
	for range n {
		var field, value []byte
		if field, b, ok = cut(b); !ok {
			return ErrCorrupt
		}
		if value, b, ok = cut(b); !ok || !values && len(value) > 0 {
			return ErrCorrupt
		}
		if _, twice := seen[bytesAsString(field)]; twice {
			return ErrCorrupt
		}
		seen[bytesAsString(field)] = struct{}{}
	}
	if len(b) > 0 {
		return ErrCorrupt
	}
	return nil
}
