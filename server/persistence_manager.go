package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

// dataSet has the data set of the keys in memory.
type dataSet struct {
	has     atomic.Pointer[persistence.DataSet] // nil until loaded
	changed atomic.Bool                         // the data set was changed and the manifest may name another
}

// persistenceManager runs persistence: it loads the files, passes changes to the log, writes a
// snapshot when one is due, and repairs the log after a fault. It implements [env.Persistence], and
// [keyspace.Journal] around the log. Without appendonly it only counts changes and writes
// snapshots.
type persistenceManager struct {
	s  *Server
	fs persistence.FS
	// start is the instant at which the server's clock continues. It is 0 if no files were read.
	start limit.Instant
	log   atomic.Pointer[persistence.Log] // nil while loading, and without appendonly unless replicas need it

	mu  sync.Mutex
	dir *persistence.Dir // guarded by mu; nil until a file is read or written

	keepsNone
	changes   atomic.Int64 // the number of records of effects since the start
	writing   sync.Mutex   // held while a snapshot is written
	saving    atomic.Bool  // a snapshot is being written
	heal      chan struct{}
	work      sync.WaitGroup
	closeOnce sync.Once

	lastSave   atomic.Int64 // in Unix seconds of civil time
	savedAt    atomic.Int64 // reading of the stopwatch at the last snapshot
	savedTo    atomic.Int64 // the number of changes that the last snapshot contains
	saveFailed atomic.Bool
	failures   atomic.Int64 // the number of consecutive failures of snapshots
	retryAt    atomic.Int64 // reading of the stopwatch before which no automatic snapshot is tried
	snapshots  snapshots

	progress persistence.Progress
	began    atomic.Int64           // reading of the stopwatch when loading began
	loaded   atomic.Pointer[loaded] // nil until loading is done
	left     atomic.Bool            // the server stops before loading is done

	dataSet dataSet
}

func (m *persistenceManager) path() string {
	return filepath.Join(m.s.config.Value("dir"), m.s.config.Value("appenddirname"))
}

// take opens and locks the directory of persistence, and sets m.dir. The caller holds mu, or no
// other goroutine uses m yet.
func (m *persistenceManager) take() (err error) {
	path, err := filepath.Abs(m.path())
	if err != nil {
		return fmt.Errorf("the directory of persistence: %w", err)
	}
	m.dir, err = persistence.Take(persistence.Options{
		FS: m.fs, Path: path, Clock: m.record, Stopwatch: m.s.stopwatch, DataSet: m.hasDataSet, Log: m.s.log,
	})
	return err
}

