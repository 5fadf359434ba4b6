package rdb

// listpack decodes the packed encoding since Redis 7: the total size (u32) and the number of
// entries (u16, 65535 if it does not fit), then the entries and a byte 255. An entry is an encoding
// byte, its data, and the size of the two, in a form that can be read backwards.
type listpack struct {
	cursor
	announced, n uint64 // number of entries in the header, and number of entries that were read
}

// newListpack returns a decoder of blob, whose header it checks.
func newListpack(blob []byte) (packed, error) {
	l := &listpack{cursor: cursor{rest: blob}}
	size := l.little(4)
	l.announced = l.little(2)
	if l.short || size != uint64(len(blob)) {
		return nil, corrupt("listpack of %d bytes says %d", len(blob), size)
	}
	return l, nil
}

// next returns the next entry: see packed.
func (l *listpack) next() (e item, more bool, err error) {
	before := l.rest
	code := l.little(1)
	if code == 255 && !l.short {
		if len(l.rest) > 0 || !counted(l.announced, l.n) {
			return e, false, corrupt("listpack ends after %d of %d entries with %d bytes left", l.n, l.announced, len(l.rest))
		}
		return e, false, nil
	}
	if !l.entry(&e, code) {
		return e, false, corrupt("listpack: encoding %d of an entry", code)
	}
	size := uint64(len(before) - len(l.rest))
	if !l.sizeFollows(size) || l.short {
		return e, false, corrupt("listpack: entry %d of %d bytes", l.n, size)
	}
	l.n++
	return e, true, nil
}

// entry reads into e the data after the encoding byte code. It returns false for an unknown
// encoding.
func (l *listpack) entry(e *item, code uint64) bool {
	switch {
	case code < 0x80: // an unsigned integer of 7 bits
		e.number = int64(code)
	case code < 0xc0: // a string whose length has 6 bits
		e.text, e.isText = l.take(code&63), true
	case code < 0xe0: // a signed integer of 13 bits
		e.number = int64((code&31<<8|l.little(1))<<51) >> 51
	case code < 0xf0: // a string whose length has 12 bits
		e.text, e.isText = l.take(code&15<<8|l.little(1)), true
	case code == 0xf0:
		e.text, e.isText = l.take(l.little(4)), true
	case code <= 0xf3: // an integer of 16, 24 or 32 bits
		e.number = l.signed(int(code - 0xef))
	case code == 0xf4:
		e.number = l.signed(8)
	default:
		return false
	}
	return true
}

// sizeFollows reads the size that follows an entry, and reports whether it is size. The encoded
// size consists of groups of 7 bits, the most significant first. All groups but the first have
// their upper bit set.
func (l *listpack) sizeFollows(size uint64) bool {
	groups := 1
	for _, most := range []uint64{127, 16382, 2097150, 268435454} { // the same bounds as in listpack.c
		if size > most {
			groups++
		}
	}
	for i := groups - 1; i >= 0; i-- {
		group := size >> (7 * i) & 127
		if i < groups-1 {
			group |= 128
		}
		if l.little(1) != group {
			return false
		}
	}
	return true
}
