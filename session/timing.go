package session

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/stats"
)

// paceOf returns the pace of the next calls of a command, of which there has been none if it is
// the first.
func (l *Worker) paceOf(cmd *command.Command, first bool) pace {
	p := l.paces[cmd.ID]
	if first || p == byWork && l.Volatile { // a script may run for any time between two readings
		return eachCall
	}
	return p
}

// untimed reports whether the running call is one that is not to be timed, since a sample is.
func (l *Worker) untimed() bool {
	if l.exact || l.pace == eachCall || l.sample <= 1 {
		return false
	}
	l.sample--
	return true
}

// weight returns for how many calls the running one stands if it is timed, 0 if it is not
// to be timed.
func (l *Worker) weight(c *command.Call) int64 {
	if !l.exact && l.pace != eachCall {
		l.sample = sampleEvery
		return sampleEvery
	}
	first := l.pace == eachCall
	l.pace = l.paceOf(c.Cmd, false)
	if first || l.pace != sampled || !c.Volatile || l.everyCall() { // a script may call thousands
		return 1
	}
	if l.sample--; l.sample > 0 {
		return 0
	}
	l.sample = sampleEvery
	return sampleEvery
}

// everyCall reports whether a bound is so low that every call is timed.
func (l *Worker) everyCall() bool { return l.Server.Limits().Observing.EveryCall() }

// runByWork runs a call that is not to be timed if it is brief. If it turns out not to be, it
// has taken the time since the last reading, from which only brief calls separate it.
func (l *Worker) runByWork(c *command.Call, run func(c *command.Call)) {
	if len(c.Args) > briefWork {
		l.runTimed(c, run, 1)
		return
	}
	cmd, args, work := c.Cmd, c.Args, l.Work
	run(c)
	if l.Work-work <= briefWork && sessionOf(c.Client).wait.Load() == nil {
		return
	}
	began := l.last
	l.last = l.Server.Options.Stopwatch()
	l.noteRun(c, cmd, args, l.last-began, 1)
}

// runWeighed runs a call that may have to be timed.
func (l *Worker) runWeighed(c *command.Call, run func(c *command.Call)) {
	if calls := l.weight(c); calls > 0 {
		l.runTimed(c, run, calls)
		return
	}
	run(c)
}

// runTimed runs a call that stands for so many, and notes how long it took.
func (l *Worker) runTimed(c *command.Call, run func(c *command.Call), calls int64) {
	cmd, args, slots, work := c.Cmd, c.Args, 0, l.Work
	if l.flight != nil {
		slots = len(l.flight.slots)
	}
	began := l.Server.Options.Stopwatch()
	l.last = began
	run(c)
	l.last = l.Server.Options.Stopwatch()
	d := l.last - began
	if f := l.flight; f != nil && len(f.slots) > slots && !l.WorldBusy {
		a := &f.slots[len(f.slots)-1]
		a.calls, a.took = calls, d
		return
	}
	if l.Work-work > briefWork {
		calls = 1 // the others are not like it
	}
	l.noteRun(c, cmd, args, d, calls)
}

// noteRun notes how long a call has run that stands for so many. If it waits, or goes on
// elsewhere, that is noted when it is answered: see [Session.resume].
func (l *Worker) noteRun(c *command.Call, cmd *command.Command, args [][]byte, d time.Duration, calls int64) {
	if l.WorldBusy {
		return // it has yet to begin
	}
	if p := sessionOf(c.Client).wait.Load(); p != nil && p.Render == nil {
		l.keepCall(p, cmd, args, d)
		return
	}
	l.note(c.Client, cmd, args, d, calls)
}

// runMonitored runs a call while somebody monitors. Those that a script makes come behind the
// script, as in Redis.
func (l *Worker) runMonitored(c *command.Call, run func(c *command.Call)) {
	const calls = 1
	cmd := c.Cmd
	if cmd.Flags&command.FlagAdmin != 0 {
		l.runTimed(c, run, calls)
		return
	}
	words, mark := stats.Words(cmd.Shown(c.Args)), l.Lines.Size()
	if cmd.RunsScript() {
		l.monitored(c, words)
		if l.runTimed(c, run, calls); l.WorldBusy {
			l.Lines.Cut(mark) // it has yet to run
		}
		return
	}
	l.runTimed(c, run, calls)
	if !l.WorldBusy {
		l.monitored(c, words)
	}
}

// monitored keeps a command for those who monitor.
func (l *Worker) monitored(c *command.Call, words []byte) {
	from := stats.Source{At: int64(l.Store.Civil(l.Store.Now())) / int64(time.Microsecond), DB: c.Client.Selected(), Addr: "lua"}
	if !c.Volatile {
		from.Addr = source(c.Client)
	}
	l.Lines.Add(from, words)
}

// source is where MONITOR says that the commands of a client come from.
func source(cl *command.Client) string {
	if a := cl.Peer.RemoteAddr(); a != nil && a.Network() == "unix" {
		return "unix:" + cl.Peer.LocalAddr().String()
	}
	return cl.Addr()
}

// keepCall keeps what has to be known of a call that is answered later.
func (l *Worker) keepCall(p *command.Wait, cmd *command.Command, args [][]byte, d time.Duration) {
	p.Took.Add(int64(d))
	p.Counted = true
	o := &l.Server.Limits().Observing
	if o.Least() <= d || p.OnTimeout == nil && o.SlowerThan >= 0 {
		p.Words = stats.CutArgs(cmd.Shown(args))
	}
}

