package persistence

import (
	"errors"
	"math"
	"time"
)

// SetTap replaces the tap with t, which may be nil. The old tap gets everything up to the position
// from, and t gets everything behind it.
func (l *Log) SetTap(t Tap) (from uint64) {
	l.ioMu.Lock()
	defer l.ioMu.Unlock()
	l.write()
	l.tap = t
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pos - uint64(len(l.buf)+l.long.bytes) // the position, less the bytes that were appended since the write
}

// rotate continues the log in next, which the manifest names after the present segment. It writes
// the buffer and an end record to the present segment. The error says that the files were given up,
// before the call or because this write has failed.
func (l *Log) rotate(next *segment) error {
	l.ioMu.Lock()
	defer l.ioMu.Unlock()
	l.mu.Lock()
	if l.drops {
		l.mu.Unlock()
		return l.Fault()
	}
	old := l.seg
	before := len(l.buf)
	l.buf = old.framer.durableRecord(l.buf, typeEnd, old.durable)
	l.pos += uint64(len(l.buf) - before)
	buf, pos, long := l.buf, l.pos, l.long.take()
	defer long.release()
	l.buf = l.spare[:0]
	l.spare = nil
	l.retired = append(l.retired, old)
	l.begin(next)
	l.mu.Unlock()
	if err := long.write(old.f, buf); err != nil {
		l.fail(old, err)
		return err
	}
	if l.tap != nil {
		long.copyTo(l.tap, buf, pos)
	}
	l.written.Store(pos)
	return nil
}

// begin makes next the segment to which new records are appended. ioMu and mu must be held.
func (l *Log) begin(next *segment) {
	next.start, next.data, next.clock = l.pos, l.pos, l.pos
	l.seg, l.unowned = next, l.pos
}

// Suspend gives up the files of the log, as a failed write does, because the state in memory is
// about to be replaced as a whole. First it writes and syncs everything that was appended before,
// and the files keep that. From then on effects are refused, with why as the reason, until
// [Dir.AcceptState], or until [Dir.Rewrite] has written a base of the new state. OnFault is not
// called. A log without a file continues. In both cases the tap is notified of a gap.
func (l *Log) Suspend(why error) {
	_ = l.Sync() // Sync itself handles a failure
	l.ioMu.Lock()
	defer l.ioMu.Unlock()
	l.write()
	l.mu.Lock()
	l.gap = true
	suspended := !l.volatile && !l.drops
	if suspended {
		l.drop()
		l.fault.Store(&why)
		l.refusing.Store(true)
		l.adopting.Store(false)
	}
	l.mu.Unlock()
	l.write() // write notifies the tap that records are missing
	if suspended {
		l.o.Log.Info("the log is suspended until a new snapshot replaces it", "reason", why)
		l.wakeAll()
	}
}

// replace continues the log in next after the segments were given up. The base that will be written
// from now on has all earlier effects. Records are appended again instead of dropped. New commands
// are still refused, unless adopt is true because memory has a whole new state. replace closes the
// old files.
func (l *Log) replace(next *segment, adopt bool) {
	l.ioMu.Lock()
	defer l.ioMu.Unlock()
	l.mu.Lock()
	old := append(l.retired, l.seg)
	l.discard()
	l.retired, l.drops, l.gap = nil, false, false
	l.begin(next)
	pos := l.pos
	l.adopting.Store(adopt)
	if adopt {
		l.written.Store(l.pos) // callers must not wait for records that were dropped
		l.refusing.Store(false)
	}
	l.mu.Unlock()
	if l.tap != nil {
		l.tap.Gap() // more records may have been dropped since the last notification
		l.tap.Wrote(nil, pos)
	}
	for _, s := range old {
		_ = s.f.Close() // an error does not matter, because the file was given up
	}
}

// settle makes everything durable that was appended since replace. The error says that this failed.
func (l *Log) settle() error {
	if l.adopting.Load() {
		err := l.Sync() // other goroutines can write meanwhile
		l.note()        // note writes a durable-offset record, so that damage to these records is not mistaken for the trace of a crash
		return err
	}
	l.ioMu.Lock()
	defer l.ioMu.Unlock()
	l.write()
	l.mu.Lock()
	seg, dropped := l.seg, l.drops
	l.mu.Unlock()
	if dropped {
		return l.Fault()
	}
	return seg.f.Sync()
}

