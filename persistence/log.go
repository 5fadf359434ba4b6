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

// Policy says whether effects must be durable before replies to their commands are sent.
type Policy uint8

// The policies, with the names of appendfsync. Under each of them effects are written to the
// kernel before the reply is sent, so a crash of the process loses nothing.
const (
	// SyncNo leaves it to the kernel when to write to the disk; after a minute the log is synced.
	SyncNo Policy = iota
	// SyncEverySecond may lose the effects of the last second if the machine crashes.
	SyncEverySecond
	// SyncAlways loses no effect.
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

// Waker is woken when an [Outcome] may have changed. Wake must not block.
type Waker interface{ Wake() }

// Outcome says whether the effects up to a position are safe.
type Outcome uint8

// The outcomes of [Log.Await].
const (
	// Kept: everything up to the position is as safe as the policy asks for.
	Kept Outcome = iota
	// Pending: the log will wake the waker.
	Pending
	// Lost: the effects cannot be kept, and no reply may say that they were.
	Lost
)

// slowDisk is the duration of a write or an fsync from which on callers leave the next one to the
// writer goroutine.
const slowDisk = 5 * time.Millisecond

// Log appends records to the newest increment. It implements keyspace.Journal. Its methods may be
// called from any goroutine; Append and Refuses never wait for a disk.
type Log struct {
	o LogOptions
	// volatile says that there is no file: see NewVolatile.
	volatile bool

	// ioMu is held while the buffer is written; it is locked before mu.
	ioMu  sync.Mutex
	spare []byte // guarded by ioMu: the second buffer, which is not being filled
	// unowned is the position up to which has been written since replace; guarded by ioMu.
	unowned uint64
	tap     Tap // guarded by ioMu; nil without one

	syncMu sync.Mutex // held during an fsync; locked before ioMu
	ticks  int        // used by the ticker's goroutine only

	mu sync.Mutex // guards the tail
	logTail
	logStatus

	kick chan struct{}
	stop chan struct{}
	done sync.WaitGroup
}

// logTail is what has been appended and may not be durable yet, and the callers that wait for it.
type logTail struct {
	seg     *segment
	retired []*segment // segments that are written and not yet durable
	buf     []byte     // framed and not yet written
	long    values     // values that belong into buf and are stored elsewhere
	pos     uint64     // position behind the last record in buf
	drops   bool       // all appended records are dropped until another segment replaces this one
	gap     bool       // records were dropped, of which the tap has not been notified yet
	waiters []waiter
	woken   []Waker // scratch
	crowd   int     // how many callers will probably wait for the next fsync: see expected
}

// logStatus is the state of a log that can be read without a lock.
type logStatus struct {
	written, synced atomic.Uint64
	policy          atomic.Uint32
	refusing        atomic.Bool
	// adopting says that no manifest names the segment yet: records are accepted, but are durable
	// only once there is a base: see Dir.AcceptState. It is changed with mu held.
	adopting   atomic.Bool
	fault      atomic.Pointer[error]
	slow       atomic.Bool
	writeBegan atomic.Int64 // stopwatch reading, 0 if no write is in progress
	syncBegan  atomic.Int64 // likewise for an fsync
	safeAt     atomic.Int64 // stopwatch reading: everything that was appended until then is durable
	counts     counts
}

// LogOptions configure a log.
type LogOptions struct {
	Policy Policy
	// Stopwatch reads a monotonic clock. It is only used to measure durations.
	Stopwatch func() time.Duration
	// Clock returns the clock record from which a restart continues. It is called about once a
	// second while there is something to record, and by NoteClock. It must be quick.
	Clock func() clock.Record
	// Watermark returns an instant that is not later than any record that is yet to be appended, or
	// 0. NoteClock passes it to replicas, unless Watermark is nil. It must be quick.
	Watermark func() limit.Instant
	// OnFault is called when the log begins to refuse. It must not block the goroutine that calls
	// it.
	OnFault func(error)
	// Wrote and Synced are called with the duration of each write and each fsync, by the goroutine
	// that made it; they may be nil.
	Wrote, Synced func(took time.Duration)
	Log           *slog.Logger
	// Tick is the interval of fsyncs and durable-offset records: a second.
	Tick time.Duration
}

// counts are the counters for INFO.
type counts struct {
	writes, syncs, slowSyncs, faults atomic.Int64
	lastSync                         atomic.Int64 // duration in nanoseconds
}

// segment is the increment that a log appends to.
type segment struct {
	part
	path   string
	f      File
	framer framer
	start  uint64 // the log's position at offset headerSize of the file
	// data is the position behind the last effects. durable is the offset up to which everything is
	// durable, and recorded the offset in the last durable-offset record.
	data              uint64
	durable, recorded int64
	clock             uint64 // position behind the last clock record
	noted             uint64 // position behind the last durable-offset record, 0 without one
	// horizon is the latest instant that effects after that clock record may have.
	horizon limit.Instant
}

// clockReach is by how much effects may be later than the clock record before them, so that a
// restart knows an instant that is not earlier than any effect. It is part of the format.
const clockReach = time.Second

func (s *segment) offset(pos uint64) int64 { return headerSize + int64(pos-s.start) }

type waiter struct {
	pos uint64
	w   Waker
}

// Position returns the position behind the last appended record.
func (l *Log) Position() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pos
}

// Written returns the position up to which everything has been written to the kernel.
func (l *Log) Written() uint64 { return l.written.Load() }

// Synced returns the position up to which everything is durable. Without a file it never advances.
func (l *Log) Synced() uint64 { return l.synced.Load() }

// Refuses implements keyspace.Journal.
func (l *Log) Refuses() bool { return l.refusing.Load() }

// Fault returns the reason why the log refuses, or nil.
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

// kept returns the position up to which everything is as safe as the policy requires.
func (l *Log) kept() uint64 {
	if l.always() {
		return l.synced.Load()
	}
	return l.written.Load()
}

// isSlow reports whether the disk is slow, so that only the writer goroutine may wait for it.
func (l *Log) isSlow() bool {
	return l.slow.Load() || l.isLong(&l.writeBegan) || l.isLong(&l.syncBegan)
}

// isLong reports whether the write or fsync that began then is in progress and slow.
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

// wake wakes the callers that wait for a position which is kept now, or all callers.
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
	if len(rest) > 0 && !(l.adopting.Load() && l.always()) { // while adopting, no fsync can serve them
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

// expected returns the crowd, the number of callers that the next fsync should wait for. waiting is
// the number of callers that waited for the last fsync or wait for the next one, and crowd the
// previous crowd. It shrinks in steps only, because some callers of a large crowd are sending their
// next commands.
func expected(waiting, crowd int) int { return max(waiting, crowd*3/4) }
