package hashes

import (
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/commands/internal/elements"
)

func elementsOfHash(h *collection.Hash) elements.Elements {
	return elements.Elements{N: h.Len(), Copied: h.Copied(), All: h.All(), Values: true, Of: h}
}

func hscan(c storeCall) {
	elements.ScanElements(c, func(st store, db int, key []byte, f func(e elements.Elements)) (bool, error) {
		return st.ReadHash(db, key, func(h *collection.Hash) { f(elementsOfHash(h)) })
	})
}
