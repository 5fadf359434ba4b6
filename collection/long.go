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

// copied is what a reply with elements of so many bytes takes.
func (l *longs) copied(bytes int) int { return bytes - l.longBytes + l.long*shared.RefSize }
