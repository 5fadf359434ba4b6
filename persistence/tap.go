package persistence

// Tap receives the records that a log has written, for replicas. Its methods are called one at a
// time, with a lock of the log held: they must be quick, and must not call the log.
type Tap interface {
	// Wrote passes the next bytes of records, of all types, as they are in the file. A write is
	// passed in one piece, or in several if it has long values. piece is valid until Wrote returns.
	// end is the log's position behind the last piece of a write, and 0 with the other pieces.
	// Callers that wait for a position are woken after Wrote.
	Wrote(piece []byte, end uint64)
	// Gap says that records were dropped: the next piece does not follow the last one, and its
	// position may be any later one. It may be called several times in a row. A log that refuses
	// nothing then calls Wrote at once with the position at which it continues, with an empty piece
	// if there is nothing to write.
	Gap()
}

// copyTo passes buf, with the values in their places, to t.
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
