package server

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/transport"
)

// Stats is what the transport counts.
func (s *Server) Stats() transport.Stats { return s.transport.Stats() }

// LogLoading is what a server that loads does every few seconds.
func (s *Server) LogLoading() { s.persistence.logLoading() }

// LoadFor makes believe that loading, which goes on, began so long ago.
func (s *Server) LoadFor(d time.Duration) { s.persistence.began.Store(int64(s.stopwatch() - d)) }

// ReturnHeap is what the janitor does every second about memory that keys gave up.
func (s *Server) ReturnHeap() { s.returnHeap() }

// FreedHeap decides when what keys gave up of Go's heap is given back.
type FreedHeap struct{ f freedHeap }

// Due is asked with what keys have.
func (f *FreedHeap) Due(keys int64) bool { return f.f.due(keys) }

// QuietHeap decides when what lies idle in Go's heap is given back.
type QuietHeap struct{ q quietHeap }

// Due is one look at it.
func (q *QuietHeap) Due(cycles uint64, idle, held int64) bool { return q.q.due(cycles, idle, held) }

// NewStore is what the server gives its engine, for engines that a test assembles.
func NewStore(ks *keyspace.Keyspace) command.Store { return newStore(ks) }

// OptionNames are the options that this server has itself, and RedisOptionNames those of
// Redis that mean nothing to it, older names included.
func OptionNames() (names []string) {
	for _, o := range options() {
		names = append(names, o.name)
		if o.alias != "" {
			names = append(names, o.alias)
		}
	}
	return names
}

// RedisOptionNames is described at OptionNames.
func RedisOptionNames() (names []string) {
	for _, g := range redisOptions() {
		for _, o := range g.options {
			names = append(names, o.name)
			if o.alias != "" {
				names = append(names, o.alias)
			}
		}
	}
	return names
}

// Promises are the options and words that promise something in some of their values.
func Promises() (names []string) { return slices.Sorted(maps.Keys(promises)) }

// NewBoundedLog is what every line of a server passes, by a stopwatch of the caller's.
func NewBoundedLog(to slog.Handler, stopwatch func() time.Duration) slog.Handler {
	return boundedLog{to, newLogBounds(stopwatch)}
}

// TellLeftOut is what the janitor does every second, and with all what the stop does.
func TellLeftOut(h slog.Handler, all bool) { h.(boundedLog).bounds.tell(all) }
