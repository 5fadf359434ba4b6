package tracking

import "slices"

// readers is an entry that was removed from the table: a key and the clients that have read it. It
// has the IDs of the clients instead of pointers, because a pointer would keep a disconnected
// client in memory.
type readers struct {
	key  string
	ids  []int64  // the IDs of the clients in ascending order
	one  [1]int64 // the backing array of ids if there is only one reader
	cost int64
	read uint64 // the number of the read that has registered the latest reader
}

func (r *readers) len() int { return len(r.ids) }

// add adds the client with the ID id, and reports whether the client was missing before.
func (r *readers) add(id int64) bool {
	i, is := slices.BinarySearch(r.ids, id)
	if !is {
		r.ids = slices.Insert(r.ids, i, id)
	}
	return !is
}

// drop removes the client with the ID id, if r has it.
func (r *readers) drop(id int64) {
	if i, is := slices.BinarySearch(r.ids, id); is {
		r.ids = slices.Delete(r.ids, i, i+1)
	}
}
