package stats

import (
	"math"
	"math/rand/v2"
)

const (
	// exactCalls is the number of calls of a batch that are each counted. Of the calls after these,
	// one of every sampleCalls is counted and represents all sampleCalls.
	exactCalls  = 4
	sampleCalls = 8
)

// Sampler selects the calls of a worker that are counted. Only the worker's goroutine may use it.
type Sampler struct {
	// until is the number of calls before the next counted one. exact is the number of calls of
	// this batch that were counted individually. rest is the value of until with which sampling
	// continues when exact reaches exactCalls.
	until, rest, exact int
	place              int // index of the counted call among the present sampleCalls calls
	random             uint32
}

// NewSampler returns a sampler with a random beginning, so that different samplers select different
// calls.
func NewSampler() Sampler {
	s := Sampler{random: rand.Uint32() | 1}
	s.place = int(s.random % sampleCalls)
	s.rest = s.place + 1
	return s
}

// Due reports whether the next call is to be counted, and advances to the call after it. If it
// returns true, the caller must call Weight.
func (s *Sampler) Due() bool {
	s.until--
	return s.until < 0
}

// Weight returns the number of calls that the due call represents, and selects the next call.
func (s *Sampler) Weight() int64 {
	if s.exact < exactCalls {
		if s.exact++; s.exact == exactCalls {
			s.until = s.rest - 1
		}
		return 1
	}
	// A random one of each sampleCalls calls is counted, so that the order of keys in a pipeline
	// does not bias the counts.
	next := int(s.Random() % sampleCalls)
	s.until = sampleCalls - s.place + next - 1
	s.place = next
	return sampleCalls
}

// Chance is the probability that a call is counted, in the form that Skip needs.
type Chance float64

// OneIn returns the chance of one in n. n must be greater than 1.
func OneIn(n int) Chance { return Chance(1 / math.Log1p(-1/float64(n))) }

// Skip returns the number of calls to skip before the next counted one, if each call is counted
// independently with the probability of. Then neither the order of calls nor the length of
// pipelines biases the counts. The number has a geometric distribution; Skip computes it by
// inversion.
func (s *Sampler) Skip(of Chance) int {
	u := (float64(s.Random()) + 0.5) / (1 << 32) // u is greater than 0 and less than 1
	return int(math.Log(u) * float64(of))
}

// Random returns the next number of a pseudo-random sequence with the period 2^32 - 1 (xorshift).
// It is never 0.
func (s *Sampler) Random() uint32 {
	s.random ^= s.random << 13
	s.random ^= s.random >> 17
	s.random ^= s.random << 5
	return s.random
}

// Exact reports whether every call of the batch so far was counted, and the next one will be, too.
func (s *Sampler) Exact() bool { return s.exact < exactCalls }

// EndBatch ends a batch: the sampler counts the first calls of the next batch individually again.
func (s *Sampler) EndBatch() {
	if s.exact == exactCalls {
		s.rest = s.until + 1
	}
	s.exact, s.until = 0, 0
}