// open returns the directory of persistence. It opens and reads the directory first if m has not
// used it before.
func (m *persistenceManager) open() (*persistence.Dir, error) {
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

// record returns the reading of the server's clock in the form in which files store it.
func (m *persistenceManager) record() clock.Record {
	if c, ok := m.s.clock.(interface{ Record() clock.Record }); ok {
		return c.Record()
	}
	return clock.Record{Derived: m.s.clock.Now(), Wall: int64(m.s.clock.Now())}
}

func (m *persistenceManager) putInForce() {
	if l := m.log.Load(); l != nil {
		if p, err := persistence.ParsePolicy(m.s.config.Value("appendfsync")); err == nil {
			l.SetPolicy(p)
		}
	}
}

// Append implements [keyspace.Journal]. It counts the change. Without a log it releases refs and
// returns 0.
func (m *persistenceManager) Append(record []byte, refs []shared.Ref, at limit.Instant) uint64 {
	m.changes.Add(1)
	l := m.log.Load()
	if l == nil {
		shared.ReleaseAll(refs)
		return 0
	}
	return l.Append(record, refs, at)
}

// Refuses implements [keyspace.Journal]. It returns false without a log.
func (m *persistenceManager) Refuses() bool {
	l := m.log.Load()
	return l != nil && l.Refuses()
}

// Await implements [env.Persistence]. When the log has the change at position, the outcome is that
// of the barrier for replies, which waits for replicas. Without a log it is [transport.Kept].
func (m *persistenceManager) Await(position uint64, p transport.Peer) transport.Outcome {
	l := m.log.Load()
	if l == nil {
		return transport.Kept
	}
	switch l.Await(position, p) {
	case persistence.Kept:
		return m.s.replicator.await(position, p)
	case persistence.Pending:
		return transport.Pending
	}
	return transport.Lost
}

// Position implements [env.Persistence]. It returns 0 without a log.
func (m *persistenceManager) Position() uint64 {
	l := m.log.Load()
	if l == nil {
		return 0
	}
	return l.Position()
}

// Fault implements [env.Persistence]. The message begins with a capital letter, as the messages of
// C's strerror do in replies of Redis.
func (m *persistenceManager) Fault() string {
	l := m.log.Load()
	if l == nil {
		return ""
	}
	err := l.Fault()
	if err == nil {
		return ""
	}
	return systemWords(err)
}

// Awaited implements [env.Persistence]. It reports whether replies to changes wait for replicas.
func (m *persistenceManager) Awaited() bool {
	return m.s.replicator.delays()
}

// systemWords returns the text of the innermost error in err, without paths and with a capital
// letter, as C's strerror.
func systemWords(err error) string {
	for u := err; u != nil; u = errors.Unwrap(u) {
		err = u
	}
	text := err.Error()
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}

// faulted makes run repair the log after a fault. It does not block.
func (m *persistenceManager) faulted(error) {
	select {
	case m.heal <- struct{}{}:
	default:
	}
}

// run repairs the log and writes snapshots when they are due, until ctx ends. Then it interrupts a
// snapshot that is being written, and waits for its end.
func (m *persistenceManager) run(ctx context.Context) {
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

// interrupt stops a snapshot that is being written, or loading.
func (m *persistenceManager) interrupt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dir != nil {
		m.dir.Interrupt()
	}
}

// errLoading is the reason why a snapshot is refused during loading.
var errLoading = errors.New("the dataset is still being loaded")

// isLoaded reports whether the loading of the files is complete.
func (m *persistenceManager) isLoaded() bool { return m.loaded.Load() != nil }

// due reports whether a snapshot is due, because the log has grown enough or a save point has been
// reached. It returns false while a retry has to wait.
func (m *persistenceManager) due() bool {
	if int64(m.s.stopwatch()) < m.retryAt.Load() {
		return false
	}
	changed := m.changes.Load() - m.savedTo.Load()
	if m.s.config.SaveDue(m.s.stopwatch()-time.Duration(m.savedAt.Load()), changed) {
		return true
	}
	percent := m.s.config.Number("auto-aof-rewrite-percentage")
	if m.fileLog() == nil || percent == 0 {
		return false
	}
	base, grown := m.dir.Sizes()
	return grown >= m.s.config.Number("auto-aof-rewrite-min-size") && grown >= base/100*percent
}

// begin starts to write a snapshot in the background. It returns false, and starts none, if one is
// being written, if the files are being loaded, or if persistence is suspended.
func (m *persistenceManager) begin() bool {
	if !m.isLoaded() || m.suspended.Load() || !m.claim() {
		return false
	}
	m.work.Go(func() {
		defer m.release()
		_ = m.write(context.Background()) // write has logged the error
	})
	return true
}

// Start implements [env.Persistence]. It begins a snapshot in the background.
func (m *persistenceManager) Start() bool { return m.begin() }

// Save implements [env.Persistence]. It writes a snapshot and returns when that is done. It returns
// an error during loading, and while another snapshot is being written.
func (m *persistenceManager) Save() error {
	if !m.isLoaded() {
		return errLoading
	}
	if !m.claim() {
		return errors.New("Background save already in progress")
	}
	defer m.release()
	return m.write(context.Background())
}

// claim reserves the right to write a snapshot until release. It returns false if another goroutine
// has that right.
func (m *persistenceManager) claim() bool {
	if !m.writing.TryLock() {
		return false
	}
	m.saving.Store(true)
	return true
}

func (m *persistenceManager) release() {
	m.saving.Store(false)
	m.writing.Unlock()
}

// Delays after failed snapshots. After failuresAllowed consecutive failures, m waits for a minute,
// and for twice as long after each further failure, up to maxRetryDelay. They correspond to
// AOF_REWRITE_LIMITE_THRESHOLD of Redis and its delays.
const (
	failuresAllowed = 3
	maxRetryDelay   = time.Hour
)

// write writes a snapshot and updates the figures about snapshots. If ctx ends before, it returns
// an error and counts no failure. It logs other errors, unless the log was to be repaired. The
// caller has claimed the right to write.
func (m *persistenceManager) write(ctx context.Context) error {
	healing := m.Refuses()
	began, upTo := m.s.stopwatch(), m.changes.Load()
	m.snapshots.began.Store(int64(began))
	var done persistence.Rewritten
	dir, err := m.open()
	if err == nil {
		done, err = dir.RewriteContext(ctx, m.s.keyspace)
	}
	took := m.s.stopwatch() - began
	m.snapshots.took.Store(int64(took))
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		m.saveFailed.Store(true)
		if n := m.failures.Add(1); n >= failuresAllowed {
			delay := min(time.Minute<<min(n-failuresAllowed, 10), maxRetryDelay)
			m.retryAt.Store(int64(m.s.stopwatch() + delay))
		}
		if !healing {
			m.s.log.Error("a snapshot could not be written", "error", err)
		}
		return err
	}
	m.failures.Store(0)
	m.snapshots.written.Add(1)
	m.saveFailed.Store(false)
	m.lastSave.Store(int64(m.s.clock.Civil(m.s.clock.Now())) / int64(time.Second))
	m.savedAt.Store(int64(m.s.stopwatch()))
	m.savedTo.Store(upTo)
	m.s.log.Info("snapshot written", "keys", done.Keys, "bytes", done.Bytes, "took", took.String(), "healed", healing)
	return nil
}

