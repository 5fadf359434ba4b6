package persistence

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
)

// Policy says whether effects must be durable before their replies are sent.
type Policy uint8

// The policies, with the names of appendfsync. Under each of them effects are written to the
// kernel before the reply is sent, so a crash of the process loses nothing.
const (
	// SyncNo lets the kernel decide when to write to the disk, for at most a minute.
	SyncNo Policy = iota
	// SyncEverySecond loses at most the last second if the machine crashes.
	SyncEverySecond
	// SyncAlways loses nothing.
	SyncAlways
)

// ParsePolicy reads a value of appendfsync.
func ParsePolicy(s string) (Policy, error) {
	switch s {
	case "no":
		return SyncNo, nil
	case "everysec":
		return SyncEverySecond, nil
	case "always":
		return SyncAlways, nil
	}
	return 0, fmt.Errorf("%q is not a policy of appendfsync", s)
}

// Waker is called when the outcome may have changed. It must not block.
type Waker interface{ Wake() }

// Outcome says whether a position is safe.
type Outcome uint8

// The outcomes of [Log.Await].
const (
	// Kept: everything up to the position is as safe as the policy asks for.
	Kept Outcome = iota
	// Pending: the waker is going to be woken.
	Pending
	// Lost: it cannot be kept, and no reply may say that it was.
	Lost
)

// slowDisk is the duration of a write or an fsync from which callers no longer wait for the
// next one themselves.
const slowDisk = 5 * time.Millisecond

// Log appends records to the newest increment. It implements keyspace.Journal. Its
// methods may be called from any goroutine; Append and Refuses never wait for a
// disk.
type Log struct {
	o LogOptions
	// volatile says that there is no file: see NewVolatile.
	volatile bool

	// ioMu is held by whoever writes; it is taken before mu.
	ioMu  sync.Mutex
	spare []byte // guarded by ioMu: the buffer that is not being filled
	// unowned is up to where it has been written since replace; guarded by ioMu.
	unowned uint64
	tap     Tap // guarded by ioMu; nil without one

	syncMu sync.Mutex // held by whoever syncs; taken before ioMu
	ticks  int        // of the ticker's goroutine

	mu sync.Mutex // guards the tail
	logTail
	logStatus

	kick chan struct{}
	stop chan struct{}
	done sync.WaitGroup
}

// logTail is what has been appended and may not be durable yet, and who waits for it.
type logTail struct {
	seg     *segment
	retired []*segment // segments that are written and not yet durable
	buf     []byte     // framed and not written
	long    values     // what belongs into buf and lies elsewhere
	pos     uint64     // behind the last record in buf
	drops   bool       // nothing is kept until another segment takes over
	gap     bool       // something was dropped, which the tap has not been told yet
	waiters []waiter
	woken   []Waker // scratch
	crowd   int     // how many are likely to wait for the next fsync: see expected
}

// logStatus is the state of a log that can be read without locking it.
type logStatus struct {
	written, synced atomic.Uint64
	policy          atomic.Uint32
	refusing        atomic.Bool
	// adopting says that no manifest names the segment yet: what is appended is accepted, and
	// durable only once a base is: see Dir.Adopt. It is changed with mu held.
	adopting   atomic.Bool
	fault      atomic.Pointer[error]
	slow       atomic.Bool
	writeBegan atomic.Int64 // stopwatch reading, 0 while none is in flight
	syncBegan  atomic.Int64 // likewise
	safeAt     atomic.Int64 // stopwatch reading up to which all that was appended is durable
	counts     counts
}

// LogOptions are the parts of a log.
type LogOptions struct {
	Policy Policy
	// Stopwatch is a monotonic reading; it only measures.
	Stopwatch func() time.Duration
	// Clock is asked about once a second, while there is something to record, for
	// what a restart goes on from, and by NoteClock. It must be quick.
	Clock func() clock.Record
	// Watermark returns an instant that nothing which is yet to be appended is earlier than, or 0,
	// for NoteClock to tell replicas; nil tells them nothing. It must be quick.
	Watermark func() limit.Instant
	// OnFault is called, in a goroutine that must not be held up, when the log
	// begins to refuse.
	OnFault func(error)
	// Wrote and Synced are told how long each write and each fsync took, by the goroutine that
	// waited for it; nil is not called.
	Wrote, Synced func(took time.Duration)
	Log           *slog.Logger
	// Tick is the interval of fsyncs and durable-offset records: a second.
	Tick time.Duration
}

