package command

import (
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
)

// Activity describes the present activity of a client, and the memory that is kept for it.
type Activity struct {
	Description
	Active      limit.Instant // the instant at which the last bytes arrived
	LastCommand *Command      // the last command; nil before the first one
	Blocked     bool          // whether the client is blocked in a command
	Queued      int           // the number of commands that are queued until EXEC, -1 outside of MULTI
	Held        ClientMemory
}

// Statistics are the figures of the whole server that INFO shows. They count from the last CONFIG
// RESETSTAT, with these exceptions: Panics and Callers count from the start, and Subscribers,
// ClientMemory, and PerSecond are present values.
type Statistics struct {
	Commands     []stats.Totals // the totals of each command; the index is Command.ID
	Hits, Misses int64          // numbers of lookups of keys that were found and that were not
	Subscribers  int64          // number of clients with at least one subscription
	ClientMemory int64          // bytes that are kept for clients
	Received     int64          // number of accepted connections
	Refused      int64          // number of refused connections
	Evicted      int64          // number of clients that were closed by maxmemory-clients
	SlowReaders  int64          // number of clients that were closed because of their output buffer limit
	Panics       int64
	PerSecond    int64 // commands per second
	Errors       *stats.Errors
	Callers      *stats.Callers
}

// ClientMemory is the approximate memory in bytes that the server keeps for one client, by purpose.
type ClientMemory struct {
	Input    int64 // input that has arrived and has not been run yet
	Output   int64 // replies that have not been sent yet
	Messages int64 // messages of other goroutines that have not been sent yet
	Queued   int64 // commands that are queued until EXEC, watched keys, and what a waiting command keeps
	Topics   int64 // names and patterns of subscriptions
}

// Sum returns the total of all purposes, in bytes.
func (m ClientMemory) Sum() int64 { return m.Input + m.Output + m.Messages + m.Queued + m.Topics }

// Description has the fields of CLIENT LIST that the groups add for a client.
type Description struct {
	Channels, Patterns, ShardChannels    int
	Tracks, BrokenRedirect, Broadcasting bool
	Monitors                             bool
	Redirect                             int64 // the ID of the client that receives the invalidations instead, or 0; -1 if the client does not track keys
	Memory                               int64 // bytes that the client's subscriptions take
}

// Counted returns the reader of a metric without labels. The reader calls read with the state of type
// T that a group keeps for the server, and emits the result. If no group keeps such a state, the
// reader emits nothing.
func Counted[T any](read func(state *T) int64) func(*figure.View, figure.Emit) {
	return func(v *figure.View, emit figure.Emit) {
		if state := Find[T](figure.Of[*Server](v)); state != nil {
			emit(float64(read(state)))
		}
	}
}

// Figures returns the metrics of all groups of the table.
func (t *Table) Figures() (all []figure.Figure) {
	for i := range t.groups {
		all = append(all, t.groups[i].Figures...)
	}
	return all
}

// Measures has the statistics of the workers.
type Measures interface {
	// EachWorker calls f for every worker, and returns the instant from which their statistics
	// count. It holds the lock that guards these statistics while it calls f.
	EachWorker(f func(w *Worker)) (since limit.Instant)
	// Durations returns the distribution of the durations of the timed calls of the command with
	// that ID, and the number of all its calls.
	Durations(id int) (d stats.Distribution, calls int64)
	// ResetStatistics resets the statistics of the whole server (CONFIG RESETSTAT).
	ResetStatistics()
}
