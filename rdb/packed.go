package rdb

// item is an entry of a packed encoding: the string text if isText is true, otherwise number.
type item struct {
	text   []byte
	number int64
	isText bool
}

// packed decodes a value, or a node of a value, that is packed in one string. next returns one
// entry after another. After the last entry more is false. The error says that the encoding is
// invalid; at the end it may also say that a count or size was wrong. The text of an item is a part
// of the string.
type packed interface {
	next() (e item, more bool, err error)
}

// cursor is a position in a packed encoding. rest has the bytes that were not read yet. Reading
// beyond the end sets short and returns zeros.
type cursor struct {
	rest  []byte
	short bool
}

// take reads and returns n bytes; nil if there are fewer.
func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.short, c.rest = true, nil
		return nil
	}
	taken := c.rest[:n:n]
	c.rest = c.rest[n:]
	return taken
}

// little reads an unsigned number of n bytes, the least significant byte first.
func (c *cursor) little(n int) (v uint64) {
	for i, b := range c.take(uint64(n)) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

// big reads an unsigned number of n bytes, the most significant byte first.
func (c *cursor) big(n int) (v uint64) {
	for _, b := range c.take(uint64(n)) {
		v = v<<8 | uint64(b)
	}
	return v
}

// signed reads a number of n bytes in two's complement, the least significant byte first.
func (c *cursor) signed(n int) int64 {
	unused := 64 - 8*n
	return int64(c.little(n)<<unused) >> unused
}

// counted reports whether announced, a count of 16 bits, is right for n entries: 65535 stands for
// all larger counts, too.
func counted(announced, n uint64) bool {
	return announced == n || announced == 0xffff && n >= 0xffff
}
