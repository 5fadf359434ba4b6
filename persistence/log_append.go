package persistence

import (
	"fmt"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// newLog begins a log with seg, which is empty and durable.
func newLog(seg *segment, o LogOptions) *Log {
	l := makeLog(seg, o)
	l.done.Go(l.runWriter)
	l.done.Go(l.runTicker)
	return l
}

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

// nowhere is the file of a log without one. It takes everything.
type nowhere struct{ File }

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

func (nowhere) Close() error { return nil }

// NewVolatile returns a log without a file, of which nothing remains: a server that keeps
// nothing has replicas by its tap. Stopwatch, Clock and Log of the options must be set;
// the policy does not matter. It never refuses before it is closed. It has no goroutine:
// [Log.Await] and [Log.NoteClock] pass on what was appended, and only they do.
func NewVolatile(o LogOptions) *Log {
	l := makeLog(&segment{path: "the stream to replicas", f: nowhere{}, framer: framer{unread: true}}, o)
	l.volatile = true
	l.seg.horizon = o.Clock().Derived.Add(clockReach)
	return l
}

// Append implements keyspace.Journal.
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
		if !l.drops { // there is no file to give up, but there is a gap
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

// frame appends a record of effects to what is to be written. mu must be held.
func (l *Log) frame(record []byte, refs []shared.Ref) {
	buf, from := l.seg.framer.begin(l.buf, typeEffects)
	known := len(l.long.refs)
	buf = l.long.add(buf, record, refs)
	l.buf = l.seg.framer.endWith(buf, from, l.long.refs[known:])
}

// Await returns what has become of everything up to pos. Where that takes no
// longer than handing it to the kernel it does so. Otherwise the writer does, and has
// w woken when there is news, upon which Await is to be called again. Nobody is woken
// if w is nil.
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

// spins is for how many looks at the position, some microseconds, a caller waits for
// another's write before it has itself woken: writes are short, and that takes longer
// than most.
const spins = 4000

// lockToWrite takes ioMu, unless somebody else has written up to pos meanwhile or keeps
// it for longer than looks like a write: then pos is left to the writer, if there is one.
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
