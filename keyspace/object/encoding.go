package object

import (
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
)

// Up to how many elements, and of how many bytes each, Redis 7 keeps a collection in
// its compact encodings, unless it is configured otherwise.
const (
	listpackFields  = 512
	listpackMembers = 128
	listpackBytes   = 64
	intsetMembers   = 512
)

// Encoding is what OBJECT ENCODING replies for o: what Redis would, if it
// had made it as it is. A collection of Redis that was larger once stays what it was.
func Encoding(o Object) string {
	switch o := o.(type) {
	case *collection.Hash:
		if o.Len() > listpackFields {
			return "hashtable"
		}
		for field, value := range o.All() {
			if max(len(field), len(value)) > listpackBytes {
				return "hashtable"
			}
		}
	case *collection.SortedSet:
		if o.Len() > listpackMembers {
			return "skiplist"
		}
		for member := range o.Range(0, o.Len()) {
			if len(member) > listpackBytes {
				return "skiplist"
			}
		}
	case *collection.List:
		return "quicklist"
	case *collection.Set:
		if o.Len() > intsetMembers {
			return "hashtable"
		}
		for member := range o.All() {
			if !entry.IsInteger(member) {
				return "hashtable"
			}
		}
		return "intset"
	}
	return "listpack"
}
