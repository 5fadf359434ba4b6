package server

import (
	"fmt"
	"sync"
	"time"

	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/persistence"
)

// openKeeper takes the directory if there is something in it or something is going
// to be.
func (s *Server) openKeeper(fsys persistence.FS) error {
	if fsys == nil {
		fsys = persistence.OS{}
	}
	k := &keeper{s: s, fs: fsys, heal: make(chan struct{}, 1)}
	s.keeper = k
	k.lastSave.Store(s.began.Unix())
	if !k.keeps() && !persistence.Exists(fsys, k.path()) {
		return nil
	}
	return k.take()
}

// keeps reports whether anything is going to be kept.
func (k *keeper) keeps() bool {
	return k.s.config.value("appendonly") == "yes" || k.s.config.value("save") != ""
}

// read judges what is in the directory, and finds out what time it was.
func (k *keeper) read() error {
	if k.dir == nil {
		return nil
	}
	if err := k.dir.Read(); err != nil {
		return err
	}
	last, latest, err := k.dir.Clock()
	if err != nil || last == (clock.Record{}) {
		return err
	}
	var doubted time.Duration
	k.start, doubted = clock.Resumption{
		Last: last, Latest: latest, MaxForward: seconds(k.s.config.value("clock-max-forward-jump")),
	}.Start()
	if doubted > 0 {
		k.s.log.Warn("the wall clock is ahead of the last recorded instant by more than clock-max-forward-jump", "not_believed", doubted.String())
	}
	return nil
}

// prepare has the keyspace tell of changes, and loads if there is nothing to load,
// so that a server without a past is whole at once.
func (k *keeper) prepare() error {
	if k.keeps() {
		k.s.keyspace.SetJournal(k) // else nobody needs to know of changes
	}
	if k.dir == nil {
		k.loaded.Store(&loaded{})
		return nil
	}
	if k.dir.Empty() {
		return k.load()
	}
	return nil
}

// load fills the keyspace and starts the log.
func (k *keeper) load() error {
	k.began.Store(int64(k.s.stopwatch()))
	stop := k.report()
	err := k.dir.Load(k.s.keyspace, &k.progress)
	stop()
	if err != nil {
		return err
	}
	if err := k.startLog(); err != nil {
		return err
	}
	done := &loaded{
		keys: k.progress.Keys.Load(), records: k.progress.Records.Load(),
		took: k.s.stopwatch() - time.Duration(k.began.Load()),
	}
	if t := k.dir.Torn(); t != nil {
		done.torn = t.Dropped
		k.s.log.Warn("the log ended in an incomplete record, as after a crash, and was cut", "what", t.String())
	}
	k.s.log.Info("state loaded", "keys_of_snapshot", done.keys, "records_of_log", done.records, "took", done.took.String())
	if !k.keeps() {
		k.s.log.Warn("state was loaded, but changes are not kept: appendonly is no and there are no save points")
	}
	k.loaded.Store(done)
	return nil
}

// leaveLoading has loading end early if it has not ended: the server stops.
func (k *keeper) leaveLoading() {
	if !k.isLoaded() {
		k.left.Store(true)
		k.interrupt()
	}
}

func (k *keeper) startLog() error {
	if k.s.config.value("appendonly") != "yes" {
		return nil
	}
	policy, err := persistence.ParsePolicy(k.s.config.value("appendfsync"))
	if err != nil {
		return err
	}
	log, err := k.dir.Start(persistence.LogOptions{Policy: policy, OnFault: k.faulted})
	if err != nil {
		return fmt.Errorf("starting the log: %w", err)
	}
	k.log.Store(log)
	return nil
}

// report logs how far loading is, every few seconds, until stop is called.
func (k *keeper) report() (stop func()) {
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
			k.logLoading()
		}
	})
	return func() {
		close(done)
		reporting.Wait()
	}
}

func (k *keeper) logLoading() {
	total, read, eta := k.far()
	k.s.log.Info("loading", "percent", 100*read/max(total, 1), "keys", k.progress.Keys.Load(), "records", k.progress.Records.Load(), "eta", eta.Round(time.Second).String())
}

// far is how much there is to load, how much of it has been, in bytes, and how long
// the rest takes at that pace.
func (k *keeper) far() (total, read int64, eta time.Duration) {
	total, read = k.progress.Total.Load(), k.progress.Done.Load()
	if read > 0 && total > read {
		spent := k.s.stopwatch() - time.Duration(k.began.Load())
		eta = time.Duration(float64(spent) * float64(total-read) / float64(read))
	}
	return total, read, eta
}
