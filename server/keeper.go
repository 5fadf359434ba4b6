package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/transport"
)

func (k *keeper) path() string {
	return filepath.Join(k.s.config.value("dir"), k.s.config.value("appenddirname"))
}

// take takes the directory. mu must be held, or nobody else be there yet.
func (k *keeper) take() (err error) {
	path, err := filepath.Abs(k.path())
	if err != nil {
		return fmt.Errorf("the directory of persistence: %w", err)
	}
	k.dir, err = persistence.Take(persistence.Options{
		FS: k.fs, Path: path, Clock: k.record, Stopwatch: k.s.stopwatch, Log: k.s.log,
	})
	return err
}

// open returns the directory, which is taken at the first need if nothing was kept
// so far.
func (k *keeper) open() (*persistence.Dir, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dir == nil {
		if err := k.take(); err != nil {
			return nil, err
		}
		if err := k.dir.Read(); err != nil {
			err = errors.Join(err, k.dir.Close())
			k.dir = nil
			return nil, err
		}
	}
	return k.dir, nil
}

// record reads the clock in all its forms.
func (k *keeper) record() clock.Record {
	if c, ok := k.s.clock.(interface{ Record() clock.Record }); ok {
		return c.Record()
	}
	return clock.Record{Derived: k.s.clock.Now(), Wall: int64(k.s.clock.Now())}
}

func (k *keeper) putInForce() {
	if l := k.log.Load(); l != nil {
		if p, err := persistence.ParsePolicy(k.s.config.value("appendfsync")); err == nil {
			l.SetPolicy(p)
		}
	}
}

// Append implements keyspace.Journal.
func (k *keeper) Append(record []byte, refs []shared.Ref, at limit.Instant) uint64 {
	k.changes.Add(1)
	l := k.log.Load()
	if l == nil {
		shared.ReleaseAll(refs)
		return 0
	}
	return l.Append(record, refs, at)
}

// Refuses implements keyspace.Journal.
func (k *keeper) Refuses() bool {
	l := k.log.Load()
	return l != nil && l.Refuses()
}

// Await implements commands.Persistence.
func (k *keeper) Await(position uint64, p transport.Peer) transport.Outcome {
	l := k.log.Load()
	if l == nil {
		return transport.Kept
	}
	switch l.Await(position, p) {
	case persistence.Kept:
		return transport.Kept
	case persistence.Pending:
		return transport.Pending
	}
	return transport.Lost
}

// Position implements commands.Persistence.
func (k *keeper) Position() uint64 {
	l := k.log.Load()
	if l == nil {
		return 0
	}
	return l.Position()
}

// Fault implements commands.Persistence. It begins as the system's own messages do
// in C, which is what Redis shows.
func (k *keeper) Fault() string {
	l := k.log.Load()
	if l == nil {
		return ""
	}
	err := l.Fault()
	if err == nil {
		return ""
	}
	return systemWords(err)
}

// systemWords are the system's own words in an error, without paths, as C has them.
func systemWords(err error) string {
	for u := err; u != nil; u = errors.Unwrap(u) {
		err = u
	}
	text := err.Error()
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}

// faulted has the log healed.
func (k *keeper) faulted(error) {
	select {
	case k.heal <- struct{}{}:
	default:
	}
}

// run heals and saves until ctx ends.
func (k *keeper) run(ctx context.Context) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			k.interrupt()
			k.work.Wait()
			return
		case <-k.heal:
		case <-tick.C:
		}
		if k.Refuses() || k.due() {
			k.begin()
		}
	}
}

// interrupt ends a snapshot that is being written.
func (k *keeper) interrupt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dir != nil {
		k.dir.Interrupt()
	}
}

// errLoading is what a snapshot is refused with meanwhile.
var errLoading = errors.New("the dataset is still being loaded")

// isLoaded reports whether memory has what the files have.
func (k *keeper) isLoaded() bool { return k.loaded.Load() != nil }

