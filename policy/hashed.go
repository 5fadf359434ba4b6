package policy

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// hashed is a hash table whose copies share their common parts. A copy of the struct is a table
// that later changes of the original do not affect, provided that the original is changed under
// another generation from then on. The parameter gen of the methods is the present generation. The
// cost of a change does not depend on the number of values: a change copies some buckets, a part of
// the directory, and the list of the parts.
//
// The directory grows by one bucket at a time (linear hashing, Litwin 1980), so no change has to
// move all of it.
type hashed[V any] struct {
	parts []part[V]
	// buckets is the number of buckets. A hash belongs to the bucket with the index hash & mask or,
	// if there is no such bucket yet, to the one with the index hash & (mask>>1).
	buckets, mask uint64
	count         int
	seed          maphash.Seed
	// gen is the generation in which parts was allocated.
	gen uint64
}

// part is a piece of the directory.
type part[V any] struct {
	buckets []bucket[V]
	// gen is the generation in which buckets was allocated.
	gen uint64
}

// bucket is a set of slots. The slots are replaced and never changed. seen has a bit for the
// highest six bits of each hash, so that most lookups of absent hashes need not read the slots.
type bucket[V any] struct {
	seen  uint64
	slots []slot[V]
}

// bucketOf returns a bucket with the given slots.
func bucketOf[V any](slots []slot[V]) (b bucket[V]) {
	for i := range slots {
		b.seen |= 1 << (slots[i].hash >> 58)
	}
	b.slots = slices.Clip(slots)
	return b
}

// slot is a value and the hash of its name.
type slot[V any] struct {
	hash  uint64
	value V
}

const (
	// partBits is the logarithm of the number of buckets of a part, of 32 bytes each. With
	// 1,000,000 values and 4 per bucket, a part takes as many bytes as the list of the parts.
	partBits = 9
	partMask = 1<<partBits - 1
	// fullLoad and lowLoad are the average numbers of slots per bucket at which a bucket is added
	// or removed. 4 slots are one cache line.
	fullLoad = 4
	lowLoad  = 1
)

// bucket returns the slots among which hash may be, or nil if hash is certainly absent. There must
// be at least one bucket.
func (t *hashed[V]) bucket(hash uint64) []slot[V] {
	i := t.index(hash)
	b := &t.parts[i>>partBits].buckets[i&partMask]
	if b.seen>>(hash>>58)&1 == 0 {
		return nil
	}
	return b.slots
}

func (t *hashed[V]) index(hash uint64) uint64 {
	i := hash & t.mask
	if i >= t.buckets {
		i &= t.mask >> 1
	}
	return i
}

// lookup returns the value that has the given hash and for which is returns true. found is false if
// there is no such value.
func (t *hashed[V]) lookup(hash uint64, is func(V) bool) (v V, found bool) {
	if t.count == 0 {
		return v, false
	}
	for _, s := range t.bucket(hash) {
		if s.hash == hash && is(s.value) {
			return s.value, true
		}
	}
	return v, false
}

// set stores v under hash. It replaces the value that has this hash and for which the function is
// returns true; if there is none, v is a new value.
func (t *hashed[V]) set(gen, hash uint64, v V, is func(V) bool) {
	if t.buckets == 0 {
		t.appendBucket(gen, nil)
	}
	at := t.at(gen, t.index(hash))
	for i, s := range at.slots {
		if s.hash == hash && is(s.value) {
			at.slots = slices.Clone(at.slots)
			at.slots[i].value = v
			return
		}
	}
	*at = bucketOf(append(slices.Clip(at.slots), slot[V]{hash, v}))
	if t.count++; uint64(t.count) > fullLoad*t.buckets {
		t.split(gen)
	}
}

// remove removes the value that has the given hash and for which the function is returns true, and
// reports whether there was one.
func (t *hashed[V]) remove(gen, hash uint64, is func(V) bool) bool {
	if t.count == 0 {
		return false
	}
	i := slices.IndexFunc(t.bucket(hash), func(s slot[V]) bool { return s.hash == hash && is(s.value) })
	if i < 0 {
		return false
	}
	at := t.at(gen, t.index(hash))
	*at = bucketOf(slices.Concat(at.slots[:i], at.slots[i+1:]))
	if t.count--; uint64(t.count) < lowLoad*(t.buckets-1) {
		t.merge(gen)
	}
	return true
}

// each calls f for all values, until f returns false. The result is false if f has returned false.
func (t *hashed[V]) each(f func(V) bool) bool {
	for _, p := range t.parts {
		for _, b := range p.buckets {
			for _, s := range b.slots {
				if !f(s.value) {
					return false
				}
			}
		}
	}
	return true
}

// split adds a bucket. The new bucket gets those slots of an existing bucket whose hashes have one
// more bit set, the highest bit of the new bucket's index.
func (t *hashed[V]) split(gen uint64) {
	bit := highest(t.buckets)
	at := t.at(gen, t.buckets-bit)
	var stay, move []slot[V]
	for _, s := range at.slots {
		if s.hash&bit == 0 {
			stay = append(stay, s)
		} else {
			move = append(move, s)
		}
	}
	*at = bucketOf(stay)
	t.appendBucket(gen, move)
}

// merge removes the last bucket, which must not be the only one, and moves its slots back to the
// bucket from which [hashed.split] took them.
func (t *hashed[V]) merge(gen uint64) {
	last := t.buckets - 1
	moved := t.at(gen, last).slots
	p := &t.parts[last>>partBits]
	p.buckets = p.buckets[:len(p.buckets)-1]
	if len(p.buckets) == 0 {
		t.parts = t.parts[:len(t.parts)-1]
	}
	if t.buckets = last; last <= (t.mask+1)>>1 {
		t.mask >>= 1
	}
	at := t.at(gen, last-highest(last))
	*at = bucketOf(slices.Concat(at.slots, moved))
}

// highest returns the highest bit of n. n must not be 0.
func highest(n uint64) uint64 { return 1 << (bits.Len64(n) - 1) }

// appendBucket appends a bucket with the given slots.
func (t *hashed[V]) appendBucket(gen uint64, slots []slot[V]) {
	t.own(gen)
	if t.buckets&partMask == 0 {
		t.parts = append(t.parts, part[V]{gen: gen})
	}
	p := t.ownPart(gen, len(t.parts)-1)
	p.buckets = append(p.buckets, bucketOf(slots))
	if t.buckets++; t.buckets > t.mask+1 {
		t.mask = t.mask<<1 | 1
	}
}

// at returns a pointer to bucket i, which belongs to the generation gen and may be changed.
func (t *hashed[V]) at(gen, i uint64) *bucket[V] {
	t.own(gen)
	return &t.ownPart(gen, int(i>>partBits)).buckets[i&partMask]
}

func (t *hashed[V]) own(gen uint64) {
	if t.gen != gen {
		t.parts, t.gen = slices.Clone(t.parts), gen
	}
}

func (t *hashed[V]) ownPart(gen uint64, i int) *part[V] {
	p := &t.parts[i]
	if p.gen != gen {
		p.buckets, p.gen = slices.Clone(p.buckets), gen
	}
	return p
}
