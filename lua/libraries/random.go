package libraries

// random is drand48's generator, as Redis uses it for math.random: X' = aX + c
// modulo 2^48. Every run starts from seed 0, so that a script is a function of
// its arguments and of what its commands answer.
type random struct{ x uint64 }

const (
	randomA   = 0x5DEECE66D
	randomC   = 0xB
	randomLow = 0x330E
	randomMax = 1<<31 - 1
)

func (r *random) seed(n int32) { r.x = uint64(uint32(n))<<16 | randomLow }

func (r *random) next() int32 {
	r.x = (r.x*randomA + randomC) & (1<<48 - 1)
	return int32(r.x >> 17)
}
