package concurrency

import "github.com/cellserver/cellserver/limit"

// A new layout has half as much spare memory as the value needs. The value gets another layout when
// the spare memory is used up, or when about three quarters of the nodes or of the memory for names
// are unused. So all members are copied only once in a number of calls that grows with the number of
// members.

func spacious(n int) int { return n + n/2 }

// laidOut returns the same set in other memory, of dst or new, without the names of dropped
// members. members is the number of members for which the result must have room, and bytes is the
// number of bytes by which the names are about to grow. The result also has spare memory for more
// members and names.
func (x index) laidOut(dst []byte, members, bytes int) index {
	room := spacious(members)
	names := spacious(int(x.u32(headLive)) + bytes)
	y := index(sized(dst, indexHeader+room*nodeBytes+names))
	end := indexHeader + x.size()*nodeBytes
	copy(y, x[:end])
	clear(y[end:])
	y.setU32(headRoom, uint32(room))
	at := uint32(0)
	for r := ref(1); r <= ref(x.size()); r++ {
		n := copy(y.names()[at:], x.name(r))
		y.setU32(y.node(r)+nodeName, at)
		at += uint32(n)
	}
	y.setU32(headUsed, at)
	return y
}

// shrunk returns x, or the same set in less memory if most of the memory is unused. A small set
// becomes a list.
func (x index) shrunk(dst []byte) []byte {
	switch {
	case x.size() <= indexLeast:
		return x.list(dst)
	case x.size()*4 < x.room(), int(x.u32(headLive))*4 < len(x.names())-4*MaxMemberSize:
		return x.laidOut(dst, x.size(), 0)
	}
	return x
}

func (x index) list(dst []byte) []byte {
	out := sized(dst, listHeader+x.size()*entryHeader+int(x.u32(headLive)))[:listHeader]
	out[0], out[1] = formList, byte(x.size())
	for i := range x.size() {
		r := x.at(i)
		out = appendEntry(out, x.until(r), x.name(r))
	}
	return out
}

// indexOf returns the set l as an index, in new memory.
func indexOf(l list) []byte {
	room := spacious(l.size())
	names := spacious(len(l) - listHeader - l.size()*entryHeader)
	x := index(make([]byte, indexHeader+room*nodeBytes+names))
	x[0] = formIndex
	x.setU32(headRoom, uint32(room))
	for rest := []byte(l[listHeader:]); len(rest) > 0; {
		var (
			until  limit.Instant
			member []byte
		)
		until, member, rest = l.next(rest)
		x.add(until, member)
	}
	return x
}