// note counts how long a call took that stands for so many, and what is more than a number.
// args is nil if they are gone.
func (l *Worker) note(cl *command.Client, cmd *command.Command, args [][]byte, d time.Duration, calls int64) {
	o := &l.Server.Limits().Observing
	n := &l.counts[cmd.ID]
	n.Observe(d, calls)
	if o.Histograms {
		n.Histogram().Add(d, calls)
	}
	if d < o.Least() {
		return
	}
	l.noted = true
	words := []string{cmd.Name}
	if args != nil {
		words = stats.CutArgs(cmd.Shown(args))
	}
	noteSlow(l.Server, cl, cmd, words, d)
}

// noteAnswered is note for a call that has waited, or has gone on elsewhere.
func (l *Worker) noteAnswered(p *command.Wait) {
	if !p.Counted {
		return
	}
	d, o := time.Duration(p.Took.Load()), &l.Server.Limits().Observing
	n := &l.counts[p.Cmd.ID]
	n.Observe(d, 1)
	if o.Histograms {
		n.Histogram().Add(d, 1)
	}
	if d >= o.Least() {
		noteSlow(l.Server, p.Client, p.Cmd, p.Words, d)
	}
}

// Timed implements [command.Host].
func (e *Engine) Timed(c *command.Call, f func(c *command.Call)) {
	began := c.Server.Options.Stopwatch()
	f(c)
	if of := c.Client.ProxyOf; of != nil {
		if p := sessionOf(of).wait.Load(); p != nil {
			p.Took.Add(int64(c.Server.Options.Stopwatch() - began))
		}
	}
}

// beginGroup notes the commands that have been split. If not each of them is timed, all
// together are.
func (l *Worker) beginGroup() {
	n := len(l.requests)
	l.exact, l.noted, l.ran = n <= exactCommands, false, 0
	if o := &l.Server.Limits().Observing; !l.exact {
		if o.EveryCall() {
			l.exact = true
		} else if l.groupBegan == 0 {
			l.groupBegan = l.Server.Options.Stopwatch()
			l.last = l.groupBegan
		}
	} else {
		l.groupBegan = 0
	}
}

// endGroup looks at how long the commands took that have been split. A group that took longer
// than one call may is noted as its costliest command, unless a call was noted by itself.
func (l *Worker) endGroup(s *Session) {
	if l.groupBegan == 0 {
		return
	}
	least := l.Server.Limits().Observing.Least()
	if least == math.MaxInt64 { // nobody wants to know
		l.groupBegan = 0
		return
	}
	now := l.Server.Options.Stopwatch()
	d := now - l.groupBegan
	l.groupBegan, l.last = now, now
	if d < least || l.noted {
		return
	}
	var costliest *request
	most := -1
	for i := range l.requests[:min(l.ran, len(l.requests))] {
		a := &l.requests[i]
		if a.cmd == nil || len(a.args) == 0 {
			continue
		}
		if units := command.Units(len(a.args), a.size); units > most {
			costliest, most = a, units
		}
	}
	if costliest != nil {
		cmd := resolve(costliest.cmd, costliest.args)
		noteSlow(l.Server, &s.Client, cmd, stats.CutArgs(cmd.Shown(costliest.args)), d)
	}
}

// Durations implements [command.Host].
func (e *Engine) Durations(id int) (d stats.Distribution, calls int64) {
	e.workersMu.Lock()
	defer e.workersMu.Unlock()
	for _, l := range e.everyWorker {
		l.counts[id].AddTo(&d)
		calls += l.counts[id].Calls.Load()
	}
	return d, calls
}

// ClassDurations implements [command.Host].
func (e *Engine) ClassDurations(class stats.Class) (d stats.Distribution) {
	e.workersMu.Lock()
	defer e.workersMu.Unlock()
	for _, l := range e.everyWorker {
		for id, cmd := range e.Commands.Entries {
			if cmd.Class == class {
				l.counts[id].AddTo(&d)
			}
		}
	}
	return d
}

// noteSlow enters a call that took d into SLOWLOG and LATENCY, whichever it took long enough
// for. words are those that SLOWLOG shows. Any goroutine may call it.
func noteSlow(s *command.Server, cl *command.Client, cmd *command.Command, words []string, d time.Duration) {
	at, o := s.CivilMillis(), &s.Limits().Observing
	if o.SlowerThan >= 0 && d >= o.SlowerThan && cmd.Flags&command.FlagSkipSlowlog == 0 {
		s.Slow.Add(stats.SlowEntry{At: at, Took: d, Args: words, Addr: cl.Addr(), Name: cl.Name()})
	}
	event := stats.CommandEvent
	if cmd.Class == stats.Fast {
		event = stats.FastCommandEvent
	}
	s.Events.Note(event, d, at/1000)
	if cmd.Class == stats.Script {
		s.Events.Note(stats.ScriptEvent, d, at/1000)
	}
}

// resolve returns the command that a call of a container is about, or c.
func resolve(c *command.Command, args [][]byte) *command.Command {
	if c.Sub != nil && len(args) > 1 {
		if sub := c.Subcommand(args[1]); sub != nil {
			return sub
		}
	}
	return c
}
