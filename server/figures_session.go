package server

import (
	"strconv"
	"sync"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/stats"
)

// These constants bound the numbers of values of labels that clients determine.
const (
	// maxFailures is the maximum number of codes of error replies that have their own series.
	maxFailures = 16
	// sharedSeries is the maximum number of commands that have their own series. The series of
	// several figures together are also bounded, by metrics.SharedSeries.
	sharedSeries = 1 << 10
)

// durationBounds has the upper bounds of the buckets in the histogram of command durations. They
// are powers of two nanoseconds, because a [stats.Distribution] counts exactly below these.
var durationBounds = [...]time.Duration{1 << 13, 1 << 15, 1 << 17, 1 << 19, 1 << 20, 1 << 22, 1 << 24, 1 << 27, 1 << 30, 1 << 33}

func engineOf(v *figure.View) *session.Engine { return figure.Of[*Server](v).engine }

// processMemory has the results of [env.Process].Memory, in bytes.
type processMemory struct{ rss, heap int64 }

// total returns the Read function of a figure. read takes the value of the figure from the
// statistics of commands.
func total(read func(st *command.Statistics) int64) func(*figure.View, figure.Emit) {
	return figure.One(func(v *figure.View) int64 {
		st := figure.Of[command.Statistics](v)
		return read(&st)
	})
}

func gauges() []figure.Figure {
	return []figure.Figure{
		{
			Name: "loading", Kind: figure.Gauge, Help: "1 while the server loads its files, and clients get -LOADING.",
			Read: figure.One(func(v *figure.View) float64 { return figure.Bit(engineOf(v).Loading()) }),
		},
		{
			Name: "clients", Kind: figure.Gauge, Labels: []string{"state"},
			Values: "`blocked` by a command that waits, `subscribed` to something, `normal`",
			Help:   "Open connections of clients, each in one state.",
			Info:   figure.Fields("Clients", map[string]string{"blocked": "blocked_clients", "subscribed": "pubsub_clients"}),
			Read: func(v *figure.View, emit figure.Emit) {
				open, blocked := engineOf(v).CountClients()
				subscribed := figure.Of[command.Statistics](v).Subscribers
				emit(float64(max(0, open-blocked-subscribed)), "normal")
				emit(float64(blocked), "blocked")
				emit(float64(subscribed), "subscribed")
			},
		},
		{
			Name: "clock_step_seconds", Kind: figure.Gauge, Info: figure.Field("Server", "clock_step_seconds"),
			Help: "How far the wall clock is ahead of the server's own clock, by which it decides.",
			Read: figure.One(func(v *figure.View) float64 { return engineOf(v).Process().ClockStep().Seconds() }),
		},
		{
			Name: "clock_manual", Kind: figure.Gauge, Info: figure.Field("Server", "clock_manual"),
			Help: "1 if the clock moves only by DEBUG CLOCK ADD (--clock manual), for tests of programs.",
			Read: figure.One(func(v *figure.View) float64 { return figure.Bit(engineOf(v).Options.MoveClock != nil) }),
		},
		{
			Name: "script_running_seconds", Kind: figure.Gauge,
			Help: "For how long the script or transaction that keeps all others waiting has been running, 0 if none does.",
			Read: figure.One(func(v *figure.View) float64 { return engineOf(v).ScriptRunning().Seconds() }),
		},
	}
}

func memoryFigures() []figure.Figure {
	return []figure.Figure{
		{
			Name: "memory_bytes", Kind: figure.Gauge, Labels: []string{"kind"},
			Values: "`used` for all, `dataset` for keys, `clients`, `scripts`, `users` of ACL, `heap` of Go with long input, which is beside it, `rss` as the system sees it, `max` (maxmemory, 0 without)",
			Help:   "Memory by what it is for. The kinds overlap.",
			Info: figure.Fields("Memory", map[string]string{
				"used": "used_memory", "dataset": "used_memory_dataset", "rss": "used_memory_rss", "heap": "allocator_allocated",
				"clients": "mem_clients_normal", "users": "used_memory_users",
			}),
			Read: func(v *figure.View, emit figure.Emit) {
				used, process := figure.Of[env.StoreStats](v).Memory, figure.Of[processMemory](v)
				emit(float64(used.Used(process.heap)), "used")
				emit(float64(used.Dataset), "dataset")
				emit(float64(figure.Of[stats.Traffic](v).Pending+figure.Of[command.Statistics](v).ClientMemory), "clients")
				emit(float64(v.Field("Memory", "used_memory_scripts")), "scripts")
				emit(float64(engineOf(v).Users.Memory()), "users")
				emit(float64(process.heap), "heap")
				emit(float64(process.rss), "rss")
				emit(float64(used.Max), "max")
			},
		},
		{
			Name: "keys", Kind: figure.Gauge, Labels: []string{"db"}, Values: "number of a database with keys", Help: "Keys of a database.",
			Read: func(v *figure.View, emit figure.Emit) {
				for db, d := range figure.Of[env.StoreStats](v).Databases {
					if d.Keys > 0 {
						emit(float64(d.Keys), strconv.Itoa(db))
					}
				}
			},
		},
		{
			Name: "expired_keys_total", Kind: figure.Counter, Help: "Keys that have expired.", Info: figure.Field("Stats", "expired_keys"),
			Read: figure.One(func(v *figure.View) int64 { return figure.Of[env.StoreStats](v).Memory.Expired }),
		},
	}
}

