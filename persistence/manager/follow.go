package manager

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/replication"
)

// keepsNone has the conditions under which changes are not written to files.
type keepsNone struct {
	volatile  atomic.Bool // whether the log has no file, and only passes changes to replicas
	suspended atomic.Bool // whether a full resynchronization is under way, so that the state in memory is incomplete or not in the files
	making    sync.Mutex  // held while the volatile log is created
}

// fileLog returns the log on disk, or nil if there is none.
func (m *Persistence) fileLog() *persistence.Log {
	if m.volatile.Load() {
		return nil
	}
	return m.log.Load()
}

// Log implements [replication.Files]. If there is no log, it creates one that only passes changes
// to replicas, and makes the keyspace report changes to m. To do so it waits until no other
// goroutine uses the keyspace. The error is always nil.
func (m *Persistence) Log() (replication.Log, error) {
	m.making.Lock()
	defer m.making.Unlock()
	if l := m.log.Load(); l != nil {
		return l, nil
	}
	l := persistence.NewVolatile(persistence.LogOptions{
		Stopwatch: m.o.Stopwatch, Clock: m.record, Watermark: m.keyspace.Watermark, OnFault: func(error) {}, Log: m.o.Log,
	})
	m.keyspace.Exclusively(func() {
		m.volatile.Store(true)
		m.log.Store(l)
		m.keyspace.SetJournal(m)
	})
	return l, nil
}

// Origin implements [replication.Files]. It returns nil if the loaded files have no origin, or if
// something was changed since they were loaded.
func (m *Persistence) Origin() *persistence.Origin {
	found := m.loaded.Load()
	if found == nil || m.changes.Load() > 0 {
		return nil
	}
	return found.origin
}

// findOrigin returns the origin of the files that are about to be loaded, which describes the
// primary from which their state was copied. The result is nil if they have no origin or were
// restored from a backup, if the server is not configured as a replica, or if appendonly is no. If
// there is an origin, findOrigin makes the keyspace retain the keys whose expiry is later than
// [replication.KeepExpired] before the last clock record, since the primary may have extended their
// expiry. The error says that the files cannot be read.
func (m *Persistence) findOrigin() (*persistence.Origin, error) {
	o := m.dir.Origin()
	if m.dir.DataSet().Restored {
		return nil, nil // the operator does not want the changes that the primary has made after the origin
	}
	if o == nil || !m.o.Follows() || !m.o.Settings.Yes("appendonly") {
		return nil, nil
	}
	last, _, err := m.dir.Clock()
	if err != nil {
		return nil, err
	}
	m.keyspace.SweepTo(last.Derived.Add(-replication.KeepExpired))
	return o, nil
}

// DataSet returns the ID of the data set of the keys in memory: see [replication.Files].
func (m *Persistence) DataSet() string { return m.hasDataSet().ID }

// Restored reports whether that data set was restored from a backup: see [replication.Files].
func (m *Persistence) Restored() bool { return m.hasDataSet().Restored }

// hasDataSet returns the data set of the keys in memory. It is the zero value before findDataSet
// was called.
func (m *Persistence) hasDataSet() persistence.DataSet {
	if has := m.dataSet.has.Load(); has != nil {
		return *has
	}
	return persistence.DataSet{}
}

// SetDataSet implements [replication.Files]. keepDataSet updates the manifest soon after.
func (m *Persistence) SetDataSet(id string) {
	m.dataSet.has.Store(&persistence.DataSet{ID: id})
	m.dataSet.changed.Store(true)
}

// findDataSet sets the data set in memory to the data set of the loaded files. If the server starts
// without files, it begins a new data set. It logs a message if the files were restored from a
// backup.
func (m *Persistence) findDataSet() {
	var has persistence.DataSet
	if m.dir != nil {
		has = m.dir.DataSet()
	}
	if has.ID == "" && (m.dir == nil || m.dir.Empty()) {
		has.ID = persistence.NewID()
	}
	if has.Restored {
		m.o.Log.Info("this server was restored from a backup: it takes over no other data set by itself", "data_set", has.ID)
	}
	m.dataSet.has.Store(&has)
}

// keepDataSet writes the data set to the manifest if replication has changed it and there is a log
// on disk. It does nothing while a snapshot is being written, since waiting for that may take long.
// Run calls keepDataSet again, also after an error, which is logged.
func (m *Persistence) keepDataSet() {
	if !m.dataSet.changed.Load() || m.fileLog() == nil || !m.writing.TryLock() {
		return
	}
	defer m.writing.Unlock()
	m.dataSet.changed.Store(false)
	if err := m.dir.KeepDataSet(); err != nil {
		m.dataSet.changed.Store(true)
		m.o.Log.Warn("the manifest does not name the data set yet", "error", err)
	}
}

// errFullSync is the reason why the files keep the state from before a full resynchronization.
var errFullSync = errors.New("a full sync with the primary is under way")

// Suspend implements [replication.Files]. It waits for the end of a snapshot that is being written,
// and makes a log on disk refuse changes. It locks m.writing, which rewriteState unlocks. It does
// nothing if persistence is suspended already.
func (m *Persistence) Suspend() {
	if m.suspended.Swap(true) {
		return
	}
	m.writing.Lock()
	if l := m.fileLog(); l != nil {
		l.Suspend(errFullSync)
	}
}

// Rewrite implements [replication.Files]. It makes a log on disk accept effects again. If that
// fails, Rewrite logs the error, and the log accepts effects after finish has written a snapshot.
// If persistence is not suspended, Rewrite and finish do nothing.
func (m *Persistence) Rewrite() (finish func(context.Context) error) {
	if !m.suspended.Load() {
		return func(context.Context) error { return nil }
	}
	if m.fileLog() != nil {
		if err := m.dir.AcceptState(); err != nil {
			m.o.Log.Error("changes are refused until a snapshot is written", "error", err)
		}
	}
	return m.rewriteState
}
