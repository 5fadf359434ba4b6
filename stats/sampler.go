package stats

import (
	"math"
	"math/rand/v2"
)

const (
	// exactCalls is how many calls of a batch are each counted. Of the calls after that, one of
	// every sampleCalls represents all of them.
	exactCalls  = 4
	sampleCalls = 8
)

// Sampler selects the calls of a worker that are counted.
type Sampler struct {
	// until is the number of calls before the next counted one. rest is its value for the calls
	// after the individually counted ones. exact is the number of individually counted calls in
	// this batch.
	until, rest, exact int
	place              int // which of the present sampleCalls calls is counted
	random             uint32
}

// NewSampler returns a sampler. Different samplers select different calls.
func NewSampler() Sampler {
	s := Sampler{random: rand.Uint32() | 1}
	s.place = int(s.random % sampleCalls)
	s.rest = s.place + 1
	return s
}

// Due reports whether the next call is to be counted.
func (s *Sampler) Due() bool {
	s.until--
	return s.until < 0
}

// Weight returns how many calls a due call represents.
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

// Chance is a probability of one in n calls, in the form that Skip needs.
type Chance float64

// OneIn returns the chance of one in n calls. n must be above 1.
func OneIn(n int) Chance { return Chance(1 / math.Log1p(-1/float64(n))) }

// Skip returns how many calls to skip before the next counted one, if each call is counted
// independently with the probability of. The order of calls and the length of pipelines then do not
// bias the counts. The number is geometrically distributed; it is computed by inversion.
func (s *Sampler) Skip(of Chance) int {
	u := (float64(s.Random()) + 0.5) / (1 << 32) // never 0, and never 1
	return int(math.Log(u) * float64(of))
}

// Random returns the next number of a sequence with the period 2^32 - 1.
func (s *Sampler) Random() uint32 {
	s.random ^= s.random << 13
	s.random ^= s.random >> 17
	s.random ^= s.random << 5
	return s.random
}

// Exact reports whether all calls of the batch so far were each counted.
func (s *Sampler) Exact() bool { return s.exact < exactCalls }

// EndBatch makes the sampler count the next calls individually again.
func (s *Sampler) EndBatch() {
	if s.exact == exactCalls {
		s.rest = s.until + 1
	}
	s.exact, s.until = 0, 0
}
