package concurrency

import "bytes"

// Apply returns the bytes to store for a plan whose Action is Store. value is the stored value on
// which the plan was decided, or empty if there was none. Apply may change value in place and
// return it; otherwise the new value is in the memory of dst or in new memory. value must not be
// used after Apply. dst must not overlap value.
func (p *Plan) Apply(value, dst []byte) []byte {
	switch {
	case p.Effect == Nothing:
		return value
	case len(value) == 0 || isList(value):
		return list(value).apply(dst, p)
	}
	return index(value).apply(dst, p)
}

// apply writes the list without its expired leases and with the effect of p, in the mode of p. It
// returns an index if the set has become too large for a list.
func (l list) apply(dst []byte, p *Plan) []byte {
	if len(l) == 0 {
		l = list{formList, 0}
	}
	form, header := listOf(p.Mode)
	old := l.header()
	// The live entries begin at first. The entry of the member, if it is among them, is from own to
	// ownEnd, and its new entry belongs before the one at place.
	first, own, ownEnd, place := listHeader, len(l), len(l), len(l)
	count := l[1]
	for at := listHeader; at < len(l); {
		until, end := l.entry(at, old)
		switch {
		case until <= p.Now:
			first = end
			count--
		case bytes.Equal(l[at+old:end], p.Member):
			own, ownEnd = at, end
			count--
		case until > p.Until && place == len(l):
			place = at
		}
		at = end
	}
	size := len(l) + header + len(p.Member)
	if header > old {
		size += listMost * (header - old)
	}
	out := sized(dst, size)[:listHeader]
	if p.Effect != Holds {
		out = l.appendRange(out, header, first, own)
		out = l.appendRange(out, header, ownEnd, len(l))
	} else {
		count++
		out = l.appendRange(out, header, first, min(own, place))
		out = l.appendRange(out, header, ownEnd, place)
		out = appendEntry(out, header, p.Until, p.Places, p.Member)
		out = l.appendRange(out, header, place, own)
		out = l.appendRange(out, header, max(ownEnd, place), len(l))
	}
	out[0], out[1] = form, count
	if count > listMost {
		return indexOf(list(out))
	}
	return out
}

// dropMost is the maximum number of expired members that a call drops from an index. A call adds at
// most one member, so the number of expired members shrinks.
const dropMost = 8

// apply drops up to dropMost expired members and carries out the effect of p. It changes x in place
// unless the value needs a new layout, as it does if the mode of p is another one.
func (x index) apply(dst []byte, p *Plan) []byte {
	for range dropMost {
		first := x.at(0)
		if x.size() == 1 || x.until(first) > p.Now || bytes.Equal(x.name(first), p.Member) {
			break
		}
		x.drop(first)
	}
	if m := modeOf(x); (m == Places) != (p.Mode == Places) {
		// From here on x uses the memory of dst.
		x, dst = x.laidOut(dst, p.Mode, x.size()+1, len(p.Member)), nil
	}
	r := x.find(p.Member)
	switch {
	case p.Effect == Gone:
		if r != none {
			x.drop(r)
		}
	case r != none:
		x.refresh(r, p.Until, p.Places)
	case x.size() == x.room() || x.namesRoom()-int(x.u32(headUsed)) < len(p.Member):
		x = x.laidOut(dst, p.Mode, x.size()+1, len(p.Member))
		x.add(p.Until, p.Places, p.Member)
		x.count()
		return x
	default:
		x.add(p.Until, p.Places, p.Member)
	}
	x.count()
	return x.shrunk(dst)
}
