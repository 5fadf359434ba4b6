package object

import (
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
)

// The maximum number of elements, and of bytes of each, up to which Redis 7 stores a collection in
// its compact encodings by default.
const (
	listpackFields  = 512
	listpackMembers = 128
	listpackBytes   = 64
	intsetMembers   = 512
)

// Encoding returns the reply to OBJECT ENCODING for o: the encoding that Redis would use if it had
// made o with its present elements. A collection of Redis that was larger before keeps its
// encoding; that is not imitated.
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
