package dense

// A probe examines the slots of a segment one after another, from the home index on, which the
// lower bits of the hash give. Deleting a slot moves back the slots that it had displaced. So there
// are no tombstones, and a probe ends at the first empty slot.

const slotMask = segmentSlots - 1

func slotOf(hash, number uint32) uint64 { return uint64(hash)<<32 | uint64(number) }

func slotHash(s uint64) uint32 { return uint32(s >> 32) }

func slotNumber(s uint64) uint32 { return uint32(s) }

// put stores the slot s at the first empty index from its home on. There must be at least two empty
// slots.
func (g *segment) put(s uint64) {
	i := slotHash(s) & slotMask
	for g[i] != 0 {
		i = (i + 1) & slotMask
	}
	g[i] = s
}

// index returns the index of the slot s. It panics if the segment does not have s.
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

// delete empties the slot at i and moves back the slots behind it that the gap would separate from
// their homes.
func (g *segment) delete(i uint32) {
	for j := (i + 1) & slotMask; g[j] != 0; j = (j + 1) & slotMask {
		// A slot whose home index is after the gap stays.
		home := slotHash(g[j]) & slotMask
		if (j-home)&slotMask >= (j-i)&slotMask {
			g[i] = g[j]
			i = j
		}
	}
	g[i] = 0
}

// divide moves the slots whose hash has bit set to other, which must be empty. stayed is the number
// of slots that stayed, and went is the number of slots that were moved.
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

// absorb adds all slots of other to g.
func (g *segment) absorb(other *segment) {
	for _, s := range other {
		if s != 0 {
			g.put(s)
		}
	}
}
