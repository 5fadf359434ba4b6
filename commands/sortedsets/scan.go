package sortedsets

import (
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/resp"
)

func elementsOfSortedSet(z *collection.SortedSet) elements.Elements {
	return elements.Elements{N: z.Len(), Copied: z.Copied(), Values: true, Scores: true, Of: z, All: func(yield func(name, value []byte) bool) {
		var scratch [32]byte
		for m, score := range z.Range(0, z.Len()) {
			if !yield(m, resp.AppendDouble(scratch[:0], score)) {
				return
			}
		}
	}}
}

// zscan is the Run function of ZSCAN. As in Redis, scores are texts in both versions of the
// protocol.
func zscan(c storeCall) {
	elements.ScanElements(c, func(st store, db int, key []byte, f func(e elements.Elements)) (bool, error) {
		return st.ReadSortedSet(db, key, func(z *collection.SortedSet) { f(elementsOfSortedSet(z)) })
	})
}
