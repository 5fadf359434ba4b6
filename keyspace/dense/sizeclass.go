package dense

// Records lie in vectors by size class. A record number says which class and which
// place in its vector: the class in the upper bits, the chunk and the place in the
// chunk in the others, so that finding a record takes no division.
const (
	classBits = 7
	placeBits = 32 - classBits
	placeMask = 1<<placeBits - 1
)

// sizeClass describes the records of one class.
type sizeClass struct {
	size uint32 // bytes of a record
	per  uint32 // records per chunk
	bits uint8  // bits of the place within a chunk
	mask uint32 // 1<<bits - 1
}

// classes are numbered from 1, so that no record number is 0. Sizes go up by 4 bytes
// at first and by an eighth to a sixteenth later, which is the most that is wasted.
var (
	classes    = makeClasses()
	classTable = makeClassTable()
)

const (
	// maxInline is the longest record; what is longer lies beside.
	maxInline  = 4160
	numClasses = 79
	// maxSlack is less than this much of a record is unused: the header has 9 bits
	// for it.
	maxSlack = 256
)

func makeClasses() (all [numClasses]sizeClass) {
	size, n := uint32(recordHead), 1
	for size <= maxInline {
		c := &all[n]
		c.size, c.per = size, chunkSize/size
		for 1<<c.bits < c.per {
			c.bits++
		}
		c.mask = 1<<c.bits - 1
		n++
		size += classStep(size)
	}
	return all
}

// classStep is how much larger the class after one of that size is.
func classStep(size uint32) uint32 {
	step := uint32(4)
	for size >= 64+16*step {
		step *= 2
	}
	return step
}

// makeClassTable maps the size of a record, in units of 4 bytes rounded up, to the
// smallest class that holds it.
func makeClassTable() (table [maxInline/4 + 1]uint8) {
	class := uint8(1)
	for i := range table {
		for classes[class].size < uint32(i)*4 {
			class++
		}
		table[i] = class
	}
	return table
}

// classOf returns the smallest class of records of at least size bytes, which is
// at most maxInline.
func classOf(size int) uint32 { return uint32(classTable[(size+3)/4]) }

// number returns the record number of the i-th record of a class.
func (c *sizeClass) number(class, i uint32) uint32 {
	return class<<placeBits | i/c.per<<c.bits | i%c.per
}
