package keyspace

import (
	"math/bits"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/keyspace/dense"
)

// Ref names a key of a database.
type Ref struct {
	DB  int
	Key []byte
}

// keyName names a key in maps.
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

// each calls f with the indices in ascending order.
func (b *shardSet) each(f func(i int)) {
	for w, word := range b {
		for ; word != 0; word &= word - 1 {
			f(w*64 + bits.TrailingZeros64(word))
		}
	}
}

// spot is one of the many keys of a command: its hash and its index among them.
type spot struct {
	hash uint64
	at   int32
}

// several is the ask of an RL.MULTI with the spots of its keys.
type several struct {
	ask   *decide.Ask
	spots []spot
	grows bool // a clause would make a new key
}

func (a *several) key(i int) []byte { return a.ask.Clauses[i].Key }

// maxPrefetch is the maximum number of keys that are loaded together.
const maxPrefetch = dense.MostProbes

// known has the keys of the last Prefetch in the order given, in which commands use them.
type known struct {
	next, n int
	db      int
	keys    [maxPrefetch]knownKey
	probes  [maxPrefetch]dense.Probe
}

// knownKey identifies a key by the memory in which it lies.
type knownKey struct {
	at   *byte
	size int
}
