package persistence

import (
	"errors"
	"time"
)

// rotate goes on in next, which the manifest names behind the present segment. What
// is in the buffer still goes to the present one, with an end record.
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
	l.written.Store(pos)
	return nil
}

// begin makes next the segment that is appended to. mu must be held.
func (l *Log) begin(next *segment) {
	next.start, next.data, next.clock = l.pos, l.pos, l.pos
	l.seg, l.unowned = next, l.pos
}

// replace goes on in next in place of segments that were given up; a base that is
// written from now on has everything before. Effects are still refused, but those
// of commands that were under way are kept again.
func (l *Log) replace(next *segment) {
	l.ioMu.Lock()
	defer l.ioMu.Unlock()
	l.mu.Lock()
	old := append(l.retired, l.seg)
	l.retired, l.buf, l.drops = nil, l.buf[:0], false
	l.long.release()
	l.begin(next)
	l.mu.Unlock()
	for _, s := range old {
		_ = s.f.Close() // it was given up
	}
}

// settle makes durable what was appended since replace.
func (l *Log) settle() error {
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

// giveUp undoes replace where the base could not be written.
func (l *Log) giveUp() {
	l.mu.Lock()
	l.drops, l.buf = true, l.buf[:0]
	l.long.release()
	l.mu.Unlock()
}

// resume accepts effects again: the manifest names the base and the segment.
func (l *Log) resume() {
	l.ioMu.Lock()
	l.mu.Lock()
	start := l.seg.start
	l.written.Store(max(start, l.unowned))
	l.synced.Store(start)
	l.refusing.Store(false)
	l.mu.Unlock()
	l.ioMu.Unlock()
	l.wakeAll()
	l.nudge()
}

// Close makes everything durable, says so in the file, and ends the log. What is
// appended afterwards is refused.
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

// finish writes the end of the last segment once all before is durable.
func (l *Log) finish() error {
	l.note()
	if err := l.Sync(); err != nil {
		return err
	}
	l.mu.Lock()
	s := l.seg
	before := len(l.buf)
	l.buf = s.framer.durableRecord(l.buf, typeEnd, s.offset(l.synced.Load()))
	s.recorded = s.durable // by this: no durable-offset record may follow the end
	l.pos += uint64(len(l.buf) - before)
	l.mu.Unlock()
	return l.Sync()
}

// LogStats are what INFO shows.
type LogStats struct {
	Writes, Syncs, SlowSyncs, Faults int64
	// Buffered is how many bytes are not with the kernel.
	Buffered int
	// Size is that of the present increment.
	Size int64
	// Unsafe is for how long something that was appended may have been waiting to be durable.
	Unsafe time.Duration
	// StalledMillis is how long the fsync in flight has taken.
	StalledMillis, LastSyncMicros int64
	Position                      uint64
}

// Stats returns counters since the start.
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
	if st.Position > l.synced.Load() {
		st.Unsafe = max(0, l.o.Stopwatch()-time.Duration(l.safeAt.Load()))
	}
	return st
}