// counts are for INFO.
type counts struct {
	writes, syncs, slowSyncs, faults atomic.Int64
	lastSync                         atomic.Int64 // nanoseconds it took
}

// segment is the increment that a log appends to.
type segment struct {
	part
	path   string
	f      File
	framer framer
	start  uint64 // the log's position of its offset headerSize
	// data is the position after the last effects. durable is the offset up to which
	// everything is durable, and recorded the offset of the last durable-offset record.
	data              uint64
	durable, recorded int64
	clock             uint64 // the position behind the last clock record
	noted             uint64 // and behind the last durable-offset record, 0 without one
	// horizon is the latest instant that effects may have behind that record.
	horizon limit.Instant
}

// clockReach is how much later than a clock record the effects behind it may be, so
// that a restart knows an instant that nothing is later than. It is part of the
// format.
const clockReach = time.Second

func (s *segment) offset(pos uint64) int64 { return headerSize + int64(pos-s.start) }

type waiter struct {
	pos uint64
	w   Waker
}

// Position is behind the last record that was appended.
func (l *Log) Position() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pos
}

// Written is the position up to which the kernel has everything.
func (l *Log) Written() uint64 { return l.written.Load() }

// Synced is the position up to which everything is durable. It never moves without a file.
func (l *Log) Synced() uint64 { return l.synced.Load() }

// Refuses implements keyspace.Journal.
func (l *Log) Refuses() bool { return l.refusing.Load() }

// Fault is why the log refuses, or nil.
func (l *Log) Fault() error {
	if err := l.fault.Load(); err != nil && l.refusing.Load() {
		return *err
	}
	return nil
}

// SetPolicy changes the policy.
func (l *Log) SetPolicy(p Policy) {
	l.policy.Store(uint32(p))
	l.wakeAll()
	l.nudge()
}

func (l *Log) always() bool { return !l.volatile && Policy(l.policy.Load()) == SyncAlways }

// kept is the position up to which everything is as safe as the policy asks for.
func (l *Log) kept() uint64 {
	if l.always() {
		return l.synced.Load()
	}
	return l.written.Load()
}

// isSlow reports whether the disk is slow, so that only the writer may wait for it.
func (l *Log) isSlow() bool {
	return l.slow.Load() || l.isLong(&l.writeBegan) || l.isLong(&l.syncBegan)
}

// isLong reports whether what began then is in flight and has been for long.
func (l *Log) isLong(then *atomic.Int64) bool {
	began := then.Load()
	return began != 0 && l.o.Stopwatch()-time.Duration(began) > slowDisk
}

func (l *Log) nudge() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// wake wakes those who wait for what is kept now, or everybody.
func (l *Log) wake(everybody bool) {
	l.mu.Lock()
	kept := l.kept()
	rest := l.waiters[:0]
	woken := l.woken[:0]
	for _, w := range l.waiters {
		if everybody || w.pos <= kept {
			woken = append(woken, w.w)
		} else {
			rest = append(rest, w)
		}
	}
	clear(l.waiters[len(rest):])
	l.crowd = expected(len(l.waiters), l.crowd)
	l.waiters, l.woken = rest, nil
	l.mu.Unlock()
	if len(rest) > 0 && !(l.adopting.Load() && l.always()) { // then no fsync serves them
		l.nudge()
	}
	for _, w := range woken {
		w.Wake()
	}
	clear(woken)
	l.mu.Lock()
	l.woken = woken[:0]
	l.mu.Unlock()
}

func (l *Log) wakeAll() { l.wake(true) }

// expected is the crowd that the next fsync is for, given how many waited when the last
// one ended, for it or the next, and the crowd that that was for. Of a large crowd some
// are on their way just then, so it shrinks by degrees only.
func expected(waiting, crowd int) int { return max(waiting, crowd*3/4) }