func counters() []figure.Figure {
	return []figure.Figure{
		{
			Name: "connections_total", Kind: figure.Counter, Labels: []string{"result"}, Values: "`accepted`, `refused`", Help: "Connections of clients.",
			Info: figure.Fields("Stats", map[string]string{"refused": "rejected_connections"}),
			Read: func(v *figure.View, emit figure.Emit) {
				st := figure.Of[command.Statistics](v)
				emit(float64(st.Received-st.Refused), "accepted")
				emit(float64(st.Refused), "refused")
			},
		},
		{
			Name: "commands_total", Kind: figure.Counter, Labels: []string{"command"}, Values: "name of a command that was called, `other`",
			Help: "Calls of commands.", Bound: sharedSeries, Read: readCommands,
		},
		{
			Name: "command_failures_total", Kind: figure.Counter, Labels: []string{"code"}, Values: "first word of an error reply, `other`",
			Help: "Error replies.", Bound: maxFailures,
			Read: func(v *figure.View, emit figure.Emit) {
				figure.Of[command.Statistics](v).Errors.Each(func(word string, n int64) { emit(float64(n), word) })
			},
		},
		{
			Name: "acl_denied_total", Kind: figure.Counter, Labels: []string{"reason"}, Values: "`auth`, `command`, `key`, `channel`",
			Help: "What the rules of users have refused.",
			Info: figure.Fields("Stats", map[string]string{
				"auth": "acl_access_denied_auth", "command": "acl_access_denied_cmd", "key": "acl_access_denied_key", "channel": "acl_access_denied_channel",
			}),
			Read: func(v *figure.View, emit figure.Emit) {
				refusals := &engineOf(v).Refusals
				emit(v.Sum("auth_failures_total", nil), "auth")
				emit(float64(refusals.Count(acl.DeniedCommand)), "command")
				emit(float64(refusals.Count(acl.DeniedKey)), "key")
				emit(float64(refusals.Count(acl.DeniedChannel)), "channel")
			},
		},
		{
			Name: "net_bytes_total", Kind: figure.Counter, Labels: []string{"direction"}, Values: "`in`, `out`", Help: "Bytes of clients.",
			Info: figure.Fields("Stats", map[string]string{"in": "total_net_input_bytes", "out": "total_net_output_bytes"}),
			Read: func(v *figure.View, emit figure.Emit) {
				moved := figure.Of[stats.Traffic](v)
				emit(float64(moved.In), "in")
				emit(float64(moved.Out), "out")
			},
		},
		{
			Name: "decisions_total", Kind: figure.Counter, Labels: []string{"command", "result"},
			Values: "a limiter command; `allowed`, `denied`, `error`",
			Help:   "Calls of limiters by how they ended. RL.MULTI is one call, and one that is refused before it runs is an error. Every INCREX is a call; denied is one that a bound lets add nothing.", Read: readDecisions,
		},
		{
			Name: "user_commands_total", Kind: figure.Counter, Labels: []string{"user"},
			Values: "name of a user of ACL, in quotes if it is odd, `other` for those beyond 50",
			Help:   "Commands that clients of a user have run.", Bound: stats.MaxCallers,
			Read: func(v *figure.View, emit figure.Emit) {
				figure.Of[command.Statistics](v).Callers.Each(func(name string, n int64) { emit(float64(n), name) })
			},
		},
		{
			Name: "command_duration_seconds", Kind: figure.Histogram, Labels: []string{"class"}, Values: "`fast`, `slow`, `script`",
			Help: "Time that commands took. Of pipelined fast commands a part is measured.", Spread: spreadDurations,
		},
	}
}

func readCommands(v *figure.View, emit figure.Emit) {
	e := engineOf(v)
	for id, n := range figure.Of[command.Statistics](v).Commands {
		if n.Calls > 0 {
			emit(float64(n.Calls), e.Commands.Entries[id].Name)
		}
	}
}

// decided has the number of allowed calls in the last reading, for each limiter command.
type decided struct {
	mu      sync.Mutex
	allowed map[int]int64 // the number of allowed calls of each command, by its ID; guarded by mu
}

