// Package manager runs the persistence of a server: it loads the files, and saves what changes.
//
// A [Persistence] passes the records of effects to the log, writes a snapshot when one is due or is
// requested, and repairs the log after a fault. It leaves the files unchanged while a replica
// receives the state of its primary. The files and their formats are in package persistence.
package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

// Settings is the configuration of the server. Its methods return the present values of options, by
// their names. Any goroutine may call them.
type Settings interface {
	// Value returns the value of an option as text. Number, Seconds and Yes return the value of an
	// option that is a number, a number of seconds, or yes or no.
	Value(name string) string
	Number(name string) int64
	Seconds(name string) time.Duration
	Yes(name string) bool
	// Kept reports whether the server may keep its state on disk. If not, the files are not used.
	Kept() bool
	// SaveDue reports whether a save point has been reached, given the time since the last snapshot
	// and the number of changes since then.
	SaveDue(since time.Duration, changes int64) bool
}

// Keyspace has the keys that are loaded and saved. [keyspace.Keyspace] implements it.
type Keyspace interface {
	persistence.Sink
	persistence.Source
	// SetJournal makes the keyspace pass the records of effects to j.
	SetJournal(j keyspace.Journal)
	// Exclusively calls f while no goroutine uses the keyspace.
	Exclusively(f func())
	// SweepTo makes the keyspace remove only those expired keys whose expiry is not after at.
	SweepTo(at limit.Instant)
	// Watermark returns an instant that is not later than any record which the journal has yet to
	// receive.
	Watermark() limit.Instant
}

// Replication has the information that persistence needs about the replicas of this server and
// about its primary. Any goroutine may call its methods.
type Replication interface {
	// Await says whether the reply to the change at position may be sent to p: see
	// [replication.ReplyBarrier]. While too few replicas have acknowledged the change, the outcome
	// is Pending. Delays reports whether replies to changes wait for replicas now.
	Await(position uint64, p transport.Peer) transport.Outcome
	Delays() bool
	// IsWhole reports whether memory has a complete state. It returns false during a full
	// resynchronization.
	IsWhole() bool
}

// Options are the options of a [Persistence].
type Options struct {
	// FS is the file system of the files; nil uses the file system of the operating system.
	FS persistence.FS
	// Settings is the configuration of the server.
	Settings Settings
	// Follows reports whether the server is configured to follow a primary.
	Follows func() bool
	// Time has the sources of time from which [Persistence.Read] determines the instant at which
	// the server's clock continues.
	Time clock.Options
	// Began is the civil time at which the server was created. Stopwatch returns the time since
	// then, by a monotonic clock.
	Began     time.Time
	Stopwatch func() time.Duration
	// Loading reports whether the server refuses commands because it is loading. It is for INFO.
	Loading func() bool
	// Wrote and Synced are called with the duration of each write and of each fsync of the log.
	Wrote, Synced func(took time.Duration)
	// Log receives messages for operators.
	Log *slog.Logger
}

// dataSet has the data set of the keys in memory.
type dataSet struct {
	has     atomic.Pointer[persistence.DataSet] // the data set; nil until it is loaded
	changed atomic.Bool                         // whether the manifest may name another data set
}

// Persistence runs the persistence of a server: it loads the files, passes changes to the log,
// writes a snapshot when one is due, and repairs the log after a fault. It implements
// [env.Persistence], [replication.Files], and [keyspace.Journal] around the log. Without appendonly
// there is no log on disk: then it counts changes, writes snapshots, and passes changes to
// replicas.
//
// The server calls Lock and Read before it has a clock, then Connect and Prepare before it accepts
// clients, then Load unless Loaded returns true, and then Run. Any goroutine may call the other
// methods after Prepare.
type Persistence struct {
	o           Options
	clock       clock.Clock
	keyspace    Keyspace
	replication Replication // the state of replication; nil if nothing is replicated

	// start is the instant at which the server's clock continues. It is 0 if no files were read.
	start limit.Instant
	log   atomic.Pointer[persistence.Log] // the log; nil while loading, and without appendonly unless replicas need it

	mu  sync.Mutex
	dir *persistence.Dir // the directory; nil until it is first used; for its changes see take

	keepsNone
	changes   atomic.Int64  // number of records of effects since the start
	writing   sync.Mutex    // held while a snapshot is written
	saving    atomic.Bool   // whether a snapshot is being written
	heal      chan struct{} // receives a value when Run has to repair the log
	work      sync.WaitGroup
	closeOnce sync.Once

	lastSave   atomic.Int64 // time of the last snapshot, in Unix seconds of civil time
	savedAt    atomic.Int64 // reading of the stopwatch at the last snapshot
	savedTo    atomic.Int64 // number of changes that the last snapshot contains
	saveFailed atomic.Bool
	failures   atomic.Int64 // number of snapshots that have failed since the last success
	retryAt    atomic.Int64 // reading of the stopwatch before which no snapshot is due
	snapshots  snapshots

	progress persistence.Progress
	began    atomic.Int64           // reading of the stopwatch at which loading began
	loaded   atomic.Pointer[loaded] // the result of loading; nil until loading is done
	left     atomic.Bool            // whether the server stops before loading is done

	dataSet dataSet
}

