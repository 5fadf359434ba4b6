package report

import (
	"time"

	"github.com/cellserver/cellserver/commands/stats"
	"github.com/cellserver/cellserver/limit"
)

// Sample is what the server has counted, once a second. Counters are those since the start.
type Sample struct {
	At            limit.Instant
	Civil         int64 // Unix milliseconds
	Calls, Denied int64 // decisions
	// Resets is how often the counters have been reset, all of them together.
	Resets int64
	Groups []GroupSample
	// Answers are the times that commands took, but for scripts, and Scripts those of scripts.
	Answers, Scripts *stats.Distribution
	Seen             []stats.SeenGroup
	Figures
}

// GroupSample are the counters of a group.
type GroupSample struct {
	Name                string
	Calls, Denied, Near int64
}

// Figures are what checks are made of.
type Figures struct {
	Loops          float64 // the busiest one's share of the time that it is busy, 0 to 1
	Errors         int64   // replies, since the start
	ClientsLost    int64   // connections that were refused or cut off, since the start
	FailedLogins   int64   // since the start
	Clients, Keys  int64
	Memory         int64 // bytes
	MaxMemory      int64 // 0 for no bound
	OutOfMemory    int64 // replies, since the start
	Keeps          bool  // there is a log
	Fault          string
	PrimaryRefused bool // a replica keeps its keys, since its primary has another data set
	SyncAge        time.Duration
	ClockStep      time.Duration
	Script         *RunningScript // nil while none keeps others waiting
	// Logins are the users as whom somebody failed to log in during the last minute.
	Logins []FailedLogin
}

// RunningScript is a script that runs.
type RunningScript struct {
	SHA     string
	Client  int64 // 0 for the admin port
	Name    Key   // of the client
	Running time.Duration
	Busy    bool // others are told that it is
}

// FailedLogin is a user as whom somebody fails to log in.
type FailedLogin struct {
	User  Key
	Known bool  // there is such a user
	Count int64 // of the failures since First
	// Clients is how many connections failed to at once, 0 if that is not known.
	Clients int64
	First   int64 // Unix milliseconds
	Last    int64
}
