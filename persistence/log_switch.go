package persistence

import (
	"errors"
	"math"
	"time"
)

// SetTap makes t, which may be nil, the tap in place of the one before. From is a position:
// the tap before gets everything up to it, and t everything behind it.
func (l *Log) SetTap(t Tap) (from uint64) {
	l.ioMu.Lock()
	defer l.ioMu.Unlock()
	l.write()
	l.tap = t
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pos - uint64(len(l.buf)+l.long.bytes) // others append all the time
}

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
	if l.tap != nil {
		long.tell(l.tap, buf, pos)
	}
	l.written.Store(pos)
	return nil
}

// begin makes next the segment that is appended to. mu must be held.
func (l *Log) begin(next *segment) {
	next.start, next.data, next.clock = l.pos, l.pos, l.pos
	l.seg, l.unowned = next, l.pos
}

// Suspend gives up the files of the log, as a failed write does, because the state is about to
// be replaced as a whole: the files keep what was appended before, and effects are refused,
// for the reason why, until [Dir.Adopt], or until [Dir.Rewrite] has written a base of the new
// state. OnFault is not called. A log without a file goes on; its tap is told of the gap, too.
func (l *Log) Suspend(why error) {
	_ = l.Sync() // a failure has been dealt with
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
	l.write() // the tap is told of the gap
	if suspended {
		l.o.Log.Info("the log is suspended until a new snapshot replaces it", "reason", why)
		l.wakeAll()
	}
}

// replace goes on in next in place of segments that were given up; a base that is
// written from now on has everything before. Those of commands that are under way are kept
// again. Others are still refused, unless adopt says that memory has a whole new state.
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
		l.written.Store(l.pos) // nobody is to wait for what was dropped
		l.refusing.Store(false)
	}
	l.mu.Unlock()
	if l.tap != nil {
		l.tap.Gap() // more may have been dropped since it was told
		l.tap.Wrote(nil, pos)
	}
	for _, s := range old {
		_ = s.f.Close() // it was given up
	}
}

// settle makes durable what was appended since replace.
func (l *Log) settle() error {
	if l.adopting.Load() {
		err := l.Sync() // others write meanwhile
		l.note()        // damage to it must never be taken for what a crash leaves
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

// giveUp undoes replace where the base could not be written. Effects that were accepted since
// then are refused again, for the reason why.
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
	l.nudge() // the tap is told of the gap
}

// resume accepts effects again: the manifest names the base and the segment.
func (l *Log) resume() {
	l.ioMu.Lock()
	l.mu.Lock()
	l.adopting.Store(false)
	if l.drops { // given up again since it was settled
		l.mu.Unlock()
		l.ioMu.Unlock()
		return
	}
	start := l.seg.start
	l.written.Store(max(start, l.unowned, l.written.Load()))
	l.synced.Store(start + uint64(max(0, l.seg.durable-headerSize))) // an adopted one was synced
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
	s.recorded = math.MaxInt64 // by this: no durable-offset record may follow the end
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
	if st.Position > l.synced.Load() && !l.volatile {
		st.Unsafe = max(0, l.o.Stopwatch()-time.Duration(l.safeAt.Load()))
	}
	return st
}
