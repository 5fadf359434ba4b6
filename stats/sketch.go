package stats

import (
	"math"
	"math/bits"
)

// Sketch estimates the number of distinct items in 256 bytes. It is the HyperLogLog of Flajolet,
// Fusy, Gandouet and Meunier ("HyperLogLog: the analysis of a near-optimal cardinality estimation
// algorithm", 2007) with 256 registers. Its standard error is 6.5 %; up to a few dozen items it is
// nearly exact. The zero value is empty.
type Sketch [sketchRegisters]uint8

const (
	sketchBits      = 8
	sketchRegisters = 1 << sketchBits
)

// Add adds an item. hash is a hash of the item, all of whose 64 bits must be well mixed.
func (s *Sketch) Add(hash uint64) {
	r := hash >> (64 - sketchBits)
	// The set bit bounds the rank of a hash whose other bits are zero.
	rank := uint8(bits.LeadingZeros64(hash<<sketchBits|1<<(sketchBits-1))) + 1
	s[r] = max(s[r], rank)
}

// Merge adds all items of o to s.
func (s *Sketch) Merge(o *Sketch) {
	for i := range s {
		s[i] = max(s[i], o[i])
	}
}

// Estimate returns the approximate number of distinct items that were added.
func (s *Sketch) Estimate() int64 {
	const m = float64(sketchRegisters)
	sum, empty := 0.0, 0
	for _, rank := range s {
		sum += math.Ldexp(1, -int(rank))
		if rank == 0 {
			empty++
		}
	}
	estimate := 0.7213 / (1 + 1.079/m) * m * m / sum
	if estimate <= 2.5*m && empty > 0 {
		estimate = m * math.Log(m/float64(empty))
	}
	return int64(math.Round(estimate))
}
