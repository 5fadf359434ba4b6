package rdb

import "encoding/binary"

// polynomial is the CRC64 polynomial of Jones, bit-reversed. Redis starts with 0 and does not
// invert the result, so the checksum of "123456789" is e9c6d914c4b8d9ca.
const polynomial = 0x95ac9329ac4bc9b5

// sums has, for each byte, the checksums of the byte followed by 0 to 7 zero bytes. With it addSum
// adds eight bytes at once, which is four times as fast as adding single bytes.
var sums = makeSums()

func makeSums() (t [8][256]uint64) {
	for i := range t[0] {
		sum := uint64(i)
		for range 8 {
			sum = sum>>1 ^ polynomial&-(sum&1)
		}
		t[0][i] = sum
	}
	for k := 1; k < len(t); k++ {
		for i := range t[k] {
			sum := t[k-1][i]
			t[k][i] = sum>>8 ^ t[0][byte(sum)]
		}
	}
	return t
}

// addSum returns the CRC64 of a sequence of bytes that ends in p. sum is the CRC64 of the bytes
// before p, 0 if there are none.
func addSum(sum uint64, p []byte) uint64 {
	for len(p) >= 8 {
		sum ^= binary.LittleEndian.Uint64(p)
		sum = sums[7][byte(sum)] ^ sums[6][byte(sum>>8)] ^ sums[5][byte(sum>>16)] ^ sums[4][byte(sum>>24)] ^
			sums[3][byte(sum>>32)] ^ sums[2][byte(sum>>40)] ^ sums[1][byte(sum>>48)] ^ sums[0][sum>>56]
		p = p[8:]
	}
	for _, b := range p {
		sum = sum>>8 ^ sums[0][byte(sum)^b]
	}
	return sum
}
