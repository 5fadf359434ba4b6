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

// Policy determines when effects must be durable: the option appendfsync.
type Policy uint8

// These are the policies. Under each of them effects are written to the kernel before the replies
// to their commands are sent, so a crash of the process loses no acknowledged effect.
const (
	// SyncNo ("no") leaves it to the kernel when to write to the disk. The log is synced once a
	// minute.
	SyncNo Policy = iota
	// SyncEverySecond ("everysec") syncs the log every second. A crash of the machine may lose the
	// effects since the last fsync: about a second, or more if the disk is slow.
	SyncEverySecond
	// SyncAlways ("always") syncs effects before the replies are sent. A crash of the machine loses
	// no acknowledged effect.
	SyncAlways
)

// ParsePolicy returns the policy with the name s: "no", "everysec" or "always". Any other name is
// an error.
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

// Waker is woken when the [Outcome] that it waits for may have changed. Wake must not block.
type Waker interface{ Wake() }

// Outcome is the result of [Log.Await]: whether the effects up to a position are safe.
type Outcome uint8

// These are the outcomes of [Log.Await].
const (
	// Kept means that everything up to the position is as safe as the policy requires.
	Kept Outcome = iota
	// Pending means that the outcome is not known yet. The log will wake the waker.
	Pending
	// Lost means that the effects cannot be kept. No reply may say that they were kept.
	Lost
)

// slowDisk is the duration of a write or an fsync beyond which the disk counts as slow. Callers
// then leave writing to the writer goroutine.
const slowDisk = 5 * time.Millisecond

// Log appends records to the newest increment. It implements keyspace.Journal. Any goroutine may
// call the methods; Append and Refuses never wait for a disk.
type Log struct {
	o LogOptions
	// volatile is true for a log without a file: see NewVolatile.
	volatile bool

	// ioMu is held while the buffer is written. It is locked before mu.
	ioMu  sync.Mutex
	spare []byte // the buffer that takes the place of buf while buf is written; guarded by ioMu
	// unowned is the position up to which everything appended since replace has been written to a
	// segment that no manifest names yet. Guarded by ioMu.
	unowned uint64
	tap     Tap // receives all records that are written; nil if there is none; guarded by ioMu

	syncMu sync.Mutex // held during an fsync; locked before ioMu
	ticks  int        // number of ticks so far; used only by the goroutine of runTicker

	mu sync.Mutex // mu guards logTail
	logTail
	logStatus

	kick chan struct{}  // a value wakes runWriter
	stop chan struct{}  // closed by Close to end the goroutines
	done sync.WaitGroup // counts the goroutines runWriter and runTicker
}

// logTail has the records that were appended and may not be durable yet, and the callers that wait
// for them.
type logTail struct {
	seg     *segment   // the segment to which records are appended
	retired []*segment // segments that are written completely and are not durable yet
	buf     []byte     // framed records that are not written yet, without the bytes of long
	long    values     // long values that belong to the records in buf but are not in it
	pos     uint64     // position after the last appended record
	drops   bool       // the files were given up: all records are dropped until another segment replaces seg
	gap     bool       // whether records were dropped of which the tap has not been notified
	waiters []waiter
	woken   []Waker // memory for the list of callers to wake; wake reuses it
	crowd   int     // number of callers that will probably wait for the next fsync: see expected
}

// logStatus has the state of a log that can be read without a lock.
type logStatus struct {
	written, synced atomic.Uint64 // positions up to which records are written, and durable: see Written and Synced
	policy          atomic.Uint32
	refusing        atomic.Bool // whether effects are refused: see Refuses
	// adopting is true while records are accepted although no manifest names the segment yet, so
	// that they become durable only with the next base: see Dir.AcceptState. It is changed with mu
	// held.
	adopting   atomic.Bool
	fault      atomic.Pointer[error] // the reason why the log refuses effects; nil if it does not
	slow       atomic.Bool           // whether the last write was slow: see slowDisk
	writeBegan atomic.Int64          // stopwatch reading at the beginning of the present write; 0 if there is none
	syncBegan  atomic.Int64          // stopwatch reading at the beginning of the present fsync; 0 if there is none
	safeAt     atomic.Int64          // stopwatch reading; everything that was appended before it is durable
	counts     counts
}

