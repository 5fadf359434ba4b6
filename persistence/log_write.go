package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cellserver/cellserver/keyspace/clock"
)

// lazyTicks is the number of ticks, usually of a second, between two fsyncs under SyncNo. The kernel
// has written nearly everything by then. After the sync a durable offset is recorded. Damage before
// this offset is known not to be the trace of a crash.
const lazyTicks = 60

// keepBuffer is the maximum capacity in bytes of a buffer that is kept for the next write.
const keepBuffer = 4 << 20

// write writes the buffer to the kernel, passes it to the tap, and advances the written position.
// If that fails, it gives up the files. It notifies the tap of a gap first if there is one. ioMu
// must be held.
func (l *Log) write() {
	l.mu.Lock()
	seg := l.seg
	buf, pos, long := l.buf, l.pos, l.long.take()
	l.buf = l.spare[:0]
	dropped, gap := l.drops, l.gap
	l.gap = false
	l.mu.Unlock()
	defer long.release()
	l.spare = buf[:0]
	if cap(buf) > keepBuffer {
		l.spare = nil
	}
	if gap && l.tap != nil {
		l.tap.Gap()
	}
	if dropped || len(buf) == 0 && !gap { // after a gap, the buffer may be empty
		return
	}
	if err := l.writeTo(seg.f, &long, buf); err != nil {
		l.fail(seg, fmt.Errorf("writing %s: %w", seg.path, err))
		return
	}
	if l.tap != nil {
		long.copyTo(l.tap, buf, pos)
	}
	if l.refusing.Load() {
		l.unowned = pos // the position does not count until the manifest names the segment
		return
	}
	l.written.Store(pos)
}

// writeTo writes buf, with the values of long in their places, to f, and measures the duration. For
// a log without a file it writes nothing. ioMu must be held.
func (l *Log) writeTo(f File, long *values, buf []byte) error {
	l.counts.writes.Add(1)
	if l.volatile {
		return nil
	}
	began := max(1, l.o.Stopwatch())
	l.writeBegan.Store(int64(began))
	err := long.write(f, buf)
	took := l.o.Stopwatch() - began
	l.slow.Store(took > slowDisk)
	if l.o.Wrote != nil {
		l.o.Wrote(took)
	}
	l.writeBegan.Store(0)
	return err
}

// noteDurable appends a durable-offset record with the offset up to which the present segment is
// durable. mu must be held.
func (l *Log) noteDurable() {
	seg := l.seg
	before := len(l.buf)
	l.buf = seg.framer.durableRecord(l.buf, typeDurable, seg.durable)
	seg.recorded = seg.durable
	l.pos += uint64(len(l.buf) - before)
	seg.noted = l.pos
}

// sync makes everything durable that was written before the call, and advances the synced position,
// unless a base is still missing: see adopting. It closes retired segments. If an fsync fails, it is
// not repeated: the files are given up, and sync returns the error. If the log refuses effects or has
// no file, sync only returns the error of [Log.Fault].
func (l *Log) sync() error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if l.volatile || l.refusing.Load() {
		return l.Fault()
	}
	began := max(1, l.o.Stopwatch())
	target := l.written.Load()
	if l.synced.Load() >= target {
		l.safeAt.Store(int64(began))
		return l.Fault()
	}
	l.mu.Lock()
	var few [4]*segment // memory on the stack, which avoids an allocation
	segs := append(append(few[:0], l.retired...), l.seg)
	l.mu.Unlock()
	l.syncBegan.Store(int64(began))
	var err error
	for i, s := range segs {
		if err = s.f.Sync(); err != nil {
			l.syncBegan.Store(0)
			err = fmt.Errorf("fsync of %s: %w", s.path, err)
			l.fail(s, err)
			return err
		}
		if i < len(segs)-1 {
			l.forget(s)
		}
	}
	l.syncBegan.Store(0)
	l.measured(l.o.Stopwatch() - began)
	l.mu.Lock()
	s := segs[len(segs)-1]
	counts := target >= s.start && !l.drops
	if counts {
		s.durable = max(s.durable, s.offset(target))
	}
	l.mu.Unlock()
	if counts && l.always() && !l.adopting.Load() {
		l.confirm(s)
	}
	l.mu.Lock()
	if counts && !l.drops && !l.adopting.Load() {
		l.synced.Store(max(target, l.synced.Load()))
		l.safeAt.Store(int64(began))
	}
	l.mu.Unlock()
	return l.Fault()
}

