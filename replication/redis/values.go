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

// longestKey is the longest key of a command on this server, in bytes.
const longestKey = 16 << 10

// ttlSlack is by how much the expiry of a redis-cell key may be earlier than its TAT, because
// redis-cell rounds.
const ttlSlack = 2 * time.Second

// values makes entries from the values of an RDB, and counts those that this server cannot hold.
type values struct {
	clock     clock.Clock
	databases int
	skipped   *Tally
	// store receives an entry. The value is not used again.
	store func(db int, key []byte, e entry.Entry) error

	// The fields below are the collection that is being read, and the reason why it is skipped.
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

// value takes the next part of a value. After the last one it stores the value.
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

// drop discards the collection.
func (v *values) drop() {
	v.lost = ""
	v.hash, v.set, v.list, v.zset = collection.Hash{}, collection.Set{}, collection.List{}, collection.SortedSet{}
}

// add adds elements to the collection, or returns the reason why it cannot be stored. Collections
// have no bound on elements here, so they are never full. The deltas of their changes are not
// needed.
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

// ends converts Unix time in milliseconds into an instant. 0 means never.
func (v *values) ends(ms int64) limit.Instant {
	if ms == 0 {
		return entry.NoExpiry
	}
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return entry.NoExpiry - 1
	}
	return min(v.clock.Derived(limit.Instant(ms*int64(time.Millisecond))), entry.NoExpiry-1)
}

// text makes an entry from a string. It is a redis-cell key if it has an expiry and is a TAT in
// the future, as in "cellserver import", but only if the number has the form that Redis writes.
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
	if ends.Add(ttlSlack) < e.Expiry { // the expiry was shortened
		e.Expiry, e.Value = ends, gcra.AppendState(nil, tat)
	}
	return e
}
