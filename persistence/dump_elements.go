package persistence

import (
	"strconv"
	"unicode/utf8"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
)

// elementsOf returns the elements of the collection e for JSON. An element of a list or set is a
// text. An element of a hash or sorted set is a pair of field and value, or of member and score. A
// score is a text too, since JSON has no infinity and readers of JSON round numbers. elementsOf
// returns nil if e is not a collection, or if an element is not UTF-8, which a JSON text cannot
// hold. e must have been checked.
func elementsOf(e entry.Entry) []any {
	w := elementWriter{elements: []any{}}
	switch e.Kind {
	case entry.Hash:
		var h collection.Hash
		h.Load(e.Value)
		for field, value := range h.All() {
			w.add(field, value)
		}
	case entry.SortedSet:
		var z collection.SortedSet
		z.Load(e.Value)
		for member, score := range z.Range(0, z.Len()) {
			w.add(member, strconv.AppendFloat(nil, score, 'g', -1, 64))
		}
	case entry.List:
		var l collection.List
		l.Load(e.Value)
		for value := range l.Range(0, l.Len()) {
			w.add(value)
		}
	case entry.Set:
		var s collection.Set
		s.Load(e.Value)
		for member := range s.All() {
			w.add(member)
		}
	default:
		return nil
	}
	if w.binary {
		return nil
	}
	return w.elements
}

// elementWriter collects elements for elementsOf.
type elementWriter struct {
	elements []any
	binary   bool // whether an element is not valid UTF-8
}

// add appends one element, which consists of one or two parts: a text, or a pair of texts.
func (w *elementWriter) add(parts ...[]byte) {
	texts := make([]string, len(parts))
	for i, p := range parts {
		w.binary = w.binary || !utf8.Valid(p)
		texts[i] = string(p)
	}
	if len(texts) == 1 {
		w.elements = append(w.elements, texts[0])
		return
	}
	w.elements = append(w.elements, texts)
}
