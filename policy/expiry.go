package policy

import (
	"container/heap"

	"github.com/cellserver/cellserver/limit"
)

// kept is an entry of a [Builder], with its position in the heap of entries that expire. All
// readers of a table read the entry; only the builder reads the position.
type kept struct {
	Entry
	// at is the index of the entry in expiries. A permanent entry has no index, and at is not used.
	at int
}

// expiries is a heap (see [container/heap]) of the entries that are not permanent. The first
// element is the entry that expires first.
type expiries []*kept

// add adds k to the heap, unless k is permanent.
func (e *expiries) add(k *kept) {
	if k.Until != limit.MaxInstant {
		heap.Push(e, k)
	}
}

// drop removes k from the heap, unless k is permanent.
func (e *expiries) drop(k *kept) {
	if k.Until != limit.MaxInstant {
		heap.Remove(e, k.at)
	}
}

// next returns the instant at which the first entry expires, or [limit.MaxInstant] if there is
// none.
func (e expiries) next() limit.Instant {
	if len(e) == 0 {
		return limit.MaxInstant
	}
	return e[0].Until
}

// Len, Less, Swap, Push and Pop implement [heap.Interface].
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

// Pop removes the last element.
func (e *expiries) Pop() any {
	last := len(*e) - 1
	k := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return k
}