// LogOptions configure a [Log].
type LogOptions struct {
	Policy Policy // Policy is the policy at the start: see [Log.SetPolicy].
	// Stopwatch reads a monotonic clock. It is used only to measure durations.
	Stopwatch func() time.Duration
	// Clock returns the present clock record. Such records are written to the log, so that a
	// restart continues from the last one. Clock is called about once a second, by NoteClock, and
	// by Append with a lock held. It must be quick and must not call the log.
	Clock func() clock.Record
	// Watermark returns an instant that is not later than any record that is yet to be appended, or
	// 0 if it knows none. NoteClock passes the instant to replicas, unless Watermark is nil.
	// Watermark must be quick and must not call the log.
	Watermark func() limit.Instant
	// OnFault, if not nil, is called with the reason when the log begins to refuse effects because a
	// write or an fsync has failed or a record is too large. It must not block.
	OnFault func(error)
	// Wrote and Synced, if not nil, are called with the duration of each write and of each fsync,
	// by the goroutine that made it.
	Wrote, Synced func(took time.Duration)
	Log           *slog.Logger
	// Tick is the interval at which the log appends clock and durable-offset records and, unless the
	// policy is SyncNo, syncs: a second if it is 0.
	Tick time.Duration
}

// counts has the counters for INFO.
type counts struct {
	writes, syncs, slowSyncs, faults atomic.Int64
	lastSync                         atomic.Int64 // duration of the last fsync in nanoseconds
}

// segment is an increment to which a log appends, or has appended.
type segment struct {
	part
	path   string
	f      File
	framer framer
	start  uint64 // the position of the log at the offset headerSize of the file
	// data is the position after the last record of effects. durable is the offset in the file up
	// to which everything is durable, and recorded is the offset in the last durable-offset record.
	data              uint64
	durable, recorded int64
	clock             uint64 // position after the last clock record
	noted             uint64 // position after the last durable-offset record; 0 if there is none
	// horizon is the latest instant that effects after the last clock record may have.
	horizon limit.Instant
}

// clockReach is the maximum time by which effects may be later than the clock record before them.
// So a restart knows an instant that is not earlier than any effect. It is part of the file format.
const clockReach = time.Second

// offset returns the offset in the file of the log's position pos.
func (s *segment) offset(pos uint64) int64 { return headerSize + int64(pos-s.start) }

// waiter is a caller that waits for a position.
type waiter struct {
	pos uint64
	w   Waker
}

// Position returns the position after the last appended record. Positions count bytes from the
// start of the log, across segments.
func (l *Log) Position() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pos
}

// Written returns the position up to which everything has been written to the kernel. It includes
// records that were dropped after a fault, once the log accepts effects again.
func (l *Log) Written() uint64 { return l.written.Load() }

// Synced returns the position up to which everything is durable. For a log without a file it never
// advances.
func (l *Log) Synced() uint64 { return l.synced.Load() }

// Refuses implements keyspace.Journal: it reports whether effects cannot be kept now.
func (l *Log) Refuses() bool { return l.refusing.Load() }

// Fault returns the reason why the log refuses, or nil.
func (l *Log) Fault() error {
	if err := l.fault.Load(); err != nil && l.refusing.Load() {
		return *err
	}
	return nil
}

// SetPolicy changes the policy to p, and wakes all callers that wait, since their outcomes may have
// changed.
func (l *Log) SetPolicy(p Policy) {
	l.policy.Store(uint32(p))
	l.wakeAll()
	l.nudge()
}

// always reports whether effects must be durable before their replies. It returns false for a log
// without a file.
func (l *Log) always() bool { return !l.volatile && Policy(l.policy.Load()) == SyncAlways }

// kept returns the position up to which everything is as safe as the policy requires.
func (l *Log) kept() uint64 {
	if l.always() {
		return l.synced.Load()
	}
	return l.written.Load()
}

// isSlow reports whether the disk is slow, so that callers leave writing to the writer goroutine:
// see slowDisk.
func (l *Log) isSlow() bool {
	return l.slow.Load() || l.isLong(&l.writeBegan) || l.isLong(&l.syncBegan)
}

// isLong reports whether a write or fsync is in progress and slow. then is the stopwatch reading at
// its beginning, or 0 if none is in progress.
func (l *Log) isLong(then *atomic.Int64) bool {
	began := then.Load()
	return began != 0 && l.o.Stopwatch()-time.Duration(began) > slowDisk
}

// nudge makes runWriter write once more. It does not block.
func (l *Log) nudge() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// wake wakes the callers that wait for a position which is kept now or, if everybody is true, all
// callers. If callers remain, it nudges the writer goroutine.
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
	if len(rest) > 0 && !(l.adopting.Load() && l.always()) { // while records are only adopted, no fsync can make them durable
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

// expected returns the new crowd: the number of callers that the next fsync should wait for.
// waiting is the number of callers that waited for the last fsync or wait for the next one, and
// crowd is the previous crowd. The crowd shrinks by at most a quarter, because some of the callers
// that are missing now are about to send their next commands.
func expected(waiting, crowd int) int { return max(waiting, crowd*3/4) }
