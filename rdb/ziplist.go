package rdb

// ziplist decodes the packed encoding before Redis 7: the total size (u32), the offset of the last
// entry (u32) and the number of entries (u16, 65535 if it does not fit), then the entries and a
// byte 255. An entry consists of the size of the previous entry (a byte, or 254 and a u32), an
// encoding byte, and its data.
type ziplist struct {
	cursor
	blob            []byte
	tail            uint64 // offset of the last entry in the header
	announced, n    uint64 // number of entries in the header, and number of entries that were read
	start, previous uint64 // offset and size of the entry before the present one
}

// ziplistHeader is the number of bytes of the header.
const ziplistHeader = 10

// newZiplist returns a decoder of blob, whose header it checks.
func newZiplist(blob []byte) (packed, error) {
	z := &ziplist{cursor: cursor{rest: blob}, blob: blob, start: ziplistHeader}
	size := z.little(4)
	z.tail = z.little(4)
	z.announced = z.little(2)
	if z.short || size != uint64(len(blob)) {
		return nil, corrupt("ziplist of %d bytes says %d", len(blob), size)
	}
	return z, nil
}

// next returns the next entry: see packed.
func (z *ziplist) next() (e item, more bool, err error) {
	offset := uint64(len(z.blob) - len(z.rest))
	previous := z.little(1)
	if previous == 255 && !z.short {
		if len(z.rest) > 0 || !counted(z.announced, z.n) || z.tail != z.start {
			return e, false, corrupt("ziplist ends after %d of %d entries with %d bytes left", z.n, z.announced, len(z.rest))
		}
		return e, false, nil
	}
	if previous == 254 {
		previous = z.little(4)
	}
	code := z.little(1)
	if !z.entry(&e, code) {
		return e, false, corrupt("ziplist: encoding %d of an entry", code)
	}
	if z.short || previous != z.previous {
		return e, false, corrupt("ziplist: entry %d", z.n)
	}
	z.start, z.previous = offset, uint64(len(z.blob)-len(z.rest))-offset
	z.n++
	return e, true, nil
}

// entry reads into e the data after the encoding byte code. It returns false for an unknown
// encoding.
func (z *ziplist) entry(e *item, code uint64) bool {
	switch {
	case code < 0x40: // a string whose length has 6 bits
		e.text, e.isText = z.take(code), true
	case code < 0x80: // a string whose length has 14 bits
		e.text, e.isText = z.take(code&63<<8|z.big(1)), true
	case code == 0x80:
		e.text, e.isText = z.take(z.big(4)), true
	case code == 0xc0:
		e.number = z.signed(2)
	case code == 0xd0:
		e.number = z.signed(4)
	case code == 0xe0:
		e.number = z.signed(8)
	case code == 0xf0:
		e.number = z.signed(3)
	case code == 0xfe:
		e.number = z.signed(1)
	case code > 0xf0 && code < 0xfe: // the codes of the integers 0 to 12
		e.number = int64(code - 0xf1)
	default:
		return false
	}
	return true
}
