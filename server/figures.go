package server

import (
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/local"
	"github.com/cellserver/cellserver/process"
	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// Figures returns all figures of a server that has every group of commands. It is for the
// documentation.
func Figures() []figure.Figure {
	all := serverFigures()
	for _, g := range commands.Groups() {
		all = append(all, g.Figures...)
	}
	return all
}

// addFigures adds the figures of serverFigures to the registry of the engine, and registers the
// sources from which they read.
func (s *Server) addFigures() {
	r := s.engine.Figures
	r.Add(serverFigures()...)
	figure.Provide(r, func(*figure.View) *Server { return s })
	figure.Provide(r, func(*figure.View) stats.Traffic { return s.engine.Process().Network() })
	figure.Provide(r, func(*figure.View) processMemory {
		rss, heap := s.engine.Process().Memory()
		return processMemory{rss, heap}
	})
	figure.Provide(r, func(*figure.View) stats.Measures {
		if p, known := s.engine.Process().(stats.Measured); known {
			return p.Measures()
		}
		return stats.Measures{}
	})
	s.provideRemote(r)
	s.provideReplication(r)
	figure.Provide(r, func(*figure.View) env.StoreStats { return local.Stats(s.lastKeys.look(s)) })
}

// serverFigures returns the figures that belong to no group of commands.
func serverFigures() []figure.Figure {
	return slices.Concat(ownFigures(), gauges(), memoryFigures(), counters(), infoFigures(), remoteFigures(), replicationFigures(), frontFigures())
}

// ownFigures returns the figures that only package server can read.
func ownFigures() []figure.Figure {
	return []figure.Figure{
		{
			Name: "build_info", Kind: figure.Gauge, Labels: []string{"version", "revision", "redis_version", "go_version"},
			Help: "Always 1. The labels say which version runs, of which commit (zeros if the build does not say it), and which Redis it answers as.",
			Read: func(_ *figure.View, emit figure.Emit) {
				commit, _ := process.ShortRevision()
				emit(1, Version, commit, command.RedisVersion, runtime.Version())
			},
		},
		{
			Name: "loop_busy_ratio", Kind: figure.Gauge, Labels: []string{"loop"}, Values: "number of the event loop",
			Help: "Share of the last seconds in which an event loop had something to do. At 1 it is the bottleneck.",
			Read: func(v *figure.View, emit figure.Emit) {
				if looped, ok := figure.Of[*Server](v).transport.(transport.Looped); ok {
					for i, share := range looped.Busy() {
						emit(share, strconv.Itoa(i))
					}
				}
			},
		},
		{
			Name: "sync_age_seconds", Kind: figure.Gauge,
			Help: "For how long changes have been waiting to be safe on disk, 0 if none are or nothing is kept in a log.",
			Read: figure.One(func(v *figure.View) float64 { return figure.Of[*Server](v).persistence.Unsafe().Seconds() }),
		},
		{
			Name: "persistence_ok", Kind: figure.Gauge, Help: "0 while changes are refused with -MISCONF or the last snapshot has failed.",
			Read: figure.One(func(v *figure.View) float64 {
				s := figure.Of[*Server](v)
				return figure.Bit(!s.config.Kept() || s.persistence.Healthy())
			}),
		},
	}
}

// lastKeys has the keyspace statistics of the last reading.
type lastKeys struct {
	mu     sync.Mutex
	asking bool           // whether a goroutine is reading the statistics; guarded by mu
	keys   keyspace.Stats // the statistics that were read last; guarded by mu
}

// keysWait is the maximum time for which a reading of the figures waits for the keyspace, which a
// script may have locked.
const keysWait = 200 * time.Millisecond

// look returns the keyspace statistics. If it does not get them within keysWait, or if another
// goroutine is reading them, it returns the figures of the last reading, because operators need the
// metrics even while a script has locked the keyspace.
func (l *lastKeys) look(s *Server) keyspace.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asking {
		return l.keys
	}
	l.asking = true
	done := make(chan struct{})
	s.engine.Spawn(func() {
		st := s.keyspace.Stats()
		l.mu.Lock()
		l.keys, l.asking = st, false
		l.mu.Unlock()
		close(done)
	})
	l.mu.Unlock()
	timer := time.NewTimer(keysWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	l.mu.Lock()
	return l.keys
}
