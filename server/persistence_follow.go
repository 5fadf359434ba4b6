package server

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/replication"
)

// keepsNone says what the files do not have.
type keepsNone struct {
	volatile  atomic.Bool // there is no file: log only passes on what happens to replicas
	suspended atomic.Bool // a full sync is under way, whose state is not whole
	making    sync.Mutex  // held while that log is made
}

// fileLog returns the log on disk, nil without appendonly.
func (m *persistenceManager) fileLog() *persistence.Log {
	if m.volatile.Load() {
		return nil
	}
	return m.log.Load()
}

// Log implements replication.Files. Without appendonly it makes a log that only passes on what
// happens, and has the keyspace report changes to it.
func (m *persistenceManager) Log() (replication.Log, error) {
	m.making.Lock()
	defer m.making.Unlock()
	if l := m.log.Load(); l != nil {
		return l, nil
	}
	l := persistence.NewVolatile(persistence.LogOptions{
		Stopwatch: m.s.stopwatch, Clock: m.record, Watermark: m.s.keyspace.Watermark, OnFault: func(error) {}, Log: m.s.log,
	})
	m.s.keyspace.Alone(func() {
		m.volatile.Store(true)
		m.log.Store(l)
		m.s.keyspace.SetJournal(m)
	})
	return l, nil
}

// Origin implements replication.Files.
func (m *persistenceManager) Origin() *persistence.Origin {
	found := m.loaded.Load()
	if found == nil || m.changes.Load() > 0 {
		return nil
	}
	return found.origin
}

// findOrigin looks whether the files that are about to be loaded are those of a replica, and this
// server is to be one. Then no key is lost that the primary can still prolong.
func (m *persistenceManager) findOrigin() (*persistence.Origin, error) {
	o := m.dir.Origin()
	if m.dir.DataSet().Restored {
		return nil, nil // what followed the origin is not what the operator wants back
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

// DataSet implements replication.Files.
func (m *persistenceManager) DataSet() string { return m.hasDataSet().ID }

// Restored implements replication.Files.
func (m *persistenceManager) Restored() bool { return m.hasDataSet().Restored }

// hasDataSet is the data set that memory has.
func (m *persistenceManager) hasDataSet() persistence.DataSet {
	if has := m.dataSet.has.Load(); has != nil {
		return *has
	}
	return persistence.DataSet{}
}

// SetDataSet implements replication.Files. The manifest names the data set soon after.
func (m *persistenceManager) SetDataSet(id string) {
	m.dataSet.has.Store(&persistence.DataSet{ID: id})
	m.dataSet.changed.Store(true)
}

// findDataSet takes over the data set of the files. A server that starts with nothing begins one.
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

// keepDataSet has the manifest name the data set if another has come by replication. It does
// nothing while a snapshot is being written, which may take long.
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

// errFullSync is why the files keep the state from before a full sync.
var errFullSync = errors.New("a full sync with the primary is under way")

// Suspend implements replication.Files. A snapshot that is being written ends first.
func (m *persistenceManager) Suspend() {
	if m.suspended.Swap(true) {
		return
	}
	m.writing.Lock()
	if l := m.fileLog(); l != nil {
		l.Suspend(errFullSync)
	}
}

// Rewrite implements replication.Files. A log that cannot accept effects at once does so behind the
// new base.
func (m *persistenceManager) Rewrite() (finish func(context.Context) error) {
	if !m.suspended.Load() {
		return func(context.Context) error { return nil }
	}
	if m.fileLog() != nil {
		if err := m.dir.Adopt(); err != nil {
			m.s.log.Error("changes are refused until a snapshot is written", "error", err)
		}
	}
	return m.rewriteState
}