// readDecisions emits the numbers of calls of each limiter command that were allowed, denied or
// failed. It emits zeros for a command that was not called yet, since a rate over a counter that
// begins with its first event misses that event.
func readDecisions(v *figure.View, emit figure.Emit) {
	e := engineOf(v)
	for id, n := range figure.Of[command.Statistics](v).Commands {
		cmd := e.Commands.Entries[id]
		if cmd.Flags&command.FlagDecides == 0 {
			continue
		}
		allowed := figure.Of[*Server](v).decided.of(id, n)
		failed := n.Failed + n.Rejected // Rejected has the calls that failed before they ran, such as for lack of replicas
		emit(float64(allowed), cmd.Name, "allowed")
		emit(float64(n.Denied), cmd.Name, "denied")
		emit(float64(failed), cmd.Name, "error")
	}
}

// of returns the number of allowed calls of the command id, whose counters are n. The result never
// decreases unless the statistics are reset. To ensure that, it is at least the result of the last
// reading, because n.Calls counts a call before n.Denied or n.Failed counts its outcome.
func (d *decided) of(id int, n stats.Totals) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n.Calls == 0 {
		delete(d.allowed, id)
		return 0
	}
	allowed := max(0, n.Calls-n.Denied-n.Failed)
	if before := d.allowed[id]; before <= n.Calls {
		allowed = max(allowed, before)
	}
	if d.allowed == nil {
		d.allowed = make(map[int]int64)
	}
	d.allowed[id] = allowed
	return allowed
}

func spreadDurations(v *figure.View, emit func(figure.Buckets, ...string)) {
	e := engineOf(v)
	for class := range stats.Classes {
		d := e.ClassDurations(class)
		if d.Calls == 0 {
			continue
		}
		b := figure.Buckets{Count: float64(d.Calls), Sum: d.Sum.Seconds(), Below: make(map[float64]uint64)}
		for _, bound := range durationBounds {
			b.Below[bound.Seconds()] = uint64(d.Below(bound))
		}
		emit(b, class.String())
	}
}

// infoFigures returns the figures that INFO shows but the metrics do not.
func infoFigures() []figure.Figure {
	measure := func(read func(m *stats.Measures) int64) func(*figure.View, figure.Emit) {
		return figure.One(func(v *figure.View) int64 {
			m := figure.Of[stats.Measures](v)
			return read(&m)
		})
	}
	moved := func(read func(t *stats.Traffic) int64) func(*figure.View, figure.Emit) {
		return figure.One(func(v *figure.View) int64 {
			t := figure.Of[stats.Traffic](v)
			return read(&t)
		})
	}
	return []figure.Figure{
		figure.Shown("Clients", "connected_clients", figure.One(func(v *figure.View) int64 {
			open, _ := engineOf(v).CountClients()
			return open
		})),
		figure.Shown("Clients", "client_recent_max_input_buffer", moved(func(t *stats.Traffic) int64 { return t.LargestInput })),
		figure.Shown("Clients", "client_recent_max_output_buffer", moved(func(t *stats.Traffic) int64 { return t.LargestOutput })),
		figure.Shown("Memory", "used_memory_startup", measure(func(m *stats.Measures) int64 { return m.StartMemory })),
		figure.Shown("Memory", "total_system_memory", measure(func(m *stats.Measures) int64 { return m.SystemMemory })),
		figure.Shown("Stats", "total_connections_received", total(func(st *command.Statistics) int64 { return st.Received })),
		figure.Shown("Stats", "total_commands_processed", total(func(st *command.Statistics) (n int64) {
			for _, t := range st.Commands {
				n += t.Calls
			}
			return n
		})),
		figure.Shown("Stats", "instantaneous_ops_per_sec", total(func(st *command.Statistics) int64 { return st.PerSecond })),
		figure.Shown("Stats", "total_reads_processed", moved(func(t *stats.Traffic) int64 { return t.Reads })),
		figure.Shown("Stats", "total_writes_processed", moved(func(t *stats.Traffic) int64 { return t.Writes })),
		figure.Shown("Stats", "expire_cycle_cpu_milliseconds", measure(func(m *stats.Measures) int64 { return m.ExpireTime.Milliseconds() })),
		figure.Shown("Stats", "keyspace_hits", total(func(st *command.Statistics) int64 { return st.Hits })),
		figure.Shown("Stats", "keyspace_misses", total(func(st *command.Statistics) int64 { return st.Misses })),
		figure.Shown("Stats", "evicted_clients", total(func(st *command.Statistics) int64 { return st.Evicted })),
		figure.Shown("Stats", "client_output_buffer_limit_disconnections", total(func(st *command.Statistics) int64 { return st.SlowReaders })),
		figure.Shown("Stats", "total_error_replies", total(func(st *command.Statistics) int64 { return st.Errors.Total.Load() })),
		figure.Shown("Stats", "internal_errors", total(func(st *command.Statistics) int64 { return st.Panics })),
	}
}
