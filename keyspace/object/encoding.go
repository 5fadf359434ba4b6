package object

import (
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
)

// These constants are the defaults of Redis 7.0 for the maximum number of elements of a collection
// with a compact encoding, and for the maximum number of bytes of each element.
const (
	listpackFields  = 512
	listpackMembers = 128
	listpackBytes   = 64
	intsetMembers   = 512
)

// Encoding returns the reply to OBJECT ENCODING for o: the encoding that Redis 7.0 would use for a
// new collection with the same elements. In Redis a collection that was larger before keeps its
// encoding; Encoding does not imitate that.
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
