package concurrency

// A new layout has half as much spare memory as the value needs. The value gets another layout when
// the spare memory is used up, or when about three quarters of the nodes or of the memory for names
// are unused. So all members are copied only once in a number of calls that grows with the number of
// members.

func spacious(n int) int { return n + n/2 }

// indexSize returns the number of bytes of an index in mode m with room for so many members and for
// names of so many bytes.
func indexSize(m Mode, room, names int) int {
	size := indexHeader + room*nodeBytes + names
	if m == Places {
		size += room * weightBytes
	}
	return size
}

// laidOut returns the same set with mode m in other memory, of dst or new, without the names of
// dropped members. If m is Leases, each member must have one place. members is the number of
// members for which the result must have room, and bytes is the number of bytes by which the names
// are about to grow. The result also has spare memory for more members and names.
func (x index) laidOut(dst []byte, m Mode, members, bytes int) index {
	room := spacious(members)
	names := spacious(int(x.u32(headLive)) + bytes)
	y := index(sized(dst, indexSize(m, room, names)))
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
	switch {
	case hasPlaces(x) && m == Places:
		copy(y[y.weight(ref(x.size())):], x[x.weight(ref(x.size())):])
	case hasPlaces(x):
		y[0] = formIndex
		y.setU32(headOnes, 0)
	case m == Places:
		y[0] = formPlacesIndex
		y.setU32(headOnes, 0)
		for r := ref(1); r <= ref(x.size()); r++ {
			y.setPlaces(r, 1)
			y.setSum(r, int64(byExpiry.size(y, r)))
		}
	}
	return y
}

// shrunk returns x, or the same set in less memory if most of the memory is unused. A small set
// becomes a list.
func (x index) shrunk(dst []byte) []byte {
	switch {
	case x.size() <= indexLeast:
		return x.list(dst)
	case x.size()*4 < x.room(), int(x.u32(headLive))*4 < x.namesRoom()-4*MaxMemberSize:
		return x.laidOut(dst, modeOf(x), x.size(), 0)
	}
	return x
}

func (x index) list(dst []byte) []byte {
	form, header := listOf(modeOf(x))
	out := sized(dst, listHeader+x.size()*header+int(x.u32(headLive)))[:listHeader]
	out[0], out[1] = form, byte(x.size())
	for i := range x.size() {
		r := x.at(i)
		out = appendEntry(out, header, x.until(r), x.places(r), x.name(r))
	}
	return out
}

// indexOf returns the set l as an index, in new memory.
func indexOf(l list) []byte {
	header := l.header()
	room := spacious(l.size())
	names := spacious(len(l) - listHeader - l.size()*header)
	x := index(make([]byte, indexSize(modeOf(l), room, names)))
	x[0] = formIndex
	if hasPlaces(l) {
		x[0] = formPlacesIndex
	}
	x.setU32(headRoom, uint32(room))
	for at := listHeader; at < len(l); {
		until, end := l.entry(at, header)
		x.add(until, l.places(at, header), l[at+header:end])
		at = end
	}
	return x
}
