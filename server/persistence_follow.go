package server

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/replication"
)

// keepsNone is the state of a manager while files do not have the changes.
type keepsNone struct {
	volatile  atomic.Bool // there is no file: the log only passes changes to replicas
	suspended atomic.Bool // a full resynchronization is under way, whose state is not complete
	making    sync.Mutex  // held while that log is created
}

// fileLog returns the log on disk, nil without appendonly.
func (m *persistenceManager) fileLog() *persistence.Log {
	if m.volatile.Load() {
		return nil
	}
	return m.log.Load()
}

// Log implements [replication.Files]. Without appendonly it creates a log that only passes changes
// on, and makes the keyspace report changes to it.
func (m *persistenceManager) Log() (replication.Log, error) {
	m.making.Lock()
	defer m.making.Unlock()
	if l := m.log.Load(); l != nil {
		return l, nil
	}
	l := persistence.NewVolatile(persistence.LogOptions{
		Stopwatch: m.s.stopwatch, Clock: m.record, Watermark: m.s.keyspace.Watermark, OnFault: func(error) {}, Log: m.s.log,
	})
	m.s.keyspace.Exclusively(func() {
		m.volatile.Store(true)
		m.log.Store(l)
		m.s.keyspace.SetJournal(m)
	})
	return l, nil
}

// Origin implements [replication.Files].
func (m *persistenceManager) Origin() *persistence.Origin {
	found := m.loaded.Load()
	if found == nil || m.changes.Load() > 0 {
		return nil
	}
	return found.origin
}

// findOrigin returns the origin if the files that are about to be loaded are those of a replica,
// and this server is to be one. The keyspace then removes no key that the primary may still have
// prolonged.
func (m *persistenceManager) findOrigin() (*persistence.Origin, error) {
	o := m.dir.Origin()
	if m.dir.DataSet().Restored {
		return nil, nil // the operator does not want the changes that followed the origin
	}
	if o == nil || m.s.config.Replication().Host == "" || !m.s.config.Yes("appendonly") {
		return nil, nil
	}
	last, _, err := m.dir.Clock()
	if err != nil {
		return nil, err
	}
	m.s.keyspace.SweepTo(last.Derived.Add(-replication.KeepExpired))
	return o, nil
}

// DataSet implements [replication.Files].
func (m *persistenceManager) DataSet() string { return m.hasDataSet().ID }

// Restored implements [replication.Files].
func (m *persistenceManager) Restored() bool { return m.hasDataSet().Restored }

// hasDataSet returns the data set in memory.
func (m *persistenceManager) hasDataSet() persistence.DataSet {
	if has := m.dataSet.has.Load(); has != nil {
		return *has
	}
	return persistence.DataSet{}
}

// SetDataSet implements [replication.Files]. The manifest is updated soon after.
func (m *persistenceManager) SetDataSet(id string) {
	m.dataSet.has.Store(&persistence.DataSet{ID: id})
	m.dataSet.changed.Store(true)
}

// findDataSet sets the data set to that of the files. A server that starts empty begins a new one.
func (m *persistenceManager) findDataSet() {
	var has persistence.DataSet
	if m.dir != nil {
		has = m.dir.DataSet()
	}
	if has.ID == "" && (m.dir == nil || m.dir.Empty()) {
		has.ID = persistence.NewID()
	}
	if has.Restored {
		m.s.log.Info("this server was restored from a backup: it takes over no other data set by itself", "data_set", has.ID)
	}
	m.dataSet.has.Store(&has)
}

// keepDataSet writes the data set to the manifest if replication has changed it. It does nothing
// while a snapshot is being written, which may take long.
func (m *persistenceManager) keepDataSet() {
	if !m.dataSet.changed.Load() || m.fileLog() == nil || !m.writing.TryLock() {
		return
	}
	defer m.writing.Unlock()
	m.dataSet.changed.Store(false)
	if err := m.dir.KeepDataSet(); err != nil {
		m.dataSet.changed.Store(true)
		m.s.log.Warn("the manifest does not name the data set yet", "error", err)
	}
}

// errFullSync is the reason why the files keep the state from before a full resynchronization.
var errFullSync = errors.New("a full sync with the primary is under way")

// Suspend implements [replication.Files]. It waits for the end of a snapshot that is being
// written.
func (m *persistenceManager) Suspend() {
	if m.suspended.Swap(true) {
		return
	}
	m.writing.Lock()
	if l := m.fileLog(); l != nil {
		l.Suspend(errFullSync)
	}
}

// Rewrite implements [replication.Files]. If the log cannot continue at once, it continues after the
// new base was written.
func (m *persistenceManager) Rewrite() (finish func(context.Context) error) {
	if !m.suspended.Load() {
		return func(context.Context) error { return nil }
	}
	if m.fileLog() != nil {
		if err := m.dir.AcceptState(); err != nil {
			m.s.log.Error("changes are refused until a snapshot is written", "error", err)
		}
	}
	return m.rewriteState
}