// confirm writes a durable-offset record for the effects of s that are about to be acknowledged
// under SyncAlways. With this record a flipped bit in these effects can be told from the trace of a
// crash. The next fsync, at the latest that of the ticker, makes the record itself durable. It
// writes none if the log no longer writes to s, or if s has such a record already.
func (l *Log) confirm(s *segment) {
	l.ioMu.Lock()
	defer l.ioMu.Unlock()
	l.mu.Lock()
	due := l.seg == s && s.lacksRecord() && !l.drops
	if due {
		l.noteDurable()
	}
	l.mu.Unlock()
	if due {
		l.write()
	}
}

// lacksRecord reports whether more effects of s are durable than the last durable-offset record
// says. mu of the log must be held.
func (s *segment) lacksRecord() bool { return s.durable > s.recorded && s.recorded < s.offset(s.data) }

// measured counts an fsync that took d, calls LogOptions.Synced, and logs an fsync that took a
// second or more.
func (l *Log) measured(d time.Duration) {
	l.counts.syncs.Add(1)
	l.counts.lastSync.Store(int64(d))
	if l.o.Synced != nil {
		l.o.Synced(d)
	}
	if d >= time.Second {
		l.counts.slowSyncs.Add(1)
		l.o.Log.Warn("an fsync of the log took long", "took", d.String())
	}
}

// forget closes the retired segment s, which is durable now, and removes it from the list.
func (l *Log) forget(s *segment) {
	_ = s.f.Close() // an error does not matter, because the file is durable
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range l.retired {
		if r == s {
			l.retired = append(l.retired[:i:i], l.retired[i+1:]...)
			return
		}
	}
}

// fail gives up the files of the log because of err, a failure of the segment s: nothing more is
// written to them, and effects are refused until [Dir.AcceptState], or until [Dir.Rewrite] has
// written a new base. It wakes all waiting callers and calls OnFault. It does nothing if s is no
// longer in use or the files were given up before.
func (l *Log) fail(s *segment, err error) {
	l.mu.Lock()
	current := l.seg == s
	for _, r := range l.retired {
		current = current || r == s
	}
	if !current || l.drops {
		l.mu.Unlock()
		return
	}
	l.drop()
	l.fault.Store(&err)
	l.refusing.Store(true)
	l.mu.Unlock()
	l.counts.faults.Add(1)
	l.o.Log.Error("the log cannot be written; changes are refused until a new snapshot replaces it", "error", err)
	l.wakeAll()
	l.nudge() // the writer notifies the tap that records are missing
	if l.o.OnFault != nil {
		l.o.OnFault(err)
	}
}

// drop drops the records in the buffer and makes the log drop all records that are appended from
// now on. mu must be held.
func (l *Log) drop() {
	l.drops = true
	l.discard()
}

// discard drops the records in the buffer and notes the gap for the tap. mu must be held.
func (l *Log) discard() {
	l.gap = true
	l.buf = l.buf[:0]
	l.long.release()
}

// runWriter writes the buffer whenever it is nudged, under SyncAlways also syncs it, and then wakes
// the callers that have waited for that. It ends when stop is closed.
func (l *Log) runWriter() {
	for {
		select {
		case <-l.stop:
			return
		case <-l.kick:
		}
		always := l.always()
		if always {
			l.awaitGroup()
		}
		l.ioMu.Lock()
		l.write()
		l.ioMu.Unlock()
		if always {
			_ = l.sync() // sync itself handles a failure
		}
		l.wake(false)
	}
}

// runTicker calls tick at the interval LogOptions.Tick until stop is closed.
func (l *Log) runTicker() {
	tick := time.NewTicker(l.o.Tick)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		l.tick()
	}
}

