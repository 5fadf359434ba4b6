package collection

// A reader of a large collection notes where its elements are while that is locked, and
// copies them when it is not any more. So their bytes must stay as they are although the
// collection is changed. Most do in any case: an element that is replaced lies elsewhere
// then. Only a hash writes a value over the one in its place, to allocate nothing, and
// does not do so while it is pinned.

// Pin keeps the bytes of all elements as they are until unpin is called, which may be at any
// time and on any goroutine, whatever is done to the list. It returns nil for a small list,
// whose bytes are not its own.
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
