package entry

import (
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
)

// A key of kind Cell has the TAT (theoretical arrival time) of CL.THROTTLE. Usually the key expires
// at the TAT. Then its value is empty, so that the TAT takes no memory.

// CellTAT returns the TAT of e, which must be of kind Cell, whether it remembers calls or not.
func CellTAT(e *Entry) limit.Instant {
	if len(e.Value) == 0 {
		return e.Expiry
	}
	return gcra.State(e.Value)
}

// AppendCell appends to dst the value of a cell with the TAT tat and the given expiry, and returns
// the extended slice. The value is empty if tat and expiry are equal.
func AppendCell(dst []byte, tat, expiry limit.Instant) []byte {
	if tat == expiry {
		return dst
	}
	return gcra.AppendState(dst, tat)
}

// StoredTAT returns the TAT from which CL.THROTTLE continues: 0 if e is of kind None, the TAT of a
// cell, or the number in a plain string. A plain string becomes a cell at the next write. The error
// is [limit.ErrWrongType] for other kinds, or that of [gcra.ParseDecimal].
func StoredTAT(e *Entry) (limit.Instant, error) {
	switch e.Kind {
	case None:
		return 0, nil
	case Cell:
		return CellTAT(e), nil
	case String:
		return gcra.ParseDecimal(e.Value)
	}
	return 0, limit.ErrWrongType
}