// New creates a Persistence that uses no files yet.
func New(o Options) *Persistence {
	if o.FS == nil {
		o.FS = persistence.OS{}
	}
	m := &Persistence{o: o, heal: make(chan struct{}, 1)}
	m.lastSave.Store(o.Began.Unix())
	return m
}

// Connect sets the clock and the keyspace of the server, and its replication; r is nil if nothing
// is replicated.
func (m *Persistence) Connect(c clock.Clock, ks Keyspace, r Replication) {
	m.clock, m.keyspace, m.replication = c, ks, r
}

// Path returns the path of the directory of persistence, relative to the working directory if the
// option dir is.
func (m *Persistence) Path() string {
	return filepath.Join(m.o.Settings.Value("dir"), m.o.Settings.Value("appenddirname"))
}

// take opens and locks the directory of persistence, and sets m.dir. The caller holds mu, or no
// other goroutine uses m yet.
func (m *Persistence) take() (err error) {
	path, err := filepath.Abs(m.Path())
	if err != nil {
		return fmt.Errorf("the directory of persistence: %w", err)
	}
	m.dir, err = persistence.Take(persistence.Options{
		FS: m.o.FS, Path: path, Clock: m.record, Stopwatch: m.o.Stopwatch, DataSet: m.hasDataSet, Log: m.o.Log,
	})
	return err
}

// open returns the directory of persistence. It opens and reads the directory first if m has not
// used it before.
func (m *Persistence) open() (*persistence.Dir, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dir == nil {
		if err := m.take(); err != nil {
			return nil, err
		}
		if err := m.dir.Read(); err != nil {
			err = errors.Join(err, m.dir.Close())
			m.dir = nil
			return nil, err
		}
	}
	return m.dir, nil
}

// record returns the reading of the server's clock in the form in which files store it. For a clock
// that has no such form, the record only has the present instant.
func (m *Persistence) record() clock.Record {
	if c, ok := m.clock.(interface{ Record() clock.Record }); ok {
		return c.Record()
	}
	return clock.Record{Derived: m.clock.Now(), Wall: int64(m.clock.Now())}
}

// PutInForce applies the present value of appendfsync to the log, if there is a log.
func (m *Persistence) PutInForce() {
	if l := m.log.Load(); l != nil {
		if p, err := persistence.ParsePolicy(m.o.Settings.Value("appendfsync")); err == nil {
			l.SetPolicy(p)
		}
	}
}

// Append implements [keyspace.Journal]. It counts the change, passes it to the log, and returns the
// position after it. Without a log it releases refs and returns 0.
func (m *Persistence) Append(record []byte, refs []shared.Ref, at limit.Instant) uint64 {
	m.changes.Add(1)
	l := m.log.Load()
	if l == nil {
		shared.ReleaseAll(refs)
		return 0
	}
	return l.Append(record, refs, at)
}

// Refuses implements [keyspace.Journal]. It returns false without a log.
func (m *Persistence) Refuses() bool {
	l := m.log.Load()
	return l != nil && l.Refuses()
}

// Await implements [env.Persistence]. If the log has not persisted the change at position yet, the
// outcome is Pending; if it cannot, Lost. Otherwise the outcome is that of [Replication].Await, or
// [transport.Kept] if nothing is replicated. Without a log it is [transport.Kept].
func (m *Persistence) Await(position uint64, p transport.Peer) transport.Outcome {
	l := m.log.Load()
	if l == nil {
		return transport.Kept
	}
	switch l.Await(position, p) {
	case persistence.Kept:
		if m.replication == nil {
			return transport.Kept
		}
		return m.replication.Await(position, p)
	case persistence.Pending:
		return transport.Pending
	}
	return transport.Lost
}

// Position implements [env.Persistence]. It returns 0 without a log.
func (m *Persistence) Position() uint64 {
	l := m.log.Load()
	if l == nil {
		return 0
	}
	return l.Position()
}

