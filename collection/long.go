package collection

import "github.com/cellserver/cellserver/shared"

// longs is what the large forms of all collections have in common: elements of
// [shared.Least] bytes or more, to which replies refer (package shared). Their bytes
// never change; an element that is replaced lies elsewhere.
type longs struct {
	ledger shared.Ledger
	long   int // parts of elements that are so long
	// longBytes is how long these are together.
	longBytes int
}

// SetLedger has l count elements that are gone while replies refer to them. Without it
// nobody does.
func (l *longs) SetLedger(ledger shared.Ledger) { l.ledger = ledger }

// SetLedger is [List.SetLedger].
func (h *Hash) SetLedger(ledger shared.Ledger) { h.d.ledger = ledger }

// SetLedger is [List.SetLedger].
func (s *Set) SetLedger(ledger shared.Ledger) { s.d.ledger = ledger }

// own returns a copy of an element, or of a part of one.
func own(v []byte) []byte {
	if len(v) >= shared.Least {
		return shared.New(v, 0)
	}
	return append(make([]byte, 0, len(v)), v...)
}

// ownString is own for a string.
func ownString(v []byte) string {
	if len(v) >= shared.Least {
		return shared.NewString(v)
	}
	return string(v)
}

// add returns the memory that takes what own has made and is added to the collection,
// or with sign -1 gone from it.
func (l *longs) add(v []byte, sign int) (cost int64) {
	if len(v) < shared.Least {
		return int64(sign) * allocated(cap(v))
	}
	cost = int64(sign) * shared.Size(v)
	l.long += sign
	l.longBytes += sign * len(v)
	if sign < 0 {
		shared.Drop(v, l.ledger)
	}
	return cost
}

// grows reports whether value takes more memory than there is once it has the place of
// old: that stays for as long as a reply refers to it.
func (l *longs) grows(old, value []byte) bool {
	return len(value) > len(old) || len(old) >= shared.Least && l.ledger != nil && shared.Busy(old)
}

// gone is told of every part of a collection that is gone as a whole.
func (l *longs) gone(v []byte) {
	if len(v) >= shared.Least {
		shared.Drop(v, l.ledger)
	}
}

// Drop says that the list is not in the store any more.
func (l *List) Drop() {
	if l.long == 0 || l.tree == nil {
		return
	}
	l.tree.Scan(func(_ int64, value []byte) bool {
		l.gone(value)
		return true
	})
	l.long = 0
}

// Drop says that the sorted set is not in the store any more.
func (s *SortedSet) Drop() {
	if s.long == 0 || s.tree == nil {
		return
	}
	for member := range s.scores {
		s.gone(bytesOf(member))
	}
	s.long = 0
}

// Drop says that the hash is not in the store any more.
func (h *Hash) Drop() { h.d.drop() }

// Drop says that the set is not in the store any more.
func (s *Set) Drop() { s.d.drop() }

func (d *dict) drop() {
	if d.long == 0 {
		return
	}
	for n := d.first; n != nil; n = n.next {
		d.gone(bytesOf(n.field))
		d.gone(n.value)
	}
	d.long = 0
}

// Copied is how many bytes a reply with all of a large list takes: those of the elements
// that it copies, and of its references to the others. It is 0 for a small one.
func (l *List) Copied() int { return l.copied(l.bytes) }

// Copied is [List.Copied].
func (s *SortedSet) Copied() int { return s.copied(s.bytes) }

// Copied is [List.Copied].
func (h *Hash) Copied() int { return h.d.copied(h.d.bytes) }

// Copied is [List.Copied].
func (s *Set) Copied() int { return s.d.copied(s.d.bytes) }

// copied is what a reply with elements of so many bytes takes.
func (l *longs) copied(bytes int) int { return bytes - l.longBytes + l.long*shared.RefSize }
