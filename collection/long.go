package collection

import "github.com/cellserver/cellserver/shared"

// longs is the common part of the large forms of all collections: elements of [shared.Least] bytes
// or more, to which replies refer (package shared). Their bytes never change; a new value is stored
// elsewhere.
type longs struct {
	ledger shared.Ledger
	long   int // number of parts of elements that are so long
	// longBytes is the sum of their lengths.
	longBytes int
}

// SetLedger makes ledger count removed elements while replies refer to them. Without a ledger they
// are not counted.
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

// add counts an element that own has copied when it is added to the collection, or with sign -1
// removed from it, and returns the change in memory.
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

// grows reports whether replacing old by value takes more memory. old remains in memory for as long
// as a reply refers to it.
func (l *longs) grows(old, value []byte) bool {
	return len(value) > len(old) || len(old) >= shared.Least && l.ledger != nil && shared.Busy(old)
}

// gone is called for every part of a collection that is removed as a whole.
func (l *longs) gone(v []byte) {
	if len(v) >= shared.Least {
		shared.Drop(v, l.ledger)
	}
}

// copied returns the size of a reply with elements of so many bytes.
func (l *longs) copied(bytes int) int { return bytes - l.longBytes + l.long*shared.RefSize }
