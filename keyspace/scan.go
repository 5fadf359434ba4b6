package keyspace

import (
	"math/rand/v2"

	"github.com/cellserver/cellserver/entry"
)

// shardCursor is the bit at which the index of the shard begins in a SCAN cursor, above the cursor
// of the table. With at most 256 shards a cursor stays below 2^48, which every client can
// represent, JavaScript's numbers included.
const shardCursor = 40

// Scan calls f for the keys of one step of an iteration over db, about count of them, and returns
// the cursor of the next step, or 0 at the end. An iteration begins at cursor 0. Every key that
// exists during the whole iteration is seen at least once, whatever other keys are added, removed
// and moved. A cursor that no Scan has returned is harmless.
//
// f is called with a shard locked: it must not use the keyspace, and key is only
// valid during the call.
func (v *Handle) Scan(db int, cursor uint64, count int, f func(key []byte, k entry.Kind)) (next uint64) {
	return v.scan(db, cursor, count, func(_ *shard, key []byte, e entry.Entry) { f(key, base(e.Kind)) })
}

// ScanEntries is [Handle.Scan] with the whole entries of the keys, which are only valid during the
// call. Together with the effects that happen meanwhile it is a snapshot that stops no command.
func (v *Handle) ScanEntries(db int, cursor uint64, count int, f func(key []byte, e entry.Entry)) (next uint64) {
	var flat []byte
	return v.scan(db, cursor, count, func(s *shard, key []byte, e entry.Entry) {
		if isTree(e.Kind) {
			e = s.whole(db, e, flat)
			flat = e.Value
		}
		f(key, e)
	})
}

func (v *Handle) scan(db int, cursor uint64, count int, f func(s *shard, key []byte, e entry.Entry)) (next uint64) {
	count = max(count, 1)
	i := int(cursor >> shardCursor)
	within := cursor & (1<<shardCursor - 1)
	for looked := 0; i < len(v.ks.shards) && looked < count; {
		n := 0
		within, n = v.scanShard(i, db, within, min(count-looked, scanSlice), f)
		looked += n
		if within == 0 {
			i++
		}
	}
	if i >= len(v.ks.shards) {
		return 0
	}
	return uint64(i)<<shardCursor | within
}

// scanSlice is the maximum number of entries that are examined under one lock.
const scanSlice = 256

// scanShard scans a part of shard i and returns the number of examined entries. That includes
// expired ones, which f does not get: without them a step could last without bound.
func (v *Handle) scanShard(i, db int, cursor uint64, count int, f func(s *shard, key []byte, e entry.Entry)) (next uint64, looked int) {
	s := v.lockAt(i)
	defer v.unlock(s)
	t := s.dbs[db].t
	if t == nil {
		return 0, 0
	}
	next = t.Scan(cursor, count, func(key []byte, e entry.Entry) {
		looked++
		if e.Expiry > s.last {
			f(s, key, e)
		}
	})
	return next, looked
}

// Len returns the number of keys in db as DBSIZE counts them, including expired keys that have not
// been removed yet.
func (v *Handle) Len(db int) int {
	n := 0
	for i := range v.ks.shards {
		n += v.shardLen(i, db)
	}
	return n
}

func (v *Handle) shardLen(i, db int) int {
	s := v.lockAt(i)
	defer v.unlock(s)
	if t := s.dbs[db].t; t != nil {
		return t.Len()
	}
	return 0
}

// randomTries is the number of draws by RandomKey before it takes any key that it finds: nearly all
// keys of a database may have expired.
const randomTries = 100

// RandomKey appends a random key of db to dst. All keys are about equally likely.
func (v *Handle) RandomKey(dst []byte, db int) ([]byte, bool) {
	for range randomTries {
		n := v.Len(db)
		if n == 0 {
			return dst, false
		}
		if out, ok := v.drawn(dst, db, rand.IntN(n)); ok {
			return out, true
		}
	}
	found := false
	for cursor := uint64(0); !found; {
		cursor = v.Scan(db, cursor, 1, func(key []byte, _ entry.Kind) {
			if !found {
				dst, found = append(dst, key...), true
			}
		})
		if cursor == 0 {
			break
		}
	}
	return dst, found
}

// drawn appends a random key of the shard that has the n-th key of db. It reports whether that key
// is alive.
func (v *Handle) drawn(dst []byte, db, n int) ([]byte, bool) {
	for i := range v.ks.shards {
		if l := v.shardLen(i, db); n >= l {
			n -= l
			continue
		}
		return v.drawnFrom(dst, db, i)
	}
	return dst, false
}

func (v *Handle) drawnFrom(dst []byte, db, i int) ([]byte, bool) {
	s := v.lockAt(i)
	defer v.unlock(s)
	t := s.dbs[db].t
	if t == nil || t.Len() == 0 {
		return dst, false
	}
	key, e := t.At(t.Random(rand.Uint64()))
	if e.Expiry <= s.last {
		return dst, false
	}
	return append(dst, key...), true
}
