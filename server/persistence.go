package server

import (
	"time"

	"github.com/cellserver/cellserver/persistence/manager"
	"github.com/cellserver/cellserver/stats"
)

// newPersistence creates the persistence of the server, which uses no files yet.
func (s *Server) newPersistence() *manager.Persistence {
	return manager.New(manager.Options{
		FS:        s.given.FS,
		Settings:  s.config,
		Follows:   func() bool { return s.config.Replication().Host != "" },
		Time:      s.given.Time,
		Began:     s.began,
		Stopwatch: s.stopwatch,
		Loading:   func() bool { return s.engine.Loading() },
		Wrote:     func(took time.Duration) { s.noteEvent(stats.WriteEvent, took) },
		Synced:    func(took time.Duration) { s.noteEvent(stats.SyncEvent, took) },
		Log:       s.log,
	})
}

// connectPersistence connects the persistence with the clock, the keyspace and replication, which
// are created after it.
func (s *Server) connectPersistence() {
	if s.replicator == nil { // a nil *replicator in an interface value would not be equal to nil
		s.persistence.Connect(s.clock, s.keyspace, nil)
		return
	}
	s.persistence.Connect(s.clock, s.keyspace, s.replicator)
}
