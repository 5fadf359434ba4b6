package rdb

// lzfRatio is the maximum number of bytes that one byte of LZF can stand for: a repetition takes
// three bytes and has at most 264. A string that claims a larger ratio is an error, before memory
// is reserved for it.
const lzfRatio = 88

// unpackLZF decodes packed, which must encode size bytes, appends these bytes to dst and returns
// the result. A control byte c below 32 is followed by c+1 literal bytes. Other control bytes begin
// a repetition of earlier bytes. Their upper three bits are the length of the repetition minus 2;
// if they are 7, a further byte is added to the length. Their lower five bits, followed by the
// eight bits of a further byte, are the distance from the repetition back to its source minus 1.
//
// dst should have room for size more bytes; then it is not moved.
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
		for range n { // the bytes are copied one by one, because a repetition may overlap its source
			dst = append(dst, dst[len(dst)-back])
		}
	}
	if len(dst)-start != size {
		return dst, corrupt("LZF: %d bytes instead of %d", len(dst)-start, size)
	}
	return dst, nil
}
