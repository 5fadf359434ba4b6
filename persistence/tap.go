package persistence

// Tap receives the records that a log has written, for replicas. The methods are called one at a
// time, with a lock of the log held: they must be quick, and must not call the log.
type Tap interface {
	// Wrote receives piece, the next bytes of records of all types, as they are in the file. The
	// bytes of one write come in one piece, or in several pieces if they include long values. piece
	// is valid until Wrote returns. With the last piece of a write, end is the log's position after
	// the piece; with the other pieces end is 0. Callers that wait for a position are woken after
	// Wrote.
	Wrote(piece []byte, end uint64)
	// Gap is called when records were dropped. The next piece then does not follow the last one,
	// and may have any later position. Gap may be called several times in a row. If the log accepts
	// effects, it calls Wrote right after Gap, with an empty piece if there is nothing to write; so
	// the tap learns the position at which the log continues.
	Gap()
}

// copyTo passes buf, with the values of v in their places, to t. end is the log's position after
// buf.
func (v *values) copyTo(t Tap, buf []byte, end uint64) {
	from := 0
	for i := range v.refs {
		r := &v.refs[i]
		if r.At > from {
			t.Wrote(buf[from:r.At], 0)
		}
		from = r.At
		if i == len(v.refs)-1 && from == len(buf) {
			t.Wrote(r.Bytes, end)
			return
		}
		t.Wrote(r.Bytes, 0)
	}
	if from < len(buf) || len(buf) == 0 {
		t.Wrote(buf[from:], end)
	}
}
