package acl

// bits is a set of the numbers of commands.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) has(id int) bool { return b[id/64]&(1<<(id%64)) != 0 }

// set adds id to the set if in is true, and removes it otherwise.
func (b bits) set(id int, in bool) {
	if in {
		b[id/64] |= 1 << (id % 64)
	} else {
		b[id/64] &^= 1 << (id % 64)
	}
}

// full reports whether every bit is set, including the unused bits of the last word, which only
// fill sets.
func (b bits) full() bool {
	for _, word := range b {
		if word != ^uint64(0) {
			return false
		}
	}
	return true
}

func (b bits) empty() bool {
	for _, word := range b {
		if word != 0 {
			return false
		}
	}
	return true
}

// fill sets every bit, including the unused ones, if in is true, and clears every bit otherwise.
func (b bits) fill(in bool) {
	word := uint64(0)
	if in {
		word = ^word
	}
	for i := range b {
		b[i] = word
	}
}
