package keyspace

import (
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
)

// A key of kind Cell holds CL.THROTTLE's TAT. Its natural expiry is that TAT, so
// as long as nobody has set another one the value is empty and the key takes no
// byte beyond its expiry.

// cellTAT returns the TAT of an entry of kind Cell.
func cellTAT(e *Entry) limit.Instant {
	if len(e.Value) == 0 {
		return e.Expiry
	}
	return gcra.State(e.Value)
}

// cellValue appends the value of a cell with that TAT and expiry to dst.
func cellValue(dst []byte, tat, expiry limit.Instant) []byte {
	if tat == expiry {
		return dst
	}
	return gcra.AppendState(dst, tat)
}

// storedTAT returns the TAT that CL.THROTTLE is to go on from: 0 for no key, the
// number in a plain string, which becomes a cell when it is written.
func storedTAT(e *Entry) (limit.Instant, error) {
	switch e.Kind {
	case None:
		return 0, nil
	case Cell:
		return cellTAT(e), nil
	case String:
		return gcra.ParseDecimal(e.Value)
	}
	return 0, limit.ErrWrongType
}

// putCell stores tat and its natural expiry, or deletes a key whose TAT has passed.
func (s *shard) putCell(p *place, key []byte, tat limit.Instant) error {
	if tat <= s.last {
		if p.e.Kind != None {
			s.remove(p, key)
		}
		return nil
	}
	e := Entry{Kind: Cell, Expiry: min(tat, NoExpiry-1)}
	e.Value = cellValue(s.scratch[:0], tat, e.Expiry)
	return s.put(p, key, e)
}