// Fault implements [env.Persistence]. It returns "" without a fault or without a log. The message
// begins with a capital letter, as the messages of C's strerror do in replies of Redis.
func (m *Persistence) Fault() string {
	l := m.log.Load()
	if l == nil {
		return ""
	}
	err := l.Fault()
	if err == nil {
		return ""
	}
	return resp.Strerror(err)
}

// Awaited implements [env.Persistence]. It reports whether replies to changes wait for replicas.
func (m *Persistence) Awaited() bool {
	return m.replication != nil && m.replication.Delays()
}

// Healthy reports whether changes are persisted as configured: no change is refused, and the last
// snapshot has not failed.
func (m *Persistence) Healthy() bool { return !m.Refuses() && !m.saveFailed.Load() }

// Unsafe returns an upper bound of the time for which any change has been waiting to be durable. It
// is 0 if all changes are durable or there is no log on disk.
func (m *Persistence) Unsafe() time.Duration {
	if l := m.fileLog(); l != nil {
		return l.Stats().Unsafe
	}
	return 0
}

// Stalled returns for how long the present fsync of the log has been running, in whole
// milliseconds. It is 0 if none is running. logs is false if there is no log on disk.
func (m *Persistence) Stalled() (running time.Duration, logs bool) {
	l := m.fileLog()
	if l == nil {
		return 0, false
	}
	return time.Duration(l.Stats().StalledMillis) * time.Millisecond, true
}

// faulted makes Run repair the log after a fault. It does not block.
func (m *Persistence) faulted(error) {
	select {
	case m.heal <- struct{}{}:
	default:
	}
}

// Run repairs the log after faults, writes snapshots when they are due, and writes a changed data
// set to the manifest, until ctx ends. Then it interrupts a snapshot that is being written, and
// waits for its end.
func (m *Persistence) Run(ctx context.Context) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			m.interrupt()
			m.work.Wait()
			m.keepDataSet()
			return
		case <-m.heal:
		case <-tick.C:
		}
		if (m.Refuses() || m.due()) && !m.suspended.Load() {
			m.begin()
		}
		m.keepDataSet()
	}
}

// interrupt makes loading, or a snapshot that is being written, end early with an error. It does
// nothing if m has no directory.
func (m *Persistence) interrupt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dir != nil {
		m.dir.Interrupt()
	}
}

// errLoading is the reason why a snapshot is refused during loading.
var errLoading = errors.New("the dataset is still being loaded")

// Loaded reports whether the loading of the files is complete.
func (m *Persistence) Loaded() bool { return m.loaded.Load() != nil }

// due reports whether a snapshot is due, because the log has grown enough or a save point has been
// reached. It returns false until retryAt, after several failures.
func (m *Persistence) due() bool {
	if int64(m.o.Stopwatch()) < m.retryAt.Load() {
		return false
	}
	changed := m.changes.Load() - m.savedTo.Load()
	if m.o.Settings.SaveDue(m.o.Stopwatch()-time.Duration(m.savedAt.Load()), changed) {
		return true
	}
	percent := m.o.Settings.Number("auto-aof-rewrite-percentage")
	if m.fileLog() == nil || percent == 0 {
		return false
	}
	base, grown := m.dir.Sizes()
	return grown >= m.o.Settings.Number("auto-aof-rewrite-min-size") && grown >= base/100*percent
}

// begin starts to write a snapshot in the background. It returns false, and starts none, while
// another snapshot is being written, the files are being loaded, or persistence is suspended.
func (m *Persistence) begin() bool {
	if !m.Loaded() || m.suspended.Load() || !m.claim() {
		return false
	}
	m.work.Go(func() {
		defer m.release()
		_ = m.write(context.Background()) // write itself records the error
	})
	return true
}

// Start implements [env.Persistence]. It begins a snapshot in the background.
func (m *Persistence) Start() bool { return m.begin() }

// Save implements [env.Persistence]. It writes a snapshot and returns when that is done. During
// loading, and while another snapshot is being written or persistence is suspended, it returns an
// error at once.
func (m *Persistence) Save() error {
	if !m.Loaded() {
		return errLoading
	}
	if !m.claim() {
		return errors.New("Background save already in progress") //nolint:staticcheck // the words of Redis
	}
	defer m.release()
	return m.write(context.Background())
}

// claim reserves the right to write a snapshot until release, by locking m.writing. It returns
// false if another goroutine has that right.
func (m *Persistence) claim() bool {
	if !m.writing.TryLock() {
		return false
	}
	m.saving.Store(true)
	return true
}

func (m *Persistence) release() {
	m.saving.Store(false)
	m.writing.Unlock()
}

