package hotkeys

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
)

// Summary has the most frequent keys of one server, for servers that share a store.
type Summary struct{ tops [kinds]top }

// top has the most frequent keys of one kind, in the order of RL.TOP.
type top struct {
	keys  []Key
	total int64 // number of calls on all keys
	// omitted is the maximum of the counts of keys that are left out.
	omitted int64
}

// These are the bounds of a summary of one kind: the number of its keys and their bytes.
const (
	summaryKeys  = 500
	summaryBytes = 20 << 10 // bytes of the keys, with an overhead for each
	summaryEach  = 32
)

// Summary returns the most frequent keys of each kind as of the instant now: at most 500 of a kind, and fewer if their
// names have more than 20 KiB.
func (k *Keys) Summary(now limit.Instant) Summary {
	var s Summary
	for kind := range s.tops {
		keys, total := k.count(Kind(kind), now)
		slices.SortFunc(keys, byCount)
		t := &s.tops[kind]
		t.total = total
		size := 0
		for i := range keys {
			if size += summaryEach + len(keys[i].Name); i == summaryKeys || size > summaryBytes {
				t.omitted, keys = keys[i].Count, keys[:i]
				break
			}
		}
		t.keys = keys
	}
	return s
}

// summaryVersion is the first byte of a summary.
const summaryVersion = 1

// Append appends the bytes of the summary, at most 64 KiB, to dst.
func (s *Summary) Append(dst []byte) []byte {
	dst = append(dst, summaryVersion)
	for i := range s.tops {
		t := &s.tops[i]
		for _, n := range [...]int64{t.total, t.omitted, int64(len(t.keys))} {
			dst = binary.AppendUvarint(dst, uint64(n))
		}
		for j := range t.keys {
			k := &t.keys[j]
			dst = binary.AppendUvarint(dst, uint64(k.DB))
			dst = stats.PackText(dst, k.Name)
			dst = binary.AppendUvarint(dst, uint64(k.Count))
			dst = stats.PackRate(dst, k.PerSecond)
		}
	}
	return dst
}

// errSummary is the error for bytes that are not a summary.
var errSummary = errors.New("the bytes are no summary of the most frequent keys")

// ParseSummary returns the summary whose bytes are b. The result does not refer to b.
func ParseSummary(b []byte) (Summary, error) {
	r := stats.Unpack(b)
	if r.Number(math.MaxInt64) != summaryVersion {
		return Summary{}, errSummary
	}
	var s Summary
	for i := range s.tops {
		t := &s.tops[i]
		t.total, t.omitted = r.Number(math.MaxInt64), r.Number(math.MaxInt64)
		t.keys = make([]Key, r.Number(summaryKeys))
		for j := range t.keys {
			t.keys[j] = Key{
				DB: int(r.Number(math.MaxInt32)), Name: r.Text(topKey), Count: r.Number(math.MaxInt64), PerSecond: r.Rate(),
			}
		}
	}
	if !r.Empty() {
		return Summary{}, errSummary
	}
	return s, nil
}

// TopOf is [Keys.Top] for several servers: it adds the counts of a key in own, the summary of this server, and in
// others, the bytes of the summaries of other servers. The sum lacks at most Missing calls, those on the servers that
// have left the key out of their summaries. Missing is -1 if one of others is no summary, such as nil or that of a
// later version.
func TopOf(own Summary, others [][]byte, kind Kind, db, n int, shown func(key string) bool) []Key {
	sum := make(map[topName]Key)
	var total, omitted int64
	add := func(s *Summary) {
		t := &s.tops[kind]
		total, omitted = limit.SatAdd(total, t.total), limit.SatAdd(omitted, t.omitted)
		for i := range t.keys {
			k := &t.keys[i]
			name := topName{k.DB, k.Name}
			s, has := sum[name]
			if !has {
				s = Key{DB: k.DB, Name: k.Name}
			}
			s.Count, s.PerSecond, s.Servers = limit.SatAdd(s.Count, k.Count), s.PerSecond+k.PerSecond, s.Servers+1
			s.Missing = limit.SatAdd(s.Missing, t.omitted) // the sum is over the servers that have the key, and is subtracted from omitted
			sum[name] = s
		}
	}
	add(&own)
	whole := true
	for _, b := range others {
		s, err := ParseSummary(b)
		if err != nil {
			whole = false
			continue
		}
		add(&s)
	}
	keys := make([]Key, 0, len(sum))
	for _, k := range sum {
		if k.Missing = omitted - k.Missing; !whole {
			k.Missing = -1
		}
		keys = append(keys, k)
	}
	return first(keys, total, db, n, shown)
}
