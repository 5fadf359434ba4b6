package collection

// A reader of a large collection notes the addresses of the elements while the shard is locked, and
// copies the elements after the shard was unlocked. So the bytes of the elements must not change
// when the collection is changed. Usually they do not, since a new value is stored elsewhere. Only
// a hash overwrites a value in place, to avoid an allocation, but not while the hash is pinned.

// Pin keeps the bytes of all elements unchanged until unpin is called, even if the list is changed
// or removed. unpin must be called once, by any goroutine. For a small list unpin is nil and
// nothing is pinned.
func (l *List) Pin() (unpin func()) {
	if l.tree == nil {
		return nil
	}
	return func() {}
}

// Pin keeps the bytes of all members unchanged until unpin is called: see [List.Pin].
func (s *SortedSet) Pin() (unpin func()) {
	if s.tree == nil {
		return nil
	}
	return func() {}
}

// Pin keeps the bytes of all members unchanged until unpin is called: see [List.Pin].
func (s *Set) Pin() (unpin func()) { return s.d.pin() }

// Pin keeps the bytes of all fields and values unchanged until unpin is called: see [List.Pin].
func (h *Hash) Pin() (unpin func()) { return h.d.pin() }

func (d *dict) pin() (unpin func()) {
	if d.nodes == nil {
		return nil
	}
	return d.pins.Pin()
}
