package report

import (
	"time"

	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
)

// Sample has the figures of the server, which are sampled once a second. Counters count from the
// start.
type Sample struct {
	At    limit.Instant
	Civil int64 // civil time of the sample in Unix milliseconds
	// Calls counts calls of limiters. Denied and Failed count those of them that were denied or
	// answered with an error.
	Calls, Denied, Failed int64
	// Repeats counts calls that repeated a charged call, and Reservations the events of
	// reservations by name. All samples of a server have the same names in the same order.
	Repeats      int64
	Reservations []Count
	// Codes counts error replies by their first word.
	Codes map[string]int64
	// Resets is the number of times that all counters were reset.
	Resets int64
	Groups []GroupSample
	// Answers is the distribution of the durations of commands other than scripts, and Scripts of
	// the durations of scripts.
	Answers, Scripts *stats.Distribution
	Seen             []stats.SeenGroup
	Figures
}

// Take sets those fields of the sample that the figures of the server provide.
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
	s.Repeats, s.Reservations = int64(value("id_repeats_total")), nil
	v.Between("reservations_", "_total", func(name string, n float64) {
		s.Reservations = append(s.Reservations, Count{name, int64(n)})
	})
	s.Errors, s.OutOfMemory = v.Field("Stats", "total_error_replies"), int64(value("command_failures_total", "OOM"))
	s.ClientsLost = int64(value("connections_total", "refused")) + v.Field("Stats", "evicted_clients") +
		v.Field("Stats", "client_output_buffer_limit_disconnections")
	s.Clients = v.Field("Clients", "connected_clients")
	s.Memory, s.MaxMemory = int64(value("memory_bytes", "used")), int64(value("memory_bytes", "max"))
	s.Keys = int64(v.Sum("keys", nil))
	s.Loops = v.Max("loop_busy_ratio")
	s.ClockStep = time.Duration(value("clock_step_seconds") * float64(time.Second))
	s.ManualClock = value("clock_manual") == 1
	_, ruled := v.Value("rls_config_ok")
	_, limited := v.Value("limitador_limits_ok")
	s.HasRules = ruled || limited
	s.Rules = int64(value("rls_rules") + value("limitador_limits"))
	_, s.HasStore = v.Value("store_up")
	age, read := v.Value("store_policies_age_seconds")
	s.PoliciesRead, s.PoliciesAge = read, time.Duration(age*float64(time.Second))
	s.Replica, s.LinkUp, s.PrimaryRefused = value("replica") == 1, value("primary_link_up") == 1, value("primary_refused") == 1
	s.Lag = time.Duration(value("replication_lag_seconds") * float64(time.Second))
	s.Replicas, s.GoodReplicas = int64(value("replicas", "connected")), int64(value("replicas", "good"))
	s.WantedReplicas = int64(value("replicas", "wanted"))
	s.AckAge = time.Duration(value("replica_ack_age_seconds") * float64(time.Second))
	s.Codes = make(map[string]int64)
	v.Each("command_failures_total", func(n float64, labels ...string) { s.Codes[labels[0]] = int64(n) })
}

// GroupSample has the counters of a group.
type GroupSample struct {
	Name                string
	Calls, Denied, Near int64
}

// Figures are the input of the checks.
type Figures struct {
	Loops         float64 // fraction of time for which the busiest loop is busy, from 0 to 1
	Errors        int64   // number of error replies since the start
	ClientsLost   int64   // number of connections refused, evicted or closed because of their output buffer, since the start
	FailedLogins  int64   // number of failed logins since the start
	Clients, Keys int64
	Memory        int64 // memory in use, in bytes
	MaxMemory     int64 // maxmemory in bytes; 0 means no bound
	OutOfMemory   int64 // number of OOM replies since the start
	Keeps         bool  // whether there is a log
	Fault         string
	// HasRules says that an option names files of rules, Rules is the number of rules in force, and RulesFault says why
	// those of the files were not loaded, "" if they were.
	HasRules   bool
	Rules      int64
	RulesFault string
	Dependencies
	SyncAge   time.Duration
	ClockStep time.Duration
	// ManualClock says that the clock moves only by DEBUG CLOCK ADD.
	ManualClock bool
	Script      *RunningScript // the script that blocks other clients; nil while none does
	// Logins are the users with failed logins in the last minute.
	Logins []FailedLogin
}

// Dependencies is the state of the other processes that a server depends on: its remote store, its
// primary and its replicas.
type Dependencies struct {
	// HasStore says that the option store is set. StoreFault is the reason why the store does not
	// answer, "" if it does.
	HasStore   bool
	StoreFault string
	// PoliciesRead says that the policies in the store were read, and PoliciesAge is the time since the store has
	// confirmed that the server has them.
	PoliciesRead bool
	PoliciesAge  time.Duration
	// Servers are the servers that share the store.
	Servers []StoreServer
	// Replica says that the server is a replica. Primary is its primary. LinkUp says that the
	// server receives changes, and PrimaryRefused that it keeps its keys because its primary has
	// another data set.
	Replica, LinkUp, PrimaryRefused bool
	Primary                         string
	Lag                             time.Duration // time by which a replica is behind its primary
	// Replicas is the number of this server's replicas, GoodReplicas the number of those that count
	// for min-replicas-to-write, and WantedReplicas the value of that option on a primary.
	Replicas, GoodReplicas, WantedReplicas int64
	AckAge                                 time.Duration // time since the last acknowledgement of the replica for which it is the longest
}

// RunningScript is a script in progress.
type RunningScript struct {
	SHA     string
	Client  int64 // ID of the client that runs the script; 0 for the admin port
	Name    Key   // name of the client, as the client has set it
	Running time.Duration
	Busy    bool // whether other clients get BUSY errors
}

// FailedLogin describes a user with failed logins.
type FailedLogin struct {
	User  Key
	Known bool  // whether the user exists and is on
	Count int64 // number of failed logins since First
	// Clients is the largest number of connections that failed to log in at the same time, 0 if
	// that is not known.
	Clients int64
	First   int64 // civil time of the first failure in Unix milliseconds
	Last    int64
}
