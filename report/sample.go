package report

import (
	"time"

	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
)

// Sample is what the server has counted, once a second. Counters are those since the start.
type Sample struct {
	At    limit.Instant
	Civil int64 // Unix milliseconds
	// Calls are those of limiters, and Denied and Failed those of them that were denied, or answered
	// with an error.
	Calls, Denied, Failed int64
	// Codes are the error replies by their first word.
	Codes map[string]int64
	// Resets is how often the counters have been reset, all of them together.
	Resets int64
	Groups []GroupSample
	// Answers are the times that commands took, but for scripts, and Scripts those of scripts.
	Answers, Scripts *stats.Distribution
	Seen             []stats.SeenGroup
	Figures
}

// Take reads what the figures of the server say.
func (s *Sample) Take(v *figure.View) {
	calls := func(result string) int64 {
		return int64(v.Sum("decisions_total", func(labels []string) bool { return labels[1] == result }))
	}
	value := func(name string, labels ...string) float64 {
		n, _ := v.Value(name, labels...)
		return n
	}
	s.Denied, s.Failed = calls("denied"), calls("error")
	s.Calls = calls("allowed") + s.Denied + s.Failed
	s.Errors, s.OutOfMemory = v.Field("Stats", "total_error_replies"), int64(value("command_failures_total", "OOM"))
	s.ClientsLost = int64(value("connections_total", "refused")) + v.Field("Stats", "evicted_clients") +
		v.Field("Stats", "client_output_buffer_limit_disconnections")
	s.Clients = v.Field("Clients", "connected_clients")
	s.Memory, s.MaxMemory = int64(value("memory_bytes", "used")), int64(value("memory_bytes", "max"))
	s.Keys = int64(v.Sum("keys", nil))
	s.Loops = v.Max("loop_busy_ratio")
	s.ClockStep = time.Duration(value("clock_step_seconds") * float64(time.Second))
	_, s.HasStore = v.Value("store_up")
	s.Replica, s.LinkUp, s.PrimaryRefused = value("replica") == 1, value("primary_link_up") == 1, value("primary_refused") == 1
	s.Lag = time.Duration(value("replication_lag_seconds") * float64(time.Second))
	s.Replicas, s.GoodReplicas = int64(value("replicas", "connected")), int64(value("replicas", "good"))
	s.WantedReplicas = int64(value("replicas", "wanted"))
	s.AckAge = time.Duration(value("replica_ack_age_seconds") * float64(time.Second))
	s.Codes = make(map[string]int64)
	v.Each("command_failures_total", func(n float64, labels ...string) { s.Codes[labels[0]] = int64(n) })
}

// GroupSample are the counters of a group.
type GroupSample struct {
	Name                string
	Calls, Denied, Near int64
}

// Figures are what checks are made of.
type Figures struct {
	Loops         float64 // the busiest one's share of the time that it is busy, 0 to 1
	Errors        int64   // replies, since the start
	ClientsLost   int64   // connections that were refused or cut off, since the start
	FailedLogins  int64   // since the start
	Clients, Keys int64
	Memory        int64 // bytes
	MaxMemory     int64 // 0 for no bound
	OutOfMemory   int64 // replies, since the start
	Keeps         bool  // there is a log
	Fault         string
	Elsewhere
	SyncAge   time.Duration
	ClockStep time.Duration
	Script    *RunningScript // nil while none keeps others waiting
	// Logins are the users for which logins have failed during the last minute.
	Logins []FailedLogin
}

// Elsewhere is how the other processes are that a server needs.
type Elsewhere struct {
	// HasStore says that there is the option store, and StoreFault why it does not answer, "" if it
	// does.
	HasStore   bool
	StoreFault string
	// Replica is the role. Primary is the primary of a replica, LinkUp reports whether it
	// receives changes, and PrimaryRefused that it keeps its keys because its primary has another
	// data set.
	Replica, LinkUp, PrimaryRefused bool
	Primary                         string
	Lag                             time.Duration // of a replica, behind its primary
	// Replicas are those of this server, GoodReplicas those that count for min-replicas-to-write, and
	// WantedReplicas that option of a primary.
	Replicas, GoodReplicas, WantedReplicas int64
	AckAge                                 time.Duration // since the latest replica has acknowledged something
}

// RunningScript is a script that runs.
type RunningScript struct {
	SHA     string
	Client  int64 // 0 for the admin port
	Name    Key   // of the client
	Running time.Duration
	Busy    bool // other clients get BUSY
}

// FailedLogin is a user for which logins fail.
type FailedLogin struct {
	User  Key
	Known bool  // there is such a user
	Count int64 // of the failures since First
	// Clients is how many connections failed to at once, 0 if that is not known.
	Clients int64
	First   int64 // Unix milliseconds
	Last    int64
}
