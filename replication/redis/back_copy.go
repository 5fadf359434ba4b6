package redis

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/rdb"
)

// wholeCopy writes the keyspace as an RDB in steps. Redis refuses an RDB that has a key twice,
// but the steps of a keyspace may return a key again. Such keys are sent as commands after the
// RDB.
type wholeCopy struct {
	steps   *keyspace.Steps
	clock   clock.Clock
	w       *rdb.Writer
	to      bytes.Buffer
	db      int
	skipped *Tally
	// taken has the entries of one step. They are written to the RDB when no lock is held.
	taken []taken
	seen  filter
	// later is called with each key that must be sent after the RDB. ends is called with the
	// expiry of each key that has one.
	later func(n name)
	ends  func(n name, at limit.Instant)
}

// taken is a key with a copy of its entry.
type taken struct {
	name  name
	entry entry.Entry
}

// begin prepares to copy the keys of ks, and writes the header of the RDB. It is called once.
func (c *wholeCopy) begin(ks *keyspace.Keyspace) error {
	keys := 0
	for _, db := range ks.Stats().Databases {
		keys += db.Keys
	}
	c.seen = newFilter(keys)
	c.clock, c.db = ks.Clock(), -1
	c.steps = ks.Steps(func(db int, key []byte, e entry.Entry) {
		if db == keyspace.System { // this database does not exist in a Redis
			return
		}
		e.Value = slices.Clone(e.Value)
		c.taken = append(c.taken, taken{name{db, string(key)}, e})
	})
	c.w = rdb.NewWriter(&c.to)
	return c.w.Header(rdb.Aux{Name: "redis-ver", Value: "7.0.0"}, rdb.Aux{Name: "redis-bits", Value: "64"})
}

// step writes the entries of the next step. filled is out with the new bytes of the RDB. more is
// false at the end of the RDB.
func (c *wholeCopy) step(out []byte) (filled []byte, more bool, err error) {
	c.taken = c.taken[:0]
	if _, more, err = c.steps.Next(true); err != nil {
		return out, false, err
	}
	for i := range c.taken {
		if err := c.write(&c.taken[i]); err != nil {
			return out, false, err
		}
	}
	clear(c.taken)
	if !more {
		err = c.w.End()
		c.close()
	}
	out = append(out, c.to.Bytes()...)
	c.to.Reset()
	return out, more, err
}

// write writes t to the RDB. It counts an entry for which Redis has no equivalent as skipped, and
// passes a key that may be in the RDB already to later.
func (c *wholeCopy) write(t *taken) error {
	e := &t.entry
	switch {
	case !sendable(e.Kind):
		c.skipped.Add(e.Kind.Encoding(), 1)
		return nil
	case !c.seen.add(t.name):
		c.later(t.name)
		return nil
	}
	if e.Expiry != entry.NoExpiry {
		c.ends(t.name, e.Expiry)
	}
	if t.name.db != c.db {
		c.db = t.name.db
		if err := c.w.SelectDB(c.db); err != nil {
			return err
		}
	}
	return c.value([]byte(t.name.key), e)
}

// value writes the key and its entry e to the RDB.
func (c *wholeCopy) value(key []byte, e *entry.Entry) error {
	ms := millis(e, c.clock)
	switch e.Kind {
	case entry.List:
		var l collection.List
		l.Load(e.Value)
		return c.w.List(key, ms, l.Len(), l.Range(0, l.Len()))
	case entry.Set:
		var s collection.Set
		s.Load(e.Value)
		return c.w.Set(key, ms, s.Len(), s.All())
	case entry.Hash:
		var h collection.Hash
		h.Load(e.Value)
		return c.w.Hash(key, ms, h.Len(), h.All())
	case entry.SortedSet:
		var z collection.SortedSet
		z.Load(e.Value)
		return c.w.SortedSet(key, ms, z.Len(), z.RangeDown(0, z.Len()))
	}
	return c.w.String(key, text(e, c.clock), ms)
}

// close ends the copy. It may be called more than once.
func (c *wholeCopy) close() {
	if c.steps != nil {
		c.steps.Close()
	}
	c.steps, c.taken, c.seen = nil, nil, filter{}
}

// filter is a set of names with false positives: for about one name in a billion it reports that
// the name was added before although it was not.
type filter struct {
	seed maphash.Seed
	// table has 32 bits of the hash of each name, which are never 0. The other 32 bits determine
	// the index. If the entry at this index is occupied by another name, the next free entry is
	// used. free is the number of names that may still be added.
	table []uint32
	free  int
}

// newFilter returns a filter for about n names. It takes 8 to 16 bytes for each of them.
func newFilter(n int) filter {
	size := 1 << bits.Len(uint(2*max(n, 1<<10)-1))
	return filter{seed: maphash.MakeSeed(), table: make([]uint32, size), free: size - size/8}
}

// add adds n to the filter. It returns false if n may have been added before, or if the table is
// full.
func (f *filter) add(n name) bool {
	h := maphash.Comparable(f.seed, n)
	mark := uint32(h>>32) | 1
	for i := int(uint32(h)); ; i++ {
		switch place := &f.table[i&(len(f.table)-1)]; {
		case *place == mark:
			return false
		case *place != 0:
		case f.free == 0:
			return false
		default:
			*place = mark
			f.free--
			return true
		}
	}
}
