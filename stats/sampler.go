package stats

import (
	"math"
	"math/rand/v2"
)

const (
	// exactCalls is how many calls of a batch are counted one by one. Of those beyond, one of
	// every sampleCalls stands for all of them.
	exactCalls  = 4
	sampleCalls = 8
)

// Sampler says which calls of a worker are counted.
type Sampler struct {
	// until is how many calls are left before the next that counts; rest is until beyond the
	// calls that are counted one by one, of which there were exact in this batch.
	until, rest, exact int
	place              int // which of the sampleCalls calls counts that are running
	random             uint32
}

// NewSampler returns a sampler, each of which counts other calls.
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

// Weight returns for how many calls one stands that is due.
func (s *Sampler) Weight() int64 {
	if s.exact < exactCalls {
		if s.exact++; s.exact == exactCalls {
			s.until = s.rest - 1
		}
		return 1
	}
	// Of each sampleCalls calls a random one counts, so that no order of keys in a pipeline
	// is counted wrongly.
	next := int(s.Random() % sampleCalls)
	s.until = sampleCalls - s.place + next - 1
	s.place = next
	return sampleCalls
}

// Chance is the probability of one call in so many, as Skip needs it.
type Chance float64

// OneIn returns the chance of one call in n, which is above 1.
func OneIn(n int) Chance { return Chance(1 / math.Log1p(-1/float64(n))) }

// Skip returns how many calls to pass over before the next that counts, if each call counts with the
// probability of, whatever became of the others. No order of calls, and no length of pipelines, is
// then counted wrongly. The number is geometrically distributed, by inversion.
func (s *Sampler) Skip(of Chance) int {
	u := (float64(s.Random()) + 0.5) / (1 << 32) // never 0, and never 1
	return int(math.Log(u) * float64(of))
}

// Random returns the next of a sequence that repeats itself after 2^32 - 1 numbers.
func (s *Sampler) Random() uint32 {
	s.random ^= s.random << 13
	s.random ^= s.random >> 17
	s.random ^= s.random << 5
	return s.random
}

// Exact reports whether the calls of the batch have been counted one by one so far.
func (s *Sampler) Exact() bool { return s.exact < exactCalls }

// EndBatch has the next calls counted one by one again.
func (s *Sampler) EndBatch() {
	if s.exact == exactCalls {
		s.rest = s.until + 1
	}
	s.exact, s.until = 0, 0
}