// failuresAllowed is the number of consecutive failures after which the next snapshot is not due
// for a minute. Each further failure doubles that time, up to maxRetryDelay. Redis has the same
// delays (AOF_REWRITE_LIMITE_THRESHOLD). Repairs of the log are not delayed.
const (
	failuresAllowed = 3
	maxRetryDelay   = time.Hour
)

// write writes a snapshot, which also repairs a log that refuses changes, and updates the figures
// about snapshots. If ctx ends first, write returns an error and counts no failure. It logs any
// other error, unless the snapshot was to repair the log. The caller holds m.writing.
func (m *Persistence) write(ctx context.Context) error {
	healing := m.Refuses()
	began, upTo := m.o.Stopwatch(), m.changes.Load()
	m.snapshots.began.Store(int64(began))
	var done persistence.Rewritten
	dir, err := m.open()
	if err == nil {
		done, err = dir.RewriteContext(ctx, m.keyspace)
	}
	took := m.o.Stopwatch() - began
	m.snapshots.took.Store(int64(took))
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		m.saveFailed.Store(true)
		if n := m.failures.Add(1); n >= failuresAllowed {
			delay := min(time.Minute<<min(n-failuresAllowed, 10), maxRetryDelay)
			m.retryAt.Store(int64(m.o.Stopwatch() + delay))
		}
		if !healing {
			m.o.Log.Error("a snapshot could not be written", "error", err)
		}
		return err
	}
	m.failures.Store(0)
	m.snapshots.written.Add(1)
	m.saveFailed.Store(false)
	m.lastSave.Store(int64(m.clock.Civil(m.clock.Now())) / int64(time.Second))
	m.savedAt.Store(int64(m.o.Stopwatch()))
	m.savedTo.Store(upTo)
	m.o.Log.Info("snapshot written", "keys", done.Keys, "bytes", done.Bytes, "took", took.String(), "healed", healing)
	return nil
}

// SaveAtStop writes the final snapshot, if one is needed. mode says what the operator has
// requested. A log on disk is complete, so with such a log a snapshot is written only with
// [env.StopSaving], or if the log refuses changes: then its content on disk is unknown. Without
// such a log, [env.StopAsConfigured] also writes one if there are save points. SaveAtStop writes
// none if the files were not loaded. During a full resynchronization it writes one only with
// [env.StopSaving], if there is a log on disk and memory has a complete state. The error says that
// the snapshot could not be written.
func (m *Persistence) SaveAtStop(mode env.StopMode) error {
	if m.left.Load() || !m.Loaded() {
		return nil // the files have everything that memory has
	}
	if m.suspended.Load() {
		if mode != env.StopSaving || !m.replication.IsWhole() {
			return nil // the primary has the state, or memory has only a part of it
		}
		return m.rewriteState(context.Background())
	}
	wanted := mode == env.StopSaving ||
		mode == env.StopAsConfigured && m.fileLog() == nil && m.o.Settings.Value("save") != ""
	if !wanted && !m.Refuses() {
		return nil
	}
	m.writing.Lock() // the lock waits for a snapshot that is being written, since it lacks the last changes
	m.saving.Store(true)
	defer m.release()
	if err := m.write(context.Background()); err != nil {
		return fmt.Errorf("saving at the end: %w", err)
	}
	return nil
}

// rewriteState ends the suspension of persistence after the state of a primary was copied, and
// unlocks m.writing. If there is a log on disk, it writes a snapshot of the new state first. If ctx
// ends before that is done, rewriteState returns an error, and persistence stays suspended. Any
// other error of the snapshot is returned after the suspension has ended.
func (m *Persistence) rewriteState(ctx context.Context) (err error) {
	m.changes.Add(1) // a change is counted for the save points, since no file has the new state
	if m.fileLog() != nil {
		m.saving.Store(true)
		err = m.write(ctx)
		m.saving.Store(false)
		if err != nil && ctx.Err() != nil {
			return err
		}
	}
	m.suspended.Store(false)
	m.writing.Unlock()
	return err
}

// LastSave implements [env.Persistence]. It returns the time of the last snapshot in Unix seconds,
// or that of the start if there was no snapshot since.
func (m *Persistence) LastSave() int64 { return m.lastSave.Load() }

// Close waits for a snapshot that is being written in the background, closes the log, and unlocks
// the directory. All changes in the log are durable when it returns, unless it returns an error.
// Only the first call has an effect.
func (m *Persistence) Close() (err error) {
	m.closeOnce.Do(func() {
		m.work.Wait()
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.dir != nil {
			err = m.dir.Close()
		}
	})
	return err
}
