package rdb

// zipmap decodes the packed encoding of hashes before Redis 2.6: the number of pairs (a byte, 254
// or more if it does not fit), then fields and values alternately, and a byte 255. Each field and
// value follows its length (a byte, or 254 and a u32). After the length of a value, a further byte
// is the number of unused bytes behind the value.
type zipmap struct {
	cursor
	announced, n uint64 // number of pairs in the header, and number of fields and values that were read
}

func newZipmap(blob []byte) (packed, error) {
	z := &zipmap{cursor: cursor{rest: blob}}
	z.announced = z.little(1)
	if z.short {
		return nil, corrupt("zipmap of 0 bytes")
	}
	return z, nil
}

// next returns the next field or value: see packed.
func (z *zipmap) next() (e item, more bool, err error) {
	size := z.little(1)
	if size == 255 && !z.short {
		pairs := z.n / 2
		if len(z.rest) > 0 || z.n%2 > 0 || z.announced < 254 && z.announced != pairs {
			return e, false, corrupt("zipmap ends after %d of %d pairs with %d bytes left", pairs, z.announced, len(z.rest))
		}
		return e, false, nil
	}
	if size == 254 {
		size = z.little(4)
	}
	unused := uint64(0)
	if z.n%2 > 0 {
		unused = z.little(1)
	}
	e = item{text: z.take(size), isText: true}
	z.take(unused)
	if z.short {
		return e, false, corrupt("zipmap: entry %d", z.n)
	}
	z.n++
	return e, true, nil
}
