package sets

import (
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/commands/internal/elements"
)

func elementsOfSet(s *collection.Set) elements.Elements {
	return elements.Elements{N: s.Len(), Copied: s.Copied(), Of: s, All: func(yield func(name, value []byte) bool) {
		for m := range s.All() {
			if !yield(m, nil) {
				return
			}
		}
	}}
}

func sscan(c storeCall) {
	elements.ScanElements(c, func(st store, db int, key []byte, f func(e elements.Elements)) (bool, error) {
		return st.ReadSet(db, key, func(s *collection.Set) { f(elementsOfSet(s)) })
	})
}
