package keyspace

import (
	"math/bits"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/keyspace/dense"
)

// Ref identifies a key by its database and its name.
type Ref struct {
	DB  int
	Key []byte
}

// keyName identifies a key, as Ref does, where a comparable type is needed.
type keyName struct {
	db  int
	key string
}

// maxShards is the maximum number of shards.
const maxShards = 256

// shardSet is a set of shard indices.
type shardSet [maxShards / 64]uint64

func (b *shardSet) add(i int) { b[i/64] |= 1 << (i % 64) }

func (b *shardSet) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// each calls f with the indices of the set in ascending order.
func (b *shardSet) each(f func(i int)) {
	for w, word := range b {
		for ; word != 0; word &= word - 1 {
			f(w*64 + bits.TrailingZeros64(word))
		}
	}
}

// spot describes one of the keys of a command: hash is its hash, and at its index among these keys.
type spot struct {
	hash uint64
	at   int32
}

// several has the ask of an RL.MULTI and the spots of its keys.
type several struct {
	ask   *decide.Ask
	spots []spot
	grows bool // whether a clause of the present round would create a key
}

func (a *several) key(i int) []byte { return a.ask.Clauses[i].Key }

// maxPrefetch is the maximum number of keys that one call of [dense.Load] loads together.
const maxPrefetch = dense.MostProbes

// known has the keys of the last Prefetch in the given order, in which the commands will use them.
// n is their number, and next the index of the key that is expected next.
type known struct {
	next, n int
	db      int
	keys    [maxPrefetch]knownKey
	probes  [maxPrefetch]dense.Probe
}

// knownKey identifies a key by the address and the length of its bytes.
type knownKey struct {
	at   *byte
	size int
}