// due reports whether the log has grown, or a save point been reached.
func (k *keeper) due() bool {
	if int64(k.s.stopwatch()) < k.retryAt.Load() {
		return false
	}
	changed := k.changes.Load() - k.savedTo.Load()
	if (savePoints{}).due(k.s.config.value("save"), k.s.stopwatch()-time.Duration(k.savedAt.Load()), changed) {
		return true
	}
	percent := number(k.s.config.value("auto-aof-rewrite-percentage"))
	if k.log.Load() == nil || percent == 0 {
		return false
	}
	base, grown := k.dir.Sizes()
	return grown >= number(k.s.config.value("auto-aof-rewrite-min-size")) && grown >= base/100*percent
}

// begin starts a snapshot beside everything else, unless one is being written.
func (k *keeper) begin() bool {
	if !k.isLoaded() || !k.claim() {
		return false
	}
	k.work.Go(func() {
		defer k.release()
		_ = k.write() // it has been logged
	})
	return true
}

// Start implements commands.Persistence.
func (k *keeper) Start() bool { return k.begin() }

// Save implements commands.Persistence.
func (k *keeper) Save() error {
	if !k.isLoaded() {
		return errLoading
	}
	if !k.claim() {
		return errors.New("Background save already in progress")
	}
	defer k.release()
	return k.write()
}

// claim takes the right to write a snapshot, which release gives back. False means that
// one is being written.
func (k *keeper) claim() bool {
	if !k.writing.TryLock() {
		return false
	}
	k.saving.Store(true)
	return true
}

func (k *keeper) release() {
	k.saving.Store(false)
	k.writing.Unlock()
}

// Backing off after failures (Redis: AOF_REWRITE_LIMITE_THRESHOLD and its delays).
const (
	failuresAllowed = 3
	maxRetryDelay   = time.Hour
)

// write writes a snapshot.
func (k *keeper) write() error {
	healing := k.Refuses()
	began, upTo := k.s.stopwatch(), k.changes.Load()
	var done persistence.Rewritten
	dir, err := k.open()
	if err == nil {
		done, err = dir.Rewrite(k.s.keyspace)
	}
	took := k.s.stopwatch() - began
	if err != nil {
		k.saveFailed.Store(true)
		if n := k.failures.Add(1); n >= failuresAllowed {
			delay := min(time.Minute<<min(n-failuresAllowed, 10), maxRetryDelay)
			k.retryAt.Store(int64(k.s.stopwatch() + delay))
		}
		if !healing {
			k.s.log.Error("a snapshot could not be written", "error", err)
		}
		return err
	}
	k.failures.Store(0)
	k.saveFailed.Store(false)
	k.lastSave.Store(int64(k.s.clock.Civil(k.s.clock.Now())) / int64(time.Second))
	k.savedAt.Store(int64(k.s.stopwatch()))
	k.savedTo.Store(upTo)
	k.s.log.Info("snapshot written", "keys", done.Keys, "bytes", done.Bytes, "took", took.String(), "healed", healing)
	return nil
}

// saveAtStop writes the last snapshot. Where there is a log nothing is missing from
// it, so that a snapshot is only written on demand, or if the log was given up: nobody
// knows then what of it is on the disk.
func (k *keeper) saveAtStop(mode command.StopMode) error {
	if k.left.Load() || !k.isLoaded() {
		return nil // memory has no more than the files
	}
	wanted := mode == command.StopSaving ||
		mode == command.StopAsConfigured && k.log.Load() == nil && k.s.config.value("save") != ""
	if !wanted && !k.Refuses() {
		return nil
	}
	k.writing.Lock() // a snapshot that is being written is older than the last change
	k.saving.Store(true)
	defer k.release()
	if err := k.write(); err != nil {
		return fmt.Errorf("saving at the end: %w", err)
	}
	return nil
}

// LastSave implements commands.Persistence.
func (k *keeper) LastSave() int64 { return k.lastSave.Load() }

// close ends the log. Everything that was acknowledged is durable then.
func (k *keeper) close() (err error) {
	k.closeOnce.Do(func() {
		k.work.Wait()
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.dir != nil {
			err = k.dir.Close()
		}
	})
	return err
}
