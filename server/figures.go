package server

import (
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/cellserver/cellserver/commands/acl"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/stats"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/metrics"
	"github.com/cellserver/cellserver/transport"
)

// figures gathers what metrics show.
type figures struct {
	s *Server

	mu      sync.Mutex
	allowed map[int]float64 // guarded by mu: decisions by id of the command, at the last look
	asking  bool            // guarded by mu: somebody asks the keyspace
	keys    keyspace.Stats  // guarded by mu: what that last said
}

// keysWait is how long a scrape waits for the keyspace, which a script may keep locked.
const keysWait = 200 * time.Millisecond

// keyspace returns what the keyspace says of itself. While a script keeps it locked that is what
// it said before: the metrics are needed then more than ever.
func (f *figures) keyspace() keyspace.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asking {
		return f.keys
	}
	f.asking = true
	told := make(chan struct{})
	f.s.engine.Spawn(func() {
		st := f.s.keyspace.Stats()
		f.mu.Lock()
		f.keys, f.asking = st, false
		f.mu.Unlock()
		close(told)
	})
	f.mu.Unlock()
	timer := time.NewTimer(keysWait)
	defer timer.Stop()
	select {
	case <-told:
	case <-timer.C:
	}
	f.mu.Lock()
	return f.keys
}

func (f *figures) gather() metrics.Figures {
	s, e := f.s, f.s.engine
	st, info, net := e.Statistics(), e.Server.Info(), s.transport.Stats()
	m := metrics.Figures{
		Version: Version, RedisVersion: command.RedisVersion, GoVersion: runtime.Version(),
		Loading: e.Loading(), PersistenceOK: s.config.Remote() || s.persistence.healthy(),
		ClockStep: e.Options.Process.ClockStep(), SyncAge: s.persistence.unsafe(), ScriptRunning: e.ScriptRunning(),
		Connections:  []metrics.Count{{Of: "accepted", Value: float64(st.Received - st.Refused)}, {Of: "refused", Value: float64(st.Refused)}},
		AuthFailures: float64(info.FailedLogins),
		Net:          []metrics.Count{{Of: "in", Value: float64(net.BytesIn)}, {Of: "out", Value: float64(net.BytesOut)}},
	}
	if looped, ok := s.transport.(transport.Looped); ok {
		m.Loops = looped.Busy()
	}
	for class := range stats.Classes {
		m.Durations[class] = e.ClassDurations(class)
	}
	open, blocked := e.CountClients()
	m.Clients = []metrics.Count{
		{Of: "normal", Value: float64(max(0, open-blocked-st.Subscribers))},
		{Of: "blocked", Value: float64(blocked)},
		{Of: "subscribed", Value: float64(st.Subscribers)},
	}
	for reason, name := range map[acl.Denied]string{acl.DeniedCommand: "command", acl.DeniedKey: "key", acl.DeniedChannel: "channel"} {
		m.ACLDenied = append(m.ACLDenied, metrics.Count{Of: name, Value: float64(e.Refusals.Count(reason))})
	}
	m.ACLDenied = append(m.ACLDenied, metrics.Count{Of: "auth", Value: m.AuthFailures})
	st.Errors.Each(func(word string, n int64) {
		m.Failures = append(m.Failures, metrics.Count{Of: word, Value: float64(n)})
	})
	st.Callers.Each(func(name string, n int64) { m.Users = append(m.Users, metrics.Count{Of: name, Value: float64(n)}) })
	if groups := command.Find[stats.Groups](&e.Server); groups != nil {
		m.Groups, m.Retries = groups.Snapshot(), groups.Retries()
	}
	m.Policies, m.PolicyCalls = countsOf(info.Policies), countsOf(info.PolicyCalls)
	f.commands(&m, st.Commands)
	s.memoryFigures(&m, f.keyspace(), &info)
	return m
}

func countsOf(all []command.Counted) (counts []metrics.Count) {
	for _, n := range all {
		counts = append(counts, metrics.Count{Of: n.Of, Value: float64(n.N)})
	}
	return counts
}

// commands gathers what is counted by command.
func (f *figures) commands(m *metrics.Figures, all []stats.Totals) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, n := range all {
		if n.Calls == 0 {
			delete(f.allowed, id)
			continue
		}
		cmd := f.s.engine.Commands.Entries[id]
		m.Commands = append(m.Commands, metrics.Count{Of: cmd.Name, Value: float64(n.Calls)})
		if cmd.Flags&command.FlagDecides == 0 {
			continue
		}
		// A call counts before it is known how it ends, and what it is counted by moves one
		// after the other. A counter may not fall, except when all begin again.
		allowed := float64(max(0, n.Calls-n.Denied-n.Failed))
		if before := f.allowed[id]; before <= float64(n.Calls) {
			allowed = max(allowed, before)
		}
		f.allowed[id] = allowed
		m.Decisions = append(m.Decisions, metrics.Decisions{Command: cmd.Name, Allowed: allowed, Denied: float64(n.Denied), Errors: float64(n.Failed)})
	}
}

// memoryFigures gathers what takes memory.
func (s *Server) memoryFigures(m *metrics.Figures, ks keyspace.Stats, info *command.Info) {
	rss, heap := s.engine.Options.Process.Memory()
	used := memoryStats(ks)
	m.Expired = float64(used.Expired)
	m.Memory = []metrics.Count{
		{Of: "used", Value: float64(used.Used(heap))},
		{Of: "dataset", Value: float64(used.Dataset)},
		{Of: "clients", Value: float64(s.clientMemory())},
		{Of: "scripts", Value: float64(info.ScriptBytes)},
		{Of: "heap", Value: float64(heap)},
		{Of: "rss", Value: float64(rss)},
		{Of: "max", Value: float64(used.Max)},
	}
	for db, d := range ks.Databases {
		if d.Keys > 0 {
			m.Keys = append(m.Keys, metrics.Count{Of: strconv.Itoa(db), Value: float64(d.Keys)})
		}
	}
}

// healthy reports whether changes are kept, as far as they are to be.
func (m *persistenceManager) healthy() bool { return !m.Refuses() && !m.saveFailed.Load() }

// unsafe is for how long a change has been waiting to be safe on disk.
func (m *persistenceManager) unsafe() time.Duration {
	if l := m.fileLog(); l != nil {
		return l.Stats().Unsafe
	}
	return 0
}
