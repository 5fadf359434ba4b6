package manager

import (
	"fmt"
	"sync"
	"time"

	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
)

// loaded is the result of loading the files, for INFO and for the replication node. keys is the
// number of keys in the snapshot, and records the number of records of effects in the log. torn is
// the number of bytes that were cut off at the end of the log.
type loaded struct {
	keys, records, torn int64
	took                time.Duration
	// origin describes the primary from which the state in the files came; nil if there is none.
	origin *persistence.Origin
}

// Lock opens and locks the directory of persistence, if it has files or the configuration persists
// changes. If the server keeps no state, it only logs a warning if the directory has files. After an error
// the caller must call Close.
func (m *Persistence) Lock() error {
	switch exists := persistence.Exists(m.o.FS, m.Path()); {
	case exists && !m.o.Settings.Kept():
		m.o.Log.Warn("this server keeps no limits itself: what is kept on disk is not used", "directory", m.Path())
		return nil
	case !m.keeps() && !exists:
		return nil
	}
	return m.take()
}

// keeps reports whether the configuration persists changes, by the log or by save points.
func (m *Persistence) keeps() bool {
	return m.o.Settings.Yes("appendonly") || m.o.Settings.Value("save") != ""
}

// Read reads and validates the directory, and determines the instant at which the server's clock
// continues: see ClockStart. It logs a warning if the wall clock is so far ahead of the files that
// clock-max-forward-jump bounds the instant. It does nothing if Lock has opened no directory. The
// error says that a file is corrupt or cannot be read.
func (m *Persistence) Read() error {
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
		Last: last, Latest: latest, MaxForward: m.o.Settings.Seconds("clock-max-forward-jump"),
	}.Start(m.o.Time)
	if doubted > 0 {
		m.o.Log.Warn("the wall clock is ahead of the last recorded instant by more than clock-max-forward-jump", "not_believed", doubted.String())
	}
	return nil
}

// ClockStart returns the instant at which the server's clock continues, which Read has determined.
// It is 0 if there are no files.
func (m *Persistence) ClockStart() limit.Instant { return m.start }

// Prepare makes the keyspace report changes if the configuration persists them, or if replies wait
// for replicas (repl-ack-replies). If there is nothing to load from files, Prepare also completes
// loading, so that Loaded returns true. It returns the error of Load.
func (m *Persistence) Prepare() error {
	if m.keeps() {
		m.keyspace.SetJournal(m) // without persistence there is no journal, so changes are not reported
	} else if m.replication != nil && m.o.Settings.Number("repl-ack-replies") > 0 {
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
		return m.Load()
	}
	return nil
}

// Load loads the files into the keyspace, and starts the log if appendonly is yes. Then Loaded
// returns true. Load logs its progress. If LeaveLoading interrupts it, it returns an error, and
// Left returns true.
func (m *Persistence) Load() error {
	m.began.Store(int64(m.o.Stopwatch()))
	origin, err := m.findOrigin()
	if err != nil {
		return err
	}
	stop := m.report()
	err = m.dir.Load(m.keyspace, &m.progress)
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
		took: m.o.Stopwatch() - time.Duration(m.began.Load()), origin: origin,
	}
	if t := m.dir.Torn(); t != nil {
		done.torn = t.Dropped
		m.o.Log.Warn("the log ended in an incomplete record, as after a crash, and was cut", "what", t.String())
	}
	m.o.Log.Info("state loaded", "keys_of_snapshot", done.keys, "records_of_log", done.records, "took", done.took.String())
	if !m.keeps() {
		m.o.Log.Warn("state was loaded, but changes are not kept: appendonly is no and there are no save points")
	}
	m.loaded.Store(done)
	return nil
}

// LeaveLoading interrupts loading, because the server stops. It does nothing if Loaded returns
// true.
func (m *Persistence) LeaveLoading() {
	if !m.Loaded() {
		m.left.Store(true)
		m.interrupt()
	}
}

// Left reports whether LeaveLoading was called before loading was complete.
func (m *Persistence) Left() bool { return m.left.Load() }

func (m *Persistence) startLog() error {
	if !m.o.Settings.Yes("appendonly") {
		return nil
	}
	policy, err := persistence.ParsePolicy(m.o.Settings.Value("appendfsync"))
	if err != nil {
		return err
	}
	log, err := m.dir.Start(persistence.LogOptions{
		Policy: policy, OnFault: m.faulted, Watermark: m.keyspace.Watermark,
		Wrote: m.o.Wrote, Synced: m.o.Synced,
	})
	if err != nil {
		return fmt.Errorf("starting the log: %w", err)
	}
	m.log.Store(log)
	return nil
}

// report starts to log the progress of loading every two seconds. stop ends that.
func (m *Persistence) report() (stop func()) {
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

func (m *Persistence) logLoading() {
	total, read, eta := m.far()
	m.o.Log.Info("loading", "percent", 100*read/max(total, 1), "keys", m.progress.Keys.Load(), "records", m.progress.Records.Load(), "eta", eta.Round(time.Second).String())
}

// far returns the number of bytes to load, the number of those that have been loaded, and the time
// that the rest takes at the average speed so far; 0 if the speed is unknown.
func (m *Persistence) far() (total, read int64, eta time.Duration) {
	total, read = m.progress.Total.Load(), m.progress.Done.Load()
	if read > 0 && total > read {
		spent := m.o.Stopwatch() - time.Duration(m.began.Load())
		eta = time.Duration(float64(spent) * float64(total-read) / float64(read))
	}
	return total, read, eta
}
