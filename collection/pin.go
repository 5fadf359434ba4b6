package collection

// A reader of a large collection notes the addresses of its elements under the lock and copies the
// elements after unlocking. So their bytes must not change when the collection does. Usually they
// do not, since a new value is stored elsewhere. Only a hash overwrites a value in place, to avoid
// an allocation, but not while it is pinned.

// Pin keeps the bytes of all elements unchanged until unpin is called, which may be at any time and
// on any goroutine, whatever is done to the list. It returns nil for a small list, whose bytes
// belong to its table.
func (l *List) Pin() (unpin func()) {
	if l.tree == nil {
		return nil
	}
	return func() {}
}

// Pin is [List.Pin].
func (s *SortedSet) Pin() (unpin func()) {
	if s.tree == nil {
		return nil
	}
	return func() {}
}

// Pin is [List.Pin].
func (s *Set) Pin() (unpin func()) { return s.d.pin() }

// Pin is [List.Pin].
func (h *Hash) Pin() (unpin func()) { return h.d.pin() }

func (d *dict) pin() (unpin func()) {
	if d.nodes == nil {
		return nil
	}
	return d.pins.Pin()
}
