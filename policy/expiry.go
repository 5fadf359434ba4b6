package policy

import (
	"container/heap"

	"github.com/cellserver/cellserver/limit"
)

// kept is an entry of a [Builder], with its place among those that expire. All readers of a table
// read the entry; only the builder reads the place.
type kept struct {
	Entry
	// at is the index in expiries. It means nothing for an entry that stays.
	at int
}

// expiries are the entries that do not stay, as a heap of [container/heap]: the first is the
// one that expires first.
type expiries []*kept

// add takes k in, unless it stays.
func (e *expiries) add(k *kept) {
	if k.Until != limit.MaxInstant {
		heap.Push(e, k)
	}
}

// drop forgets k.
func (e *expiries) drop(k *kept) {
	if k.Until != limit.MaxInstant {
		heap.Remove(e, k.at)
	}
}

// next returns when the first entry expires, [limit.MaxInstant] if none does.
func (e expiries) next() limit.Instant {
	if len(e) == 0 {
		return limit.MaxInstant
	}
	return e[0].Until
}

// Len, Less, Swap, Push and Pop are for [container/heap].
func (e expiries) Len() int           { return len(e) }
func (e expiries) Less(i, j int) bool { return e[i].Until < e[j].Until }

func (e expiries) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].at, e[j].at = i, j
}

// Push appends a *kept.
func (e *expiries) Push(k any) {
	added := k.(*kept)
	added.at = len(*e)
	*e = append(*e, added)
}

// Pop cuts the last one off.
func (e *expiries) Pop() any {
	last := len(*e) - 1
	k := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return k
}
