package command

import "github.com/cellserver/cellserver/collection"

// Collections are the keys that have elements. Read calls f with what a key holds, if
// it exists. Write calls f with what it holds, an empty collection if it does not
// exist, and stores what f makes of it: an empty one is no key, the expiry stays what
// it is, and if f changes nothing, nothing has happened.
//
// f is called with locks held: it must be quick, use nothing of the store and keep
// nothing of what it sees. One that may fail looks before it changes anything; its
// error is returned. Other errors are limit.ErrWrongType, limit.ErrFull and
// limit.ErrNotKept; f itself gets collection.ErrFull from a collection of as many
// elements as there may be.
type Collections interface {
	ReadHash(db int, key []byte, f func(h *collection.Hash)) (found bool, err error)
	WriteHash(db int, key []byte, f func(h *collection.Hash) error) error
	ReadSortedSet(db int, key []byte, f func(z *collection.SortedSet)) (found bool, err error)
	WriteSortedSet(db int, key []byte, f func(z *collection.SortedSet) error) error
	ReadList(db int, key []byte, f func(l *collection.List)) (found bool, err error)
	WriteList(db int, key []byte, f func(l *collection.List) error) error
	ReadSet(db int, key []byte, f func(s *collection.Set)) (found bool, err error)
	WriteSet(db int, key []byte, f func(s *collection.Set) error) error
}
