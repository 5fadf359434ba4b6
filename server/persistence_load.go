package server

import (
	"fmt"
	"sync"
	"time"

	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/stats"
)

// loaded is the result of loading the files, for INFO and for the replication node. torn is the
// number of bytes of an incomplete record that were cut off.
type loaded struct {
	keys, records, torn int64
	took                time.Duration
	// origin describes the primary from which the state in the files came. It is nil if there is
	// none.
	origin *persistence.Origin
}

// openPersistence creates s.persistence. It opens and locks the directory of persistence if the
// directory exists or will get files. With the option store it ignores the directory. If fsys is
// nil, it uses the operating system's files.
func (s *Server) openPersistence(fsys persistence.FS) error {
	if fsys == nil {
		fsys = persistence.OS{}
	}
	m := &persistenceManager{s: s, fs: fsys, heal: make(chan struct{}, 1)}
	s.persistence = m
	m.lastSave.Store(s.began.Unix())
	switch exists := persistence.Exists(fsys, m.path()); {
	case exists && s.config.Remote():
		s.log.Warn("the store has the limits: what is kept on disk is not used", "directory", m.path())
		return nil
	case !m.keeps() && !exists:
		return nil
	}
	return m.take()
}

// keeps reports whether the configuration persists changes: by the log, or by save points.
func (m *persistenceManager) keeps() bool {
	return m.s.config.Yes("appendonly") || m.s.config.Value("save") != ""
}

// read validates the directory and determines at which instant the server's clock continues.
func (m *persistenceManager) read() error {
	if m.dir == nil {
		return nil
	}
	if err := m.dir.Read(); err != nil {
		return err
	}
	last, latest, err := m.dir.Clock()
	if err != nil || last == (clock.Record{}) {
		return err
	}
	var doubted time.Duration
	m.start, doubted = clock.Resumption{
		Last: last, Latest: latest, MaxForward: m.s.config.Seconds("clock-max-forward-jump"),
	}.Start(m.s.given.Time)
	if doubted > 0 {
		m.s.log.Warn("the wall clock is ahead of the last recorded instant by more than clock-max-forward-jump", "not_believed", doubted.String())
	}
	return nil
}

// prepare makes the keyspace report changes if something uses them. If there is nothing to load
// from files, it completes the loading at once.
func (m *persistenceManager) prepare() error {
	if m.keeps() {
		m.s.keyspace.SetJournal(m) // without persistence, changes need not be reported
	} else if m.s.replicator != nil && m.s.config.Number("repl-ack-replies") > 0 {
		if _, err := m.Log(); err != nil {
			return err
		}
	}
	if m.dir == nil {
		m.findDataSet()
		m.loaded.Store(&loaded{})
		return nil
	}
	if m.dir.Empty() {
		return m.load()
	}
	return nil
}

// load loads the files into the keyspace, starts the log and sets m.loaded. It logs its progress.
func (m *persistenceManager) load() error {
	m.began.Store(int64(m.s.stopwatch()))
	origin, err := m.findOrigin()
	if err != nil {
		return err
	}
	stop := m.report()
	err = m.dir.Load(m.s.keyspace, &m.progress)
	stop()
	if err != nil {
		return err
	}
	m.findDataSet()
	if err := m.startLog(); err != nil {
		return err
	}
	done := &loaded{
		keys: m.progress.Keys.Load(), records: m.progress.Records.Load(),
		took: m.s.stopwatch() - time.Duration(m.began.Load()), origin: origin,
	}
	if t := m.dir.Torn(); t != nil {
		done.torn = t.Dropped
		m.s.log.Warn("the log ended in an incomplete record, as after a crash, and was cut", "what", t.String())
	}
	m.s.log.Info("state loaded", "keys_of_snapshot", done.keys, "records_of_log", done.records, "took", done.took.String())
	if !m.keeps() {
		m.s.log.Warn("state was loaded, but changes are not kept: appendonly is no and there are no save points")
	}
	m.loaded.Store(done)
	return nil
}

// leaveLoading interrupts loading, if it is not done, because the server stops.
func (m *persistenceManager) leaveLoading() {
	if !m.isLoaded() {
		m.left.Store(true)
		m.interrupt()
	}
}

func (m *persistenceManager) startLog() error {
	if !m.s.config.Yes("appendonly") {
		return nil
	}
	policy, err := persistence.ParsePolicy(m.s.config.Value("appendfsync"))
	if err != nil {
		return err
	}
	log, err := m.dir.Start(persistence.LogOptions{
		Policy: policy, OnFault: m.faulted, Watermark: m.s.keyspace.Watermark,
		Wrote:  func(took time.Duration) { m.s.noteEvent(stats.WriteEvent, took) },
		Synced: func(took time.Duration) { m.s.noteEvent(stats.SyncEvent, took) },
	})
	if err != nil {
		return fmt.Errorf("starting the log: %w", err)
	}
	m.log.Store(log)
	return nil
}

// report logs the progress of loading every two seconds, until the caller calls stop.
func (m *persistenceManager) report() (stop func()) {
	done := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		tick := time.NewTicker(2 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			m.logLoading()
		}
	})
	return func() {
		close(done)
		reporting.Wait()
	}
}

func (m *persistenceManager) logLoading() {
	total, read, eta := m.far()
	m.s.log.Info("loading", "percent", 100*read/max(total, 1), "keys", m.progress.Keys.Load(), "records", m.progress.Records.Load(), "eta", eta.Round(time.Second).String())
}

// far returns the number of bytes to load, the number of those that have been loaded, and the time
// that the rest takes at the average speed so far; 0 if the speed is unknown.
func (m *persistenceManager) far() (total, read int64, eta time.Duration) {
	total, read = m.progress.Total.Load(), m.progress.Done.Load()
	if read > 0 && total > read {
		spent := m.s.stopwatch() - time.Duration(m.began.Load())
		eta = time.Duration(float64(spent) * float64(total-read) / float64(read))
	}
	return total, read, eta
}
