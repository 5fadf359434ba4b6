package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/report"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/stats"
)

func newReporting(s *Server) *reporting {
	r := &reporting{s: s}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	r.id = host
	r.recorder = report.NewRecorder(s.engine.Options.Now(), func(kind, text, group string) {
		s.engine.Changes.Add(stats.Change{At: s.engine.CivilMillis(), Kind: kind, Text: text, Group: group, By: "seen in calls"})
	})
	r.reporter = report.New(r.recorder, r)
	return r
}

// reporting takes a sample of the server once a second, and creates reports from the samples. It
// implements [report.Source].
type reporting struct {
	s        *Server
	recorder *report.Recorder
	reporter *report.Reporter
	id       string
	used     atomic.Int64       // number of bytes of memory in use at the last sample
	clients  report.ClientKinds // the kinds of clients; used only by the sampling goroutine
	busy     bool               // whether warnOfScript has logged its warning; used only by the sampling goroutine
}

// run takes samples until ctx ends.
func (r *reporting) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		r.sample()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sample takes one sample. Only the sampling goroutine may call it.
func (r *reporting) sample() {
	e := r.s.engine
	resets, resetting := e.Resets()
	now := e.Options.Now()
	s := report.Sample{At: now, Civil: e.CivilMillis(), Resets: resets, Figures: r.figures()}
	r.warnOfScript(s.Script)
	answers, slow, scripts := e.ClassDurations(stats.Fast), e.ClassDurations(stats.Slow), e.ClassDurations(stats.Script)
	answers.Merge(&slow)
	s.Answers, s.Scripts = &answers, &scripts
	s.Take(e.Figures.View())
	r.used.Store(s.Memory)
	if e.Seen != nil {
		s.Seen = e.Seen.TakeGroups()
		for _, g := range e.Seen.Groups() {
			s.Groups = append(s.Groups, report.GroupSample{Name: g.Name, Calls: g.Calls, Denied: g.Denied, Near: g.Near})
		}
	}
	r.clients.Look(r.clientKinds, func(text, by string) {
		e.Changes.Add(stats.Change{At: e.CivilMillis(), Kind: "client", Text: text, By: by})
	})
	if again, now := e.Resets(); resetting || now || again != resets {
		return // some counts may be from before the reset, and others from after it; the next sample is consistent
	}
	r.recorder.Add(s)
}

// clientKinds ranges over the kinds of all connected clients.
func (r *reporting) clientKinds(yield func(report.ClientKind) bool) {
	for _, c := range r.s.engine.Clients() {
		is := c.Identity()
		if !yield(report.ClientKind{Name: is.Name, Lib: is.LibName, Version: is.LibVer}) {
			return
		}
	}
}

// warnOfScript logs a warning when script, which may be nil, has blocked the store so long that
// other clients get BUSY errors. It logs again only after a sample without such a script.
func (r *reporting) warnOfScript(script *report.RunningScript) {
	busy := script != nil && script.Busy
	if busy && !r.busy {
		from := slog.Int64("id", script.Client)
		if script.Client == 0 {
			from = slog.String("via", "admin port")
		}
		r.s.log.Warn("a script blocks all other calls, which are answered -BUSY: SCRIPT KILL ends it if it has written nothing",
			slog.String("script", script.SHA), from, slog.Duration("runs_for", script.Running))
	}
	r.busy = busy
}

// figures returns the input of a report's checks that is not among the figures of the engine.
func (r *reporting) figures() report.Figures {
	e := r.s.engine
	f := report.Figures{FailedLogins: e.Refusals.Count(acl.DeniedAuth)}
	if p := e.Options.Persistence; p != nil {
		f.Fault = p.Fault()
		f.SyncAge, f.Keeps = r.s.persistence.Stalled()
	}
	if running, ok := e.Running(); ok {
		f.Script = &report.RunningScript{SHA: running.Script, Client: running.Client.ID, Name: report.Key(running.Client.Name()), Running: running.For, Busy: running.Busy}
	}
	f.RulesFault = r.s.rulesFault()
	f.Logins = r.failedLogins()
	if r.s.remote != nil {
		f.StoreFault = (&remoteState{Info: r.s.remote.Info()}).reason()
		f.Servers = r.s.storeServers()
	} else if r.s.replicator != nil {
		if role := r.s.replicator.node.Role(); role.Replica {
			f.Primary = net.JoinHostPort(role.Host, strconv.Itoa(role.Port))
		}
	}
	return f
}

// failedLogins returns the failed logins of the last minute, by the entries of ACL LOG. It
// considers only the newest 128 entries.
func (r *reporting) failedLogins() (failed []report.FailedLogin) {
	e, after := r.s.engine, r.s.engine.CivilMillis()-time.Minute.Milliseconds()
	for _, entry := range e.Refusals.Newest(128) {
		if entry.Reason != acl.DeniedAuth || entry.Updated < after {
			continue
		}
		_, known := e.Users.ByName(entry.User)
		l := report.FailedLogin{User: report.Key(entry.User), Known: known, Count: entry.Count, First: entry.Created, Last: entry.Updated}
		if follows, ok := e.Logins.(interface{ Failing(user string) int64 }); ok {
			l.Clients = follows.Failing(entry.User)
		}
		failed = append(failed, l)
	}
	return failed
}

// answer implements RL.REPORT and returns the report called name as JSON. u is the user of the
// client, from is the address of the client, and given maps the names of parameters to their
// values.
func (r *reporting) answer(u *acl.User, from, name string, given map[string][]string) ([]byte, error) {
	q, err := report.ParseQuery(name, given, r.Databases())
	if err != nil {
		return nil, err //nolint:wrapcheck // the command replies this error
	}
	return r.reporter.Answer(u, from, q) //nolint:wrapcheck // the command replies this error, too
}

