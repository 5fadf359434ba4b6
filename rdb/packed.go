package rdb

// item is an entry of a packed encoding: a string, or a number.
type item struct {
	text   []byte
	number int64
	isText bool
}

// packed is a value or a node in one string. next returns its entries in order, and false after the
// last one, if all counts and sizes in the encoding were right. An item is a slice of the string.
type packed interface {
	next() (e item, more bool, err error)
}

// cursor is a position in a packed encoding. Reading beyond the end sets short and returns zeros.
type cursor struct {
	rest  []byte
	short bool
}

// take reads n bytes.
func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.short, c.rest = true, nil
		return nil
	}
	taken := c.rest[:n:n]
	c.rest = c.rest[n:]
	return taken
}

// little reads an unsigned number of n bytes, the least significant first.
func (c *cursor) little(n int) (v uint64) {
	for i, b := range c.take(uint64(n)) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

// big reads an unsigned number of n bytes, the most significant first.
func (c *cursor) big(n int) (v uint64) {
	for _, b := range c.take(uint64(n)) {
		v = v<<8 | uint64(b)
	}
	return v
}

// signed reads a number of n bytes in two's complement, the least significant first.
func (c *cursor) signed(n int) int64 {
	unused := 64 - 8*n
	return int64(c.little(n)<<unused) >> unused
}

// counted reports whether a count of 16 bits may announce n entries like this.
func counted(announced, n uint64) bool {
	return announced == n || announced == 0xffff && n >= 0xffff
}
