package dense

// Each size class has a vector with its records. The upper bits of a record number are the class.
// The lower bits are the index of the chunk in the vector, followed by the place in the chunk. So
// finding a record takes no division.
const (
	classBits = 7
	placeBits = 32 - classBits
	placeMask = 1<<placeBits - 1
)

// sizeClass describes the records of one class.
type sizeClass struct {
	size uint32 // size of a record in bytes, slack included
	per  uint32 // number of records in a chunk
	bits uint8  // number of low bits of a record number that give the place within a chunk
	mask uint32 // the mask for these bits: 1<<bits - 1
}

// classes has the size classes, numbered from 1, so that no record number is 0. The sizes increase
// by 4 bytes at first, and later by less than an eighth. A record wastes less than the increase.
var (
	classes    = makeClasses()
	classTable = makeClassTable()
)

const (
	// maxInline is the maximum size of a record in bytes. Key and value of a longer entry are
	// stored in a blob.
	maxInline  = 4160
	numClasses = 79
	// maxSlack is greater than the number of unused bytes of any record. The header has 9 bits for
	// that number.
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

// classStep returns the difference in bytes between the class whose records have size bytes and the
// next larger class.
func classStep(size uint32) uint32 {
	step := uint32(4)
	for size >= 64+16*step {
		step *= 2
	}
	return step
}

// makeClassTable returns a table that maps the size of a record, in units of 4 bytes rounded up, to
// the smallest class whose records are at least that long.
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

// classOf returns the smallest class whose records have at least size bytes. size must not exceed
// maxInline.
func classOf(size int) uint32 { return uint32(classTable[(size+3)/4]) }

// number returns the record number of the i-th record of c, counted from 0. class is the number of
// c in classes.
func (c *sizeClass) number(class, i uint32) uint32 {
	return class<<placeBits | i/c.per<<c.bits | i%c.per
}
