package tokenbucket_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// random draws numbers of all sizes. The same seed gives the same numbers.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 1))} }

// upTo returns a number from 0 to most with a uniform length in bits, so that small numbers are as
// common as large ones.
func (r random) upTo(most int64) int64 {
	if most <= 0 {
		return 0
	}
	bits := 0
	for m := most; m > 0; m >>= 1 {
		bits++
	}
	n := int64(r.Uint64() >> 1 >> (63 - r.IntN(bits+1)))
	return min(n, most)
}

// encode encodes numbers as the codec does.
func encode(numbers ...any) []byte {
	var value []byte
	for _, n := range numbers {
		switch n := n.(type) {
		case int64:
			value = binary.LittleEndian.AppendUint64(value, uint64(n))
		case float64:
			value = binary.LittleEndian.AppendUint64(value, math.Float64bits(n))
		}
	}
	return value
}
