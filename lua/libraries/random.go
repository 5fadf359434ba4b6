package libraries

import "math/rand/v2"

// random is the generator of drand48, X' = aX + c modulo 2^48, which Redis uses for math.random.
// Each run starts at a random state. Limiters in Lua name the entries of a sorted set by their time
// and math.random. If every run had the same numbers, several calls at one instant would add one
// entry, and the limiter would admit all of them.
type random struct{ x uint64 }

const (
	randomA   = 0x5DEECE66D
	randomC   = 0xB
	randomLow = 0x330E
	randomMax = 1<<31 - 1
	randomX   = 1<<48 - 1
	// unseeded marks a generator without a state. The generator itself never has this state.
	unseeded = 1 << 63
)

// restart makes the next number start from a random state. The state is drawn only then, so that
// scripts without random numbers do not pay for it.
func (r *random) restart() { r.x = unseeded }

func (r *random) seed(n int32) { r.x = uint64(uint32(n))<<16 | randomLow }

func (r *random) next() int32 {
	if r.x == unseeded {
		r.x = rand.Uint64() & randomX
	}
	r.x = (r.x*randomA + randomC) & randomX
	return int32(r.x >> 17)
}