// Identity implements [report.Source]. It describes this server process.
func (r *reporting) Identity() report.Server {
	groups := r.s.engine.Options.Groups
	return report.Server{
		ID: r.id + ":" + strconv.Itoa(r.s.tcpPort()), Version: Version, UptimeS: int64(r.s.stopwatch() / time.Second),
		GroupBy: groups.Delimiter, MaxGroups: groups.Max, Client: r.s.cli(r.id),
	}
}

// Actions implements [report.Source]. It returns the value of the option admin-actions.
func (r *reporting) Actions() bool { return r.s.config.Yes("admin-actions") }

// Databases implements [report.Source]. It returns the number of databases.
func (r *reporting) Databases() int { return r.s.engine.Limits().Databases }

// Denied implements [report.Source]. The result is empty if the server does not count calls by key.
func (r *reporting) Denied() stats.SeenKeys {
	if r.s.engine.Seen == nil {
		return stats.SeenKeys{}
	}
	return r.s.engine.Seen.Denied(r.s.engine.Options.Now())
}

// Called implements [report.Source]. The result is empty if the server does not count calls by key.
func (r *reporting) Called() stats.SeenKeys {
	if r.s.engine.Seen == nil {
		return stats.SeenKeys{}
	}
	return r.s.engine.Seen.Called(r.s.engine.Options.Now())
}

// GroupOf implements [report.Source]. It returns the name of the group to which key belongs.
func (r *reporting) GroupOf(key string) string {
	return stats.GroupName([]byte(key), r.s.engine.Options.Groups.Delimiter)
}

// Policy implements [report.Source]. If key has the form of a state of an existing policy or of its
// candidate, the result is is true, name is the name of the policy, and of is the key that calls of
// RL.USE have.
func (r *reporting) Policy(key string) (name, of string, is bool) {
	policies := r.s.engine.Options.Policies
	if policies == nil || !strings.Contains(key, ":") {
		return "", "", false
	}
	at, rest := policy.ParseStateKey([]byte(key))
	at = bytes.TrimSuffix(at, []byte("#try"))
	return string(at), string(rest), policies.Table().Policy(at) != nil
}

// Changes implements [report.Source].
func (r *reporting) Changes(since int64) []stats.Change { return r.s.engine.Changes.Since(since) }

// Caller implements [report.Source]. It returns false if no client with this ID is connected.
func (r *reporting) Caller(id int64) (report.Caller, bool) {
	c := r.s.engine.Client(id)
	if c == nil {
		return report.Caller{}, false
	}
	return callerOf(c), true
}

func callerOf(c *command.Client) report.Caller {
	is := c.Identity()
	return report.Caller{
		ID: c.ID, Name: report.Key(is.Name), User: report.Key(c.UserName()), Addr: c.Addr(),
		Lib: report.Key(strings.TrimSpace(is.LibName + " " + is.LibVer)),
	}
}

// Clients implements [report.Source]. most is the maximum number of clients.
func (r *reporting) Clients(most int) []report.ClientLine {
	e, now := r.s.engine, r.s.engine.Options.Now()
	all := e.Clients()
	lines := make([]report.ClientLine, 0, min(most, len(all)))
	for _, c := range all[:min(most, len(all))] {
		does := e.Activity(c)
		line := report.ClientLine{
			Caller: callerOf(c), AgeS: int64(now.Sub(c.Created) / time.Second), IdleS: int64(now.Sub(max(c.Created, does.Active)) / time.Second),
			DB: c.Selected(), Memory: does.Held.Sum(),
		}
		if does.LastCommand != nil {
			line.Cmd = does.LastCommand.Name
		}
		lines = append(lines, line)
	}
	return lines
}

// SlowLog implements [report.Source]. most is the maximum number of entries.
func (r *reporting) SlowLog(most int) []report.SlowCall {
	entries := r.s.engine.Slow.Newest(most)
	calls := make([]report.SlowCall, len(entries))
	for i, e := range entries {
		calls[i] = report.SlowCall{ID: e.ID, At: e.At, Us: e.Took.Microseconds(), Addr: e.Addr, Name: report.Key(e.Name)}
		for _, a := range e.Args {
			calls[i].Args = append(calls[i].Args, report.Key(a))
		}
	}
	return calls
}

// May implements [report.Source]. It returns true if a selector of u permits the command with every
// first argument, regardless of keys. It returns false if the command does not exist.
func (r *reporting) May(u *acl.User, name string) bool {
	id, known := r.s.engine.Commands.Command(name)
	if !known {
		return false
	}
	for _, s := range u.Rules().Selectors() {
		if s.Command(id, nil) {
			return true
		}
	}
	return false
}

// executeTimeout is the maximum time that a command of the admin port may take.
const executeTimeout = 10 * time.Second

// Execute implements [report.Source]. After executeTimeout it returns [report.ErrTimeout].
func (r *reporting) Execute(u *acl.User, from string, db int, args [][]byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), executeTimeout)
	defer cancel()
	addr, err := net.ResolveTCPAddr("tcp", from)
	if err != nil {
		addr = &net.TCPAddr{}
	}
	reply, err := r.s.engine.Execute(ctx, u, addr, db, args)
	switch {
	case errors.Is(err, session.ErrWaits):
		return nil, report.ErrWaits
	case errors.Is(err, session.ErrNeedsConnection):
		return nil, report.ErrNeedsConnection
	case errors.Is(err, session.ErrNoReply):
		return nil, report.ErrNoReply
	case errors.Is(err, session.ErrReplyTooLong):
		return nil, report.ErrReplyTooLong
	case errors.Is(err, session.ErrStopping):
		return nil, report.ErrStopping
	case err != nil:
		return nil, report.ErrTimeout
	}
	return reply, nil
}
