package tracking

import "slices"

// readers are the clients that have read one key, after their entry has left the table. They are
// client ids, so that the table keeps no client alive.
type readers struct {
	key  string
	ids  []int64  // sorted
	one  [1]int64 // the backing array of ids for a single reader
	cost int64
	read uint64 // the number of the read that registered the latest of them
}

// len returns the number of clients.
func (r *readers) len() int { return len(r.ids) }

// add adds a client and reports whether it was not there.
func (r *readers) add(id int64) bool {
	i, is := slices.BinarySearch(r.ids, id)
	if !is {
		r.ids = slices.Insert(r.ids, i, id)
	}
	return !is
}

// drop removes a client.
func (r *readers) drop(id int64) {
	if i, is := slices.BinarySearch(r.ids, id); is {
		r.ids = slices.Delete(r.ids, i, i+1)
	}
}
