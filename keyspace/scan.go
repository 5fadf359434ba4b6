package keyspace

import (
	"math/rand/v2"

	"github.com/cellserver/cellserver/entry"
)

// shardCursor is the number of the bit of a SCAN cursor at which the index of the shard begins. The
// bits below are the cursor of the table. With at most 256 shards a cursor stays below 2^48, so
// that every client can represent it, even as a number of JavaScript.
const shardCursor = 40

// Scan calls f for the keys of one step of an iteration over database db, and returns the cursor of
// the next step, or 0 at the end. A step examines about count entries. An iteration begins at
// cursor 0. Every key that exists during the whole iteration is passed to f at least once, whatever
// other keys are added, removed and moved. A cursor that Scan has never returned is harmless.
//
// f is called with a shard locked: it must not use the keyspace. key is valid only during the call.
func (v *Handle) Scan(db int, cursor uint64, count int, f func(key []byte, k entry.Kind)) (next uint64) {
	return v.scan(db, cursor, count, func(_ *shard, key []byte, e entry.Entry) { f(key, base(e.Kind)) })
}

// ScanEntries does what [Handle.Scan] does, but passes the whole entries of the keys to f. key and
// e are valid only during the call. The entries of an iteration, together with the effects that
// happen during the iteration, are a snapshot of the database, and taking it stops no command.
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

// scan does what Scan does, but f also gets the locked shard, and entries in the form in which they
// are stored, trees included.
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

// scanSlice is about the maximum number of entries that are examined under one lock.
const scanSlice = 256

// scanShard scans a part of the shard with index i, from the table's cursor. It calls f for the
// entries that have not expired. next is the table's next cursor, and looked is the number of
// examined entries. Expired entries count as examined; otherwise a step could last without bound.
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

// Len returns the number of keys in database db as DBSIZE counts them, including expired keys that
// have not been removed yet. It locks one shard after another.
func (v *Handle) Len(db int) int {
	n := 0
	for i := range v.ks.shards {
		n += v.shardLen(i, db)
	}
	return n
}

// shardLen returns the number of entries of database db in the shard with index i.
func (v *Handle) shardLen(i, db int) int {
	s := v.lockAt(i)
	defer v.unlock(s)
	if t := s.dbs[db].t; t != nil {
		return t.Len()
	}
	return 0
}

// randomTries is the maximum number of random draws by RandomKey. Nearly all keys of a database may
// have expired; then RandomKey takes the first live key that it finds.
const randomTries = 100

// RandomKey appends a random key of database db to dst and returns the result. All keys are about
// equally likely. The second result is false if the database has no key that has not expired.
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

// drawn chooses the shard that has the n-th key of database db, and appends a random key of that
// shard to dst. If the drawn key has expired, drawn appends nothing and returns false.
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

// drawnFrom appends a random key of database db in the shard with index i to dst. If the drawn key
// has expired, it appends nothing and returns false.
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