// tick appends the clock and durable-offset records that are due. Unless the log is idle, it also
// syncs the log: at every call, or under SyncNo at every sixtieth call. After a sync it records the
// new durable offset at once.
func (l *Log) tick() {
	l.note()
	l.ticks++
	if !l.idle() && (Policy(l.policy.Load()) != SyncNo || l.ticks%lazyTicks == 0) {
		if l.sync() == nil { // sync itself handles a failure
			l.note()
		}
	}
	l.wake(false)
}

// idle reports whether all effects and durable-offset records are durable. If so, it stores the
// present time in safeAt. The clock records and watermarks of a primary do not need an fsync.
func (l *Log) idle() bool {
	now := l.o.Stopwatch()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drops || max(l.seg.data, l.seg.noted) > l.synced.Load() || len(l.retired) > 0 {
		return false
	}
	l.safeAt.Store(int64(now))
	return true
}

// note appends a clock record if there are effects after the last one, and a durable-offset record
// if more effects are durable than recorded. Then it writes the buffer. It does nothing while the
// log refuses effects.
func (l *Log) note() {
	if l.refusing.Load() {
		return
	}
	clock := l.o.Clock()
	l.ioMu.Lock()
	defer l.ioMu.Unlock()
	l.mu.Lock()
	s := l.seg
	if s.data > s.clock && !l.drops {
		l.noteClock(clock)
	}
	if s.lacksRecord() && !l.drops {
		l.noteDurable()
	}
	l.mu.Unlock()
	l.write()
}

// noteClock appends the given clock record and advances the horizon. mu must be held.
func (l *Log) noteClock(clock clock.Record) {
	l.record(typeClock, func(dst []byte) []byte { return appendClock(dst, &clock) })
	l.seg.clock, l.seg.horizon = l.pos, clock.Derived.Add(clockReach)
}

// record appends a record of type t to the buffer; body appends the bytes of the record that follow
// the type. mu must be held.
func (l *Log) record(t recordType, body func(dst []byte) []byte) {
	before := len(l.buf)
	buf, at := l.seg.framer.begin(l.buf, t)
	l.buf = l.seg.framer.end(body(buf), at)
	l.pos += uint64(len(l.buf) - before)
}

// NoteClock appends a record of the present clock and a watermark, if one is known, after
// everything that was appended before, and writes the buffer. It returns the error of [Log.Fault].
func (l *Log) NoteClock() error {
	return l.noteNow(func() {
		l.noteClock(l.o.Clock())
		l.noteWatermark()
	})
}

// noteWatermark appends a watermark, if LogOptions.Watermark knows one. mu must be held.
func (l *Log) noteWatermark() {
	if l.o.Watermark == nil {
		return
	}
	if at := l.o.Watermark(); at > 0 {
		l.record(typeWatermark, func(dst []byte) []byte { return binary.LittleEndian.AppendUint64(dst, uint64(at)) })
	}
}

// NoteOrigin appends a record which says that o is the origin of the present state, everything
// appended before included, and writes the buffer. The origin holds until effects are appended. It
// returns the error of [Log.Fault], or says that o is malformed.
func (l *Log) NoteOrigin(o *Origin) error {
	if err := o.check(); err != nil {
		return err
	}
	return l.noteNow(func() {
		l.record(typeOrigin, func(dst []byte) []byte { return appendOrigin(dst, o) })
	})
}

// noteNow calls note, which appends records, with mu held, and writes the buffer. It does not call
// note if the files were given up. It returns the error of [Log.Fault].
func (l *Log) noteNow(note func()) error {
	l.ioMu.Lock()
	defer l.ioMu.Unlock()
	l.mu.Lock()
	if !l.drops {
		note()
	}
	l.mu.Unlock()
	l.write()
	return l.Fault()
}

// Sync writes and syncs everything that was appended before the call, under every policy, and wakes
// the callers that have waited for that. The error says that this failed, or why the log refuses
// effects.
func (l *Log) Sync() error {
	l.ioMu.Lock()
	l.write()
	l.ioMu.Unlock()
	err := l.sync()
	l.wake(false)
	return err
}

// errClosed is the reason why a closed log refuses effects.
var errClosed = errors.New("the log is closed")
