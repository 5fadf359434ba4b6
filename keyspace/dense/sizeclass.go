package dense

// Records lie in vectors by size class. The upper bits of a record number are the class, the lower
// bits the chunk in the vector of the class and the place in the chunk, so that finding a record
// takes no division.
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

// classes are numbered from 1, so that no record number is 0. Sizes increase by 4 bytes at first
// and later by an eighth to a sixteenth, which is the maximum that is wasted.
var (
	classes    = makeClasses()
	classTable = makeClassTable()
)

const (
	// maxInline is the size of the longest record; longer entries are stored beside.
	maxInline  = 4160
	numClasses = 79
	// maxSlack bounds the unused bytes of a record, which are always fewer: the header has 9 bits
	// for their number.
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

// classStep returns the difference between a class of that size and the next larger class.
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
