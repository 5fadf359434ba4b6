package redis

import (
	"fmt"
	"math"
	"time"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/rdb"
)

// longestKey is the longest key that a command may name here.
const longestKey = 16 << 10

// ttlSlack is how much earlier than its TAT redis-cell may have a key end, for it rounds.
const ttlSlack = 2 * time.Second

// values makes entries of the values of an RDB, and counts those that there is no room for.
type values struct {
	clock     clock.Clock
	databases int
	skipped   *Tally
	// store gets an entry. Its value is not used again.
	store func(db int, key []byte, e entry.Entry) error

	// What follows is the collection that is being read, and why it is passed over.
	hash collection.Hash
	set  collection.Set
	list collection.List
	zset collection.SortedSet
	lost string
}

func (v *values) visitor() *rdb.Visitor {
	return &rdb.Visitor{Value: v.value, Skipped: v.skip}
}

func (v *values) skip(s rdb.Skipped) error {
	v.skipped.Add(s.What, 1)
	return nil
}

// value takes the next part of a value, and stores it with the last.
func (v *values) value(key *rdb.Key, part rdb.Part) error {
	if part.First {
		v.begin(key)
	}
	if v.lost == "" {
		v.lost = v.add(key.Kind, part.Elements)
	}
	if !part.Last {
		return nil
	}
	defer v.drop()
	if v.lost != "" {
		v.skipped.Add(v.lost, 1)
		return nil
	}
	e := entry.Entry{Expiry: v.ends(key.Expire)}
	switch key.Kind {
	case rdb.String:
		e = v.text(part.Text, key.Expire)
	case rdb.List:
		e.Kind, e.Value = entry.List, v.list.AppendFlat(nil)
	case rdb.Set:
		e.Kind, e.Value = entry.Set, v.set.AppendFlat(nil)
	case rdb.Hash:
		e.Kind, e.Value = entry.Hash, v.hash.AppendFlat(nil)
	case rdb.SortedSet:
		e.Kind, e.Value = entry.SortedSet, v.zset.AppendFlat(nil)
	}
	return v.store(key.DB, key.Name, e)
}

// begin decides whether a key can be stored.
func (v *values) begin(key *rdb.Key) {
	v.drop()
	switch {
	case key.DB < 0 || key.DB >= v.databases:
		v.lost = fmt.Sprintf("in a database beyond %d", v.databases-1)
	case len(key.Name) > longestKey:
		v.lost = fmt.Sprintf("a key of more than %d bytes", longestKey)
	}
}

// drop forgets the collection.
func (v *values) drop() {
	v.lost = ""
	v.hash, v.set, v.list, v.zset = collection.Hash{}, collection.Set{}, collection.List{}, collection.SortedSet{}
}

// add adds elements to the collection, or says why it cannot be stored. Without a bound on
// elements no collection is full, and what their changes leave behind is not needed.
func (v *values) add(kind rdb.Kind, elements []rdb.Element) (lost string) {
	for i := range elements {
		e := &elements[i]
		switch kind {
		case rdb.List:
			_ = v.list.PushBack(e.Name)
		case rdb.Set:
			_, _ = v.set.Add(e.Name)
		case rdb.Hash:
			if e.Expire != 0 {
				return "a hash with fields that expire"
			}
			_, _ = v.hash.Set(e.Name, e.Value)
		case rdb.SortedSet:
			_, _ = v.zset.Set(e.Name, e.Score)
		}
	}
	v.hash.ResetDelta()
	v.set.ResetDelta()
	v.list.ResetDelta()
	v.zset.ResetDelta()
	return ""
}

// ends turns a civil time in milliseconds, 0 for never, into an instant.
func (v *values) ends(ms int64) limit.Instant {
	if ms == 0 {
		return entry.NoExpiry
	}
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return entry.NoExpiry - 1
	}
	return min(v.clock.Derived(limit.Instant(ms*int64(time.Millisecond))), entry.NoExpiry-1)
}

// text makes an entry of a string: redis-cell's if it is a TAT that has not passed and has
// an expiry, as for "cellserver import", but only of a number as Redis writes it.
func (v *values) text(text []byte, expire int64) entry.Entry {
	ends := v.ends(expire)
	plain := entry.Entry{Kind: entry.String, Expiry: ends, Value: text}
	if expire == 0 || !entry.IsInteger(text) {
		return plain
	}
	tat, err := gcra.ParseDecimal(text)
	if err != nil {
		return plain
	}
	tat = v.clock.Derived(tat)
	if tat <= v.clock.Now() {
		return plain
	}
	e := entry.Entry{Kind: entry.Cell, Expiry: min(tat, entry.NoExpiry-1)}
	if ends.Add(ttlSlack) < e.Expiry { // somebody has shortened it
		e.Expiry, e.Value = ends, gcra.AppendState(nil, tat)
	}
	return e
}
