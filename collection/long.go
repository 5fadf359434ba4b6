package collection

import "github.com/cellserver/cellserver/shared"

// longs counts the long elements of a large collection, which have [shared.Least] bytes or more.
// Replies refer to long elements (package shared). The bytes of a long element never change; a new
// value is stored elsewhere.
type longs struct {
	ledger shared.Ledger
	long   int // number of long parts; a field and its value count as two parts
	// longBytes is the sum of the lengths of the long parts.
	longBytes int
}

// SetLedger makes ledger count the memory of removed elements for as long as replies refer to them.
// If ledger is nil, this memory is not counted.
func (l *longs) SetLedger(ledger shared.Ledger) { l.ledger = ledger }

// own returns a copy of v, an element or a part of one. [shared.New] makes a long copy.
func own(v []byte) []byte {
	if len(v) >= shared.Least {
		return shared.New(v, 0)
	}
	return append(make([]byte, 0, len(v)), v...)
}

// ownString returns a copy of v as own does, but as a string.
func ownString(v []byte) string {
	if len(v) >= shared.Least {
		return shared.NewString(v)
	}
	return string(v)
}

// add counts v, which own has made, when it is added to the collection (sign is 1) or removed from
// it (sign is -1). cost is the number of bytes by which the memory changes. add drops a long v that
// is removed.
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

// grows reports whether the collection takes more memory if value replaces old. old remains in
// memory for as long as a reply refers to it.
func (l *longs) grows(old, value []byte) bool {
	return len(value) > len(old) || len(old) >= shared.Least && l.ledger != nil && shared.Busy(old)
}

// gone drops v if it is long. It is called for each part of a collection that is removed
// completely.
func (l *longs) gone(v []byte) {
	if len(v) >= shared.Least {
		shared.Drop(v, l.ledger)
	}
}

// copied returns the number of bytes that a reply with the whole collection takes. bytes is the
// size of all elements.
func (l *longs) copied(bytes int) int { return bytes - l.longBytes + l.long*shared.RefSize }
