package metrics

import (
	"time"

	"github.com/cellserver/cellserver/commands/stats"
)

// Figures are how a server is, and what it has counted since its start.
type Figures struct {
	Version, RedisVersion, GoVersion string

	Loading, PersistenceOK            bool
	ClockStep, SyncAge, ScriptRunning time.Duration
	Loops                             []float64 // which share of the time each was busy
	Clients, Memory                   []Count
	Keys                              []Count // by database
	Connections, ACLDenied, Net       []Count
	Commands, Failures, Users         []Count // by name; those that were never seen are not there
	AuthFailures, Expired             float64
	Durations                         [stats.Classes]stats.Distribution
	Limiters
}

// Limiters are the figures of limiters and policies.
type Limiters struct {
	Decisions             []Decisions
	Groups                []stats.GroupCount
	Retries               stats.Retries
	Policies, PolicyCalls []Count // by kind, and by what was counted
}

// Count is a number and what it is of.
type Count struct {
	Of    string
	Value float64
}

// Decisions are those of a limiter command.
type Decisions struct {
	Command                 string
	Allowed, Denied, Errors float64
}
