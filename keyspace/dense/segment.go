package dense

// The slots of a segment are probed one after another from the index given by the lower bits of the
// hash. Deleting a slot moves back the slots that it had displaced. So there are no tombstones, and
// a probe ends at the first empty slot.

const slotMask = segmentSlots - 1

func slotOf(hash, number uint32) uint64 { return uint64(hash)<<32 | uint64(number) }

func slotHash(s uint64) uint32 { return uint32(s >> 32) }

func slotNumber(s uint64) uint32 { return uint32(s) }

// put adds a slot. There must be two empty slots at least.
func (g *segment) put(s uint64) {
	i := slotHash(s) & slotMask
	for g[i] != 0 {
		i = (i + 1) & slotMask
	}
	g[i] = s
}

// index returns the index of slot s, which must exist.
func (g *segment) index(s uint64) uint32 {
	i := slotHash(s) & slotMask
	for g[i] != s {
		if g[i] == 0 {
			panic("dense: a record is not in the index")
		}
		i = (i + 1) & slotMask
	}
	return i
}

// delete empties the slot at i and closes the gap.
func (g *segment) delete(i uint32) {
	for j := (i + 1) & slotMask; g[j] != 0; j = (j + 1) & slotMask {
		// A slot whose home is after the gap stays.
		home := slotHash(g[j]) & slotMask
		if (j-home)&slotMask >= (j-i)&slotMask {
			g[i] = g[j]
			i = j
		}
	}
	g[i] = 0
}

// divide moves the slots whose hash has bit to other, which is empty, and returns how many slots
// stayed and how many were moved.
func (g *segment) divide(bit uint32, other *segment) (stayed, went uint16) {
	all := *g
	*g = segment{}
	for _, s := range all {
		switch {
		case s == 0:
		case slotHash(s)&bit == 0:
			g.put(s)
			stayed++
		default:
			other.put(s)
			went++
		}
	}
	return stayed, went
}

// absorb adds all slots of other.
func (g *segment) absorb(other *segment) {
	for _, s := range other {
		if s != 0 {
			g.put(s)
		}
	}
}