// giveUp gives up the segment of replace, because the base could not be written. If effects are
// accepted, they are refused again from now on, with why as the reason, and all waiting callers are
// woken.
func (l *Log) giveUp(why error) {
	l.mu.Lock()
	l.drop()
	l.adopting.Store(false)
	accepted := !l.refusing.Load()
	if accepted {
		l.fault.Store(&why)
		l.refusing.Store(true)
	}
	l.mu.Unlock()
	if accepted {
		l.wakeAll()
	}
	l.nudge() // the writer notifies the tap that records are missing
}

// resume makes the log accept effects again, because the manifest now names the base and the
// segment. It wakes all waiting callers. It does nothing if the files were given up again.
func (l *Log) resume() {
	l.ioMu.Lock()
	l.mu.Lock()
	l.adopting.Store(false)
	if l.drops { // the log was given up again after settle returned
		l.mu.Unlock()
		l.ioMu.Unlock()
		return
	}
	start := l.seg.start
	l.written.Store(max(start, l.unowned, l.written.Load()))
	l.synced.Store(start + uint64(max(0, l.seg.durable-headerSize))) // settle has synced a segment of adopted records
	l.refusing.Store(false)
	l.mu.Unlock()
	l.ioMu.Unlock()
	l.wakeAll()
	l.nudge()
}

// Close ends the goroutines of the log, makes everything durable that was appended, and writes an
// end record. Afterwards the log refuses effects, and records that are appended nevertheless are
// dropped. The error says that something may not be durable. If the log refused effects before,
// Close only closes the files.
func (l *Log) Close() error {
	close(l.stop)
	l.done.Wait()
	var err error
	if l.Fault() == nil {
		err = l.finish()
	}
	l.mu.Lock()
	l.drops = true
	why := errClosed
	l.fault.Store(&why)
	l.refusing.Store(true)
	segs := append(l.retired, l.seg)
	l.retired = nil
	l.mu.Unlock()
	l.wakeAll()
	for _, s := range segs {
		err = errors.Join(err, s.f.Close())
	}
	return err
}

// finish makes everything durable, then writes the end record of the last segment and makes that
// durable.
func (l *Log) finish() error {
	l.note()
	if err := l.Sync(); err != nil {
		return err
	}
	l.mu.Lock()
	s := l.seg
	before := len(l.buf)
	l.buf = s.framer.durableRecord(l.buf, typeEnd, s.offset(l.synced.Load()))
	s.recorded = math.MaxInt64 // no durable-offset record may follow the end record of the file
	l.pos += uint64(len(l.buf) - before)
	l.mu.Unlock()
	return l.Sync()
}

// LogStats has the statistics of a log for INFO.
type LogStats struct {
	// Writes and Syncs are the numbers of writes and of fsyncs. SlowSyncs is the number of fsyncs
	// that took a second or more. Faults is the number of times that the files were given up after
	// a failure.
	Writes, Syncs, SlowSyncs, Faults int64
	// Buffered is the number of bytes that have not been written to the kernel.
	Buffered int
	// Size is the size of the present increment in bytes.
	Size int64
	// Unsafe is an upper bound of the time for which any appended record has not been durable; 0 if
	// all are durable.
	Unsafe time.Duration
	// StalledMillis is the time in milliseconds for which the present fsync has been running; 0 if
	// none is running. LastSyncMicros is the duration of the last fsync in microseconds. Position
	// is the position after the last appended record.
	StalledMillis, LastSyncMicros int64
	Position                      uint64
}

// Stats returns the statistics of the log. The counters count from the start of the log.
func (l *Log) Stats() LogStats {
	l.mu.Lock()
	st := LogStats{Buffered: len(l.buf) + l.long.bytes, Size: l.seg.offset(l.pos), Position: l.pos}
	l.mu.Unlock()
	st.Writes, st.Syncs = l.counts.writes.Load(), l.counts.syncs.Load()
	st.SlowSyncs, st.Faults = l.counts.slowSyncs.Load(), l.counts.faults.Load()
	st.LastSyncMicros = l.counts.lastSync.Load() / 1000
	if began := l.syncBegan.Load(); began != 0 {
		st.StalledMillis = (int64(l.o.Stopwatch()) - began) / 1e6
	}
	if st.Position > l.synced.Load() && !l.volatile {
		st.Unsafe = max(0, l.o.Stopwatch()-time.Duration(l.safeAt.Load()))
	}
	return st
}
