package tracking

import "slices"

// readers are the clients that have read one key, once that is out of the table. Clients are known
// by their ids, so that the table keeps none of them alive.
type readers struct {
	key  string
	ids  []int64  // sorted
	one  [1]int64 // the memory of ids if there is one
	cost int64
	read uint64 // by which the latest of them was registered
}

// len is how many clients there are.
func (r *readers) len() int { return len(r.ids) }

// add adds a client and reports whether it was not there.
func (r *readers) add(id int64) bool {
	i, is := slices.BinarySearch(r.ids, id)
	if !is {
		r.ids = slices.Insert(r.ids, i, id)
	}
	return !is
}

// drop takes a client out.
func (r *readers) drop(id int64) {
	if i, is := slices.BinarySearch(r.ids, id); is {
		r.ids = slices.Delete(r.ids, i, i+1)
	}
}
