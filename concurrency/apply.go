package concurrency

import (
	"bytes"

	"github.com/cellserver/cellserver/limit"
)

// Apply returns the bytes to store for a plan whose Action is Store. value is the stored value on
// which the plan was decided, or empty if there was none. Apply may change value in place and
// return it; otherwise the new value is in the memory of dst or in new memory. value must not be
// used after Apply. dst must not overlap value.
func (p *Plan) Apply(value, dst []byte) []byte {
	switch {
	case p.Effect == Nothing:
		return value
	case len(value) == 0 || value[0] == formList:
		return list(value).apply(dst, p)
	}
	return index(value).apply(dst, p)
}

// apply writes the list without its expired leases and with the effect of p. It returns an index if
// the set has become too large for a list.
func (l list) apply(dst []byte, p *Plan) []byte {
	out := sized(dst, max(len(l), listHeader)+entryHeader+len(p.Member))[:listHeader]
	count := byte(0)
	placed := p.Effect != Holds
	var rest []byte
	if len(l) > 0 {
		rest = l[listHeader:]
	}
	for len(rest) > 0 {
		var (
			until limit.Instant
			m     []byte
		)
		until, m, rest = l.next(rest)
		if until <= p.Now || bytes.Equal(m, p.Member) {
			continue
		}
		if !placed && until > p.Until {
			out, count, placed = appendEntry(out, p.Until, p.Member), count+1, true
		}
		out, count = appendEntry(out, until, m), count+1
	}
	if !placed {
		out, count = appendEntry(out, p.Until, p.Member), count+1
	}
	out[0], out[1] = formList, count
	if count > listMost {
		return indexOf(list(out))
	}
	return out
}

// dropMost is the maximum number of expired members that a call drops from an index. A call adds at
// most one member, so the number of expired members shrinks.
const dropMost = 8

// apply drops up to dropMost expired members and carries out the effect of p. It changes x in place
// unless the value needs a new layout.
func (x index) apply(dst []byte, p *Plan) []byte {
	for range dropMost {
		first := x.at(0)
		if x.size() == 1 || x.until(first) > p.Now || bytes.Equal(x.name(first), p.Member) {
			break
		}
		x.drop(first)
	}
	r := x.find(p.Member)
	switch {
	case p.Effect == Gone:
		if r != none {
			x.drop(r)
		}
		return x.shrunk(dst)
	case r != none:
		byExpiry.remove(x, r)
		putInstant(x[x.node(r):], p.Until)
		byExpiry.insert(x, r)
		return x.shrunk(dst)
	}
	if x.size() == x.room() || len(x.names())-int(x.u32(headUsed)) < len(p.Member) {
		x = x.laidOut(dst, x.size()+1, len(p.Member))
		x.add(p.Until, p.Member)
		return x
	}
	x.add(p.Until, p.Member)
	return x.shrunk(dst)
}
