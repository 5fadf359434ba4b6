package rdb

// lzfRatio is the maximum number of bytes for one byte of LZF: three bytes repeat at most 264. A
// string that claims a larger ratio is refused before memory is reserved for it.
const lzfRatio = 88

// unpackLZF appends the size bytes that packed encodes to dst. A control byte below 32 is followed
// by one more literal byte than its value. In other control bytes the upper three bits are the
// length of a repetition minus 2, where 7 continues in a further byte, and the lower bits with a
// further byte are the distance of its beginning minus 1.
//
// dst must have room for size bytes, so that it is not moved while it grows.
func unpackLZF(dst, packed []byte, size int) ([]byte, error) {
	start := len(dst)
	for i := 0; i < len(packed); {
		control := int(packed[i])
		i++
		if control < 32 {
			n := control + 1
			if n > len(packed)-i || n > size-(len(dst)-start) {
				return dst, corrupt("LZF: %d bytes at %d are too many", n, i)
			}
			dst = append(dst, packed[i:i+n]...)
			i += n
			continue
		}
		n, back := control>>5, control&31<<8
		if n == 7 && i < len(packed) {
			n += int(packed[i])
			i++
		}
		if i == len(packed) {
			return dst, corrupt("LZF: it ends in a repetition")
		}
		back += int(packed[i]) + 1
		i++
		n += 2
		if back > len(dst)-start || n > size-(len(dst)-start) {
			return dst, corrupt("LZF: %d bytes from %d back at %d of %d", n, back, len(dst)-start, size)
		}
		for range n { // byte by byte, because a repetition may overlap the bytes that it writes
			dst = append(dst, dst[len(dst)-back])
		}
	}
	if len(dst)-start != size {
		return dst, corrupt("LZF: %d bytes instead of %d", len(dst)-start, size)
	}
	return dst, nil
}
