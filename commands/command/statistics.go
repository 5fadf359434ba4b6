package command

import (
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/stats"
)

// Statistics are the figures of the whole server that INFO shows.
type Statistics struct {
	Commands     []stats.Totals // by id
	Hits, Misses int64          // lookups of keys
	Subscribers  int64          // clients that have subscribed to something
	ClientMemory int64          // bytes that are kept for clients
	Received     int64          // connections since the start
	Refused      int64          // of them
	Evicted      int64          // clients that were closed by maxmemory-clients
	SlowReaders  int64          // clients that were cut off for what they left unread
	Panics       int64
	PerSecond    int64 // commands
	Errors       *stats.Errors
	Callers      *stats.Callers
}

// ClientMemory is about how many bytes the server keeps for one client.
type ClientMemory struct {
	Input    int64 // what arrived and has not been run
	Output   int64 // replies that wait to leave
	Messages int64 // what others have told it and it has not taken
	Queued   int64 // commands that wait for EXEC, and watched keys
	Topics   int64 // what it has subscribed to
}

// Sum is all of it.
func (m ClientMemory) Sum() int64 { return m.Input + m.Output + m.Messages + m.Queued + m.Topics }

// Description is what groups know of a client for CLIENT LIST.
type Description struct {
	Channels, Patterns, ShardChannels    int
	Tracks, BrokenRedirect, Broadcasting bool
	Monitors                             bool
	Redirect                             int64 // the client that is told instead, or 0; -1 if it does not track
	Memory                               int64 // what subscriptions take
}

// Counted reads a figure without labels from what the group that keeps a T keeps for the server. The
// figure is absent if no group does.
func Counted[T any](read func(state *T) int64) func(*figure.View, figure.Emit) {
	return func(v *figure.View, emit figure.Emit) {
		if state := Find[T](figure.Of[*Server](v)); state != nil {
			emit(float64(read(state)))
		}
	}
}

// Figures are those of the groups of the table.
func (t *Table) Figures() (all []figure.Figure) {
	for i := range t.groups {
		all = append(all, t.groups[i].Figures...)
	}
	return all
}
