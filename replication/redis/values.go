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

// longestKey is the maximum number of bytes of a key in a command on this server.
const longestKey = 16 << 10

// ttlSlack is the time by which the expiry of a redis-cell key may be earlier than its TAT,
// because redis-cell rounds.
const ttlSlack = 2 * time.Second

// values converts the values of an RDB into entries, and counts the values that this server
// cannot store.
type values struct {
	clock     clock.Clock
	databases int
	skipped   *Tally
	// store gets each entry. It may keep the entry's Value.
	store func(db int, key []byte, e entry.Entry) error

	// These fields have the collection that is being read, and the reason why its key is skipped,
	// "" if it is not.
	hash collection.Hash
	set  collection.Set
	list collection.List
	zset collection.SortedSet
	lost string
}

// visitor returns the visitor that makes an RDB reader pass all values to v.
func (v *values) visitor() *rdb.Visitor {
	return &rdb.Visitor{Value: v.value, Skipped: v.skip}
}

// skip counts a value that the RDB reader has skipped.
func (v *values) skip(s rdb.Skipped) error {
	v.skipped.Add(s.What, 1)
	return nil
}

// value adds part to the value of key. After the last part it stores the value, or counts it as
// skipped.
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

// begin prepares for the value of key. If the key cannot be stored, because its database does not
// exist here or its name is too long, begin sets v.lost to the reason.
func (v *values) begin(key *rdb.Key) {
	v.drop()
	switch {
	case key.DB < 0 || key.DB >= v.databases:
		v.lost = fmt.Sprintf("in a database beyond %d", v.databases-1)
	case len(key.Name) > longestKey:
		v.lost = fmt.Sprintf("a key of more than %d bytes", longestKey)
	}
}

// drop discards the collection and the reason for skipping it.
func (v *values) drop() {
	v.lost = ""
	v.hash, v.set, v.list, v.zset = collection.Hash{}, collection.Set{}, collection.List{}, collection.SortedSet{}
}

// add adds elements to the collection, and returns the reason why the collection cannot be
// stored, "" if it can. Collections have no limit for elements here, so errors of adding do not
// occur. The deltas that record the changes are not needed and are reset.
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

// ends converts ms, a Unix time in milliseconds, into an instant. If ms is 0, it returns
// entry.NoExpiry. An instant that is too late is replaced by the last one before entry.NoExpiry.
func (v *values) ends(ms int64) limit.Instant {
	if ms == 0 {
		return entry.NoExpiry
	}
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return entry.NoExpiry - 1
	}
	return min(v.clock.Derived(limit.Instant(ms*int64(time.Millisecond))), entry.NoExpiry-1)
}

// text returns the entry for a string with an expiry in milliseconds of Unix time, 0 for none. The
// string is a redis-cell key if it has an expiry and is a TAT in the future, in the form in which
// Redis writes numbers. "cellserver import" uses the same rule, but accepts other forms of numbers.
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
	if ends.Add(ttlSlack) < e.Expiry { // a command has shortened the expiry
		e.Expiry, e.Value = ends, gcra.AppendState(nil, tat)
	}
	return e
}
