package rdb

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// texts reads lengths and strings from a source.
type texts struct {
	source
	// longest is the maximum length of a string in bytes: see [Limits].
	longest int64
	// packed is the buffer for compressed strings.
	packed []byte
}

// length reads a length. If encoded is true, an encoded string follows, and n is its encoding. The
// two upper bits of the first byte select a length of 6 bits, of 14 bits, of 32 or 64 bits, or an
// encoded string.
func (t *texts) length() (n uint64, encoded bool, err error) {
	b, err := t.byte()
	if err != nil {
		return 0, false, err
	}
	switch b >> 6 {
	case 0:
		return uint64(b), false, nil
	case 1:
		low, err := t.byte()
		return uint64(b&63)<<8 | uint64(low), false, err
	case 3:
		return uint64(b & 63), true, nil
	}
	switch b {
	case 0x80:
		n, err = t.big(4)
	case 0x81:
		n, err = t.big(8)
	default:
		err = corrupt("a length that begins with byte %d", b)
	}
	return n, false, err
}

// count reads a length. An encoded string in its place is an error.
func (t *texts) count() (uint64, error) {
	n, encoded, err := t.length()
	if err == nil && encoded {
		err = corrupt("an encoded string in place of a length")
	}
	return n, err
}

// counts skips n lengths.
func (t *texts) counts(n int) error {
	for range n {
		if _, err := t.count(); err != nil {
			return err
		}
	}
	return nil
}

// size reads the length of a string and checks that it is at most t.longest.
func (t *texts) size() (int64, error) {
	n, err := t.count()
	if err != nil {
		return 0, err
	}
	return t.bounded(n)
}

// bounded returns n, the length of a string, or an error if n is greater than t.longest.
func (t *texts) bounded(n uint64) (int64, error) {
	if n > uint64(t.longest) {
		return 0, fmt.Errorf("%w: a string of %d bytes, the longest allowed is %d", ErrLimit, n, t.longest)
	}
	return int64(n), nil
}

// text reads a string, encoded or not, appends it to dst and returns the result. If dst has room
// for the string, dst is not moved: see [parts].
func (t *texts) text(dst []byte) ([]byte, error) {
	n, encoded, err := t.length()
	if err != nil {
		return dst, err
	}
	if encoded {
		return t.encodedText(dst, n)
	}
	size, err := t.bounded(n)
	if err != nil {
		return dst, err
	}
	return t.read(dst, size)
}

// encodedText reads a string whose encoding is kind, decodes it, appends it to dst and returns the
// result. An unknown encoding is an error.
func (t *texts) encodedText(dst []byte, kind uint64) ([]byte, error) {
	switch kind {
	case encodedInt8:
		n, err := t.number(1)
		return strconv.AppendInt(dst, int64(int8(n)), 10), err
	case encodedInt16:
		n, err := t.number(2)
		return strconv.AppendInt(dst, int64(int16(n)), 10), err
	case encodedInt32:
		n, err := t.number(4)
		return strconv.AppendInt(dst, int64(int32(n)), 10), err
	case encodedLZF:
		return t.compressedText(dst)
	}
	return dst, fmt.Errorf("%w encoding %d of a string", ErrUnknown, kind)
}

// compressedText reads a string that is compressed by LZF, decompresses it, appends it to dst and
// returns the result.
func (t *texts) compressedText(dst []byte) ([]byte, error) {
	packed, err := t.size()
	if err != nil {
		return dst, err
	}
	size, err := t.size()
	if err != nil {
		return dst, err
	}
	if size > packed*lzfRatio {
		return dst, corrupt("LZF: %d bytes cannot be %d bytes", packed, size)
	}
	t.packed, err = t.read(t.packed[:0], packed)
	if err != nil {
		return dst, err
	}
	dst, err = unpackLZF(slices.Grow(dst, int(size)), t.packed, int(size))
	t.packed = reusable(t.packed)
	return dst, err
}

// reusable returns b, emptied, or nil if b is too large to be kept.
func reusable(b []byte) []byte {
	if cap(b) > piece {
		return nil
	}
	return b[:0]
}

// skipText skips a string. It does not decompress a compressed string. An unknown encoding is an
// error.
func (t *texts) skipText() error {
	n, encoded, err := t.length()
	switch {
	case err != nil:
		return err
	case !encoded:
		return t.skip(n)
	case n == encodedLZF:
		packed, err := t.count()
		if err == nil {
			err = t.counts(1)
		}
		if err != nil {
			return err
		}
		return t.skip(packed)
	case n > encodedLZF:
		return fmt.Errorf("%w encoding %d of a string", ErrUnknown, n)
	}
	return t.skip(1 << n)
}

// double reads a score in binary form, of eight bytes.
func (t *texts) double() (float64, error) {
	bits, err := t.number(8)
	return math.Float64frombits(bits), err
}

// doubleText reads a score as text, which follows its length (a byte). The lengths 253, 254 and 255
// stand for NaN and the infinities.
func (t *texts) doubleText() (float64, error) {
	n, err := t.byte()
	if err != nil {
		return 0, err
	}
	switch n {
	case 253:
		return math.NaN(), nil
	case 254:
		return math.Inf(1), nil
	case 255:
		return math.Inf(-1), nil
	}
	var room [253]byte
	text, err := t.read(room[:0], int64(n))
	if err != nil {
		return 0, err
	}
	return parseScore(text)
}

// parseScore returns the score in text: a decimal number, or "inf" with or without a sign.
func parseScore(text []byte) (float64, error) {
	switch string(text) {
	case "inf", "+inf":
		return math.Inf(1), nil
	case "-inf":
		return math.Inf(-1), nil
	}
	for _, b := range text {
		if (b < '0' || b > '9') && b != '.' && b != '-' && b != '+' && b != 'e' && b != 'E' {
			return 0, corrupt("a score that is no number")
		}
	}
	score, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0, corrupt("a score that is no number")
	}
	return score, nil
}
