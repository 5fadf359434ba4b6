package persistence

import (
	"fmt"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// newLog returns a log that appends to seg, which is empty and durable. It starts the goroutines of
// the log.
func newLog(seg *segment, o LogOptions) *Log {
	l := makeLog(seg, o)
	l.done.Go(l.runWriter)
	l.done.Go(l.runTicker)
	return l
}

// makeLog returns a log that appends to seg and has no goroutines yet.
func makeLog(seg *segment, o LogOptions) *Log {
	l := &Log{o: o, logTail: logTail{seg: seg, pos: 1}, kick: make(chan struct{}, 1), stop: make(chan struct{})}
	if l.o.Tick == 0 {
		l.o.Tick = time.Second
	}
	seg.start, seg.data, seg.clock = l.pos, l.pos, l.pos
	l.policy.Store(uint32(o.Policy))
	l.written.Store(l.pos)
	l.synced.Store(l.pos)
	l.safeAt.Store(int64(l.o.Stopwatch()))
	return l
}

// nowhere is the File of a log without a file. Only Write and Close may be called.
type nowhere struct{ File }

// Write implements [File]. It drops b.
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

// Close does nothing, because there is no file.
func (nowhere) Close() error { return nil }

// NewVolatile returns a log without a file. A server without persistence uses it to serve replicas:
// the tap of the log gets the records. Stopwatch, Clock and Log of o must be set; the policy does
// not matter. The log refuses no effects before it is closed. It has no goroutines, so appended
// records reach the tap only when a method that writes is called, such as [Log.Await] or
// [Log.NoteClock].
func NewVolatile(o LogOptions) *Log {
	l := makeLog(&segment{path: "the stream to replicas", f: nowhere{}, framer: framer{unread: true}}, o)
	l.volatile = true
	l.seg.horizon = o.Clock().Derived.Add(clockReach)
	return l
}

// Append implements keyspace.Journal. It adds record, with the long values refs in their places, to
// the buffer, and becomes the owner of refs. at is the latest instant of the effects; if it is
// later than the horizon of the last clock record, Append adds a clock record first. position is
// the position after the record. While the files are given up, Append drops the record. If a record
// is too large, Append drops it and gives up the files, if there are any. It does not wait for the
// disk.
func (l *Log) Append(record []byte, refs []shared.Ref, at limit.Instant) (position uint64) {
	size := len(record)
	for i := range refs {
		size += len(refs[i].Bytes)
	}
	l.mu.Lock()
	for !l.drops && !l.volatile && size >= maxRecord {
		seg := l.seg
		l.mu.Unlock()
		l.fail(seg, fmt.Errorf("a record of %d bytes is more than %s can hold", size, seg.path))
		l.mu.Lock()
	}
	if l.drops || size >= maxRecord {
		if !l.drops { // a log without a file drops only this record
			l.discard()
		}
		l.pos += uint64(size)
		shared.ReleaseAll(refs)
	} else {
		if at > l.seg.horizon {
			l.noteClock(l.o.Clock())
		}
		l.frame(record, refs)
		l.pos += uint64(size + frameHead + 1)
		l.seg.data = l.pos
	}
	position = l.pos
	l.mu.Unlock()
	return position
}

// frame appends a record of effects to the buffer, and becomes the owner of refs. mu must be held.
func (l *Log) frame(record []byte, refs []shared.Ref) {
	buf, from := l.seg.framer.begin(l.buf, typeEffects)
	known := len(l.long.refs)
	buf = l.long.add(buf, record, refs)
	l.buf = l.seg.framer.endWith(buf, from, l.long.refs[known:])
}

// Await returns the [Outcome] for everything up to the position pos. If the policy only requires
// writing to the kernel and the disk is not slow, Await itself writes. If the log refuses effects,
// the outcome is Lost. Otherwise it is Pending: the writer goroutine writes and wakes w when the
// outcome may have changed, and the caller then calls Await again. w may be nil; then no caller is
// woken.
func (l *Log) Await(pos uint64, w Waker) Outcome {
	if l.kept() >= pos {
		return Kept
	}
	if !l.always() && (l.volatile || !l.isSlow()) {
		if l.lockToWrite(pos) {
			if l.written.Load() < pos {
				l.write()
			}
			l.ioMu.Unlock()
		}
		if l.kept() >= pos {
			return Kept
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept() >= pos {
		return Kept
	}
	if l.refusing.Load() {
		return Lost
	}
	if w != nil {
		l.waiters = append(l.waiters, waiter{pos, w})
	}
	if w == nil || len(l.waiters) == 1 {
		l.nudge()
	}
	return Pending
}

// spins is the number of times that a caller checks the written position while another goroutine
// writes, before it asks to be woken. The checks take some microseconds. Most writes are shorter
// than waking a goroutine.
const spins = 4000

// lockToWrite locks ioMu, so that the caller can write up to pos, and returns true. It returns
// false without the lock if another goroutine has written up to pos, or holds ioMu for longer than
// a usual write; then the writer goroutine serves pos. In a log without a file, which has no writer
// goroutine, it waits for ioMu.
func (l *Log) lockToWrite(pos uint64) bool {
	for i := range spins {
		if l.written.Load() >= pos {
			return false
		}
		if i%64 == 0 && l.ioMu.TryLock() {
			return true
		}
	}
	if l.volatile {
		l.ioMu.Lock()
	}
	return l.volatile
}