// saveAtStop writes the final snapshot, if one is needed. mode says what the operator has
// requested. A log on disk is complete, so with a log a snapshot is written only on request, or if
// the log refuses changes: its content on disk is unknown then.
func (m *persistenceManager) saveAtStop(mode env.StopMode) error {
	if m.left.Load() || !m.isLoaded() {
		return nil // memory has nothing that the files lack
	}
	if m.suspended.Load() {
		if mode != env.StopSaving || !m.s.replicator.node.IsWhole() {
			return nil // the primary has the state, or memory has only a part of it
		}
		return m.rewriteState(context.Background())
	}
	wanted := mode == env.StopSaving ||
		mode == env.StopAsConfigured && m.fileLog() == nil && m.s.config.Value("save") != ""
	if !wanted && !m.Refuses() {
		return nil
	}
	m.writing.Lock() // wait for a snapshot that is being written, since it lacks the last changes
	m.saving.Store(true)
	defer m.release()
	if err := m.write(context.Background()); err != nil {
		return fmt.Errorf("saving at the end: %w", err)
	}
	return nil
}

// rewriteState writes a snapshot of the state that was copied from a primary, and ends the
// suspension of persistence by unlocking m.writing. If ctx ends before, it returns an error, and
// persistence stays suspended.
func (m *persistenceManager) rewriteState(ctx context.Context) (err error) {
	m.changes.Add(1) // count a change for the save points, since no file has the new state
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

// LastSave implements [env.Persistence]. It returns Unix seconds, those of the start if there was
// no snapshot since.
func (m *persistenceManager) LastSave() int64 { return m.lastSave.Load() }

// close waits for a snapshot that is being written, then closes the log. All changes that were
// acknowledged are durable when it returns. Only the first call has an effect.
func (m *persistenceManager) close() (err error) {
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
