package command

import "github.com/cellserver/cellserver/commands/stats"

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

// Info are the fields of INFO that groups know.
type Info struct {
	TrackingClients, TrackingKeys, TrackingItems, TrackingPrefixes int64
	Channels, Patterns, ShardChannels                              int64
	Scripts, ScriptBytes, EvictedScripts                           int64
	FailedLogins                                                   int64
	// Policies is how many policies there are, and of what belongs to them; PolicyCalls is what
	// they have counted of their calls.
	Policies, PolicyCalls []Counted
}

// Counted is a number and what it is of.
type Counted struct {
	Of string
	N  int64
}
