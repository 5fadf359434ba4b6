package session

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/stats"
)

// paceOf returns the pace of the next calls of cmd. first says that no call of cmd has been timed
// by this worker yet; then the pace is eachCall. In a script, a pace of byWork is also eachCall.
func (w *Worker) paceOf(cmd *command.Command, first bool) pace {
	p := w.paces[cmd.ID]
	if first || p == byWork && w.Volatile { // a script may run for any time between two readings of the clock
		return eachCall
	}
	return p
}

// untimed reports whether only a sample of calls is timed and the running call is not in it. It
// then advances the sample.
func (w *Worker) untimed() bool {
	if w.exact || w.pace == eachCall || w.sample <= 1 {
		return false
	}
	w.sample--
	return true
}

// weight returns the number of calls that the running call represents if it is timed, 0 if it is
// not timed. It advances the sample, and sets the pace of the next calls.
func (w *Worker) weight(c *command.Call) int64 {
	if !w.exact && w.pace != eachCall {
		w.sample = sampleEvery
		return sampleEvery
	}
	first := w.pace == eachCall
	w.pace = w.paceOf(c.Cmd, false)
	if first || w.pace != sampled || !c.Volatile || w.everyCall() { // a script may call thousands of commands, so not each of them is timed
		return 1
	}
	if w.sample--; w.sample > 0 {
		return 0
	}
	w.sample = sampleEvery
	return sampleEvery
}

// everyCall reports whether a threshold, such as that of SLOWLOG, is so low that every call is
// timed.
func (w *Worker) everyCall() bool { return w.Server.Limits().Observing.EveryCall() }

// runByWork runs a call and records its duration only if the call was not brief. The duration of
// a call that was not brief is the time since the last clock reading, because only brief calls
// came in between. A call with many arguments is always timed.
func (w *Worker) runByWork(c *command.Call, run func(c *command.Call)) {
	if len(c.Args) > briefWork {
		w.runTimed(c, run, 1)
		return
	}
	cmd, args, work := c.Cmd, c.Args, w.Work
	run(c)
	if w.Work-work <= briefWork && sessionOf(c.Client).wait.Load() == nil {
		return
	}
	began := w.last
	w.last = w.Server.Options.Stopwatch()
	w.noteRun(c, cmd, args, w.last-began, 1)
}

func (w *Worker) runWeighed(c *command.Call, run func(c *command.Call)) {
	if calls := w.weight(c); calls > 0 {
		w.runTimed(c, run, calls)
		return
	}
	run(c)
}

// runTimed runs a call and records its duration. The call represents as many calls as the
// parameter calls says. If the call has added asks to a flight, the duration is kept in the slot
// until the reply is written.
func (w *Worker) runTimed(c *command.Call, run func(c *command.Call), calls int64) {
	cmd, args, slots, work := c.Cmd, c.Args, 0, w.Work
	if w.flight != nil {
		slots = len(w.flight.slots)
	}
	began := w.Server.Options.Stopwatch()
	w.last = began
	run(c)
	w.last = w.Server.Options.Stopwatch()
	d := w.last - began
	if f := w.flight; f != nil && len(f.slots) > slots && !w.WorldBusy {
		a := &f.slots[len(f.slots)-1]
		a.calls, a.took = calls, d
		return
	}
	if w.Work-work > briefWork {
		calls = 1 // the calls that this one would represent take less time
	}
	w.noteRun(c, cmd, args, d, calls)
}

// noteRun records the duration d of a call that represents as many calls as the parameter calls
// says. If the call waits or has left its event loop, the duration is recorded when it is
// answered: see [Session.resume].
func (w *Worker) noteRun(c *command.Call, cmd *command.Command, args [][]byte, d time.Duration, calls int64) {
	if w.WorldBusy {
		return // the call has not begun to run yet
	}
	if p := sessionOf(c.Client).wait.Load(); p != nil && p.Render == nil {
		w.keepCall(p, cmd, args, d)
		return
	}
	w.note(c.Client, cmd, args, d, calls)
}

// runMonitored runs and times a call while there are MONITOR clients, and records it for them.
// Administrative commands are not recorded. The calls of a script are listed after the script, as
// in Redis.
func (w *Worker) runMonitored(c *command.Call, run func(c *command.Call)) {
	const calls = 1
	cmd := c.Cmd
	if cmd.Flags&command.FlagAdmin != 0 {
		w.runTimed(c, run, calls)
		return
	}
	words, mark := stats.Words(cmd.Shown(c.Args)), w.Lines.Size()
	if cmd.RunsScript() {
		w.monitored(c, words)
		if w.runTimed(c, run, calls); w.WorldBusy {
			w.Lines.Cut(mark) // the call has not run, so its line is removed
		}
		return
	}
	w.runTimed(c, run, calls)
	if !w.WorldBusy {
		w.monitored(c, words)
	}
}

// monitored records a command with its arguments words for MONITOR clients. A command that a
// script has called has the address "lua".
func (w *Worker) monitored(c *command.Call, words []byte) {
	from := stats.Source{At: int64(w.Store.Civil(w.Store.Now())) / int64(time.Microsecond), DB: c.Client.Selected(), Addr: "lua"}
	if !c.Volatile {
		from.Addr = source(c.Client)
	}
	w.Lines.Add(from, words)
}

// source returns the address that MONITOR shows for the client cl: "unix:" and the path of the
// socket for a client of a Unix socket, the address of the client for any other.
func source(cl *command.Client) string {
	if a := cl.Peer.RemoteAddr(); a != nil && a.Network() == "unix" {
		return "unix:" + cl.Peer.LocalAddr().String()
	}
	return cl.Addr()
}

// keepCall keeps in p what is needed to record a call when it is answered: its duration d so far,
// and its arguments if SLOWLOG or LATENCY may need them.
func (w *Worker) keepCall(p *command.Wait, cmd *command.Command, args [][]byte, d time.Duration) {
	p.Took.Add(int64(d))
	p.Counted = true
	o := &w.Server.Limits().Observing
	if o.Least() <= d || p.OnTimeout == nil && o.SlowerThan >= 0 {
		p.Words = stats.CutArgs(cmd.Shown(args))
	}
}

// note records the duration d of a call that represents as many calls as the parameter calls
// says, and adds a slow call to SLOWLOG and LATENCY. args is nil if the arguments are no longer
// available.
func (w *Worker) note(cl *command.Client, cmd *command.Command, args [][]byte, d time.Duration, calls int64) {
	o := &w.Server.Limits().Observing
	n := &w.counts[cmd.ID]
	n.Observe(d, calls)
	if o.Histograms {
		n.Histogram().Add(d, calls)
	}
	if d < o.Least() {
		return
	}
	w.noted = true
	words := []string{cmd.Name}
	if args != nil {
		words = stats.CutArgs(cmd.Shown(args))
	}
	noteSlow(w.Server, cl, cmd, words, d)
}

// noteAnswered records the duration of the call of p, which has waited or has left its event
// loop, as note does for other calls. It does nothing if the call is not timed.
func (w *Worker) noteAnswered(p *command.Wait) {
	if !p.Counted {
		return
	}
	d, o := time.Duration(p.Took.Load()), &w.Server.Limits().Observing
	n := &w.counts[p.Cmd.ID]
	n.Observe(d, 1)
	if o.Histograms {
		n.Histogram().Add(d, 1)
	}
	if d >= o.Least() {
		noteSlow(w.Server, p.Client, p.Cmd, p.Words, d)
	}
}

// Timed implements [command.Work]: it runs f, the rest of a command that has left its event loop,
// and adds the duration of f to the duration of the command.
func (e *Engine) Timed(c *command.Call, f func(c *command.Call)) {
	began := c.Server.Options.Stopwatch()
	f(c)
	if of := c.Client.ProxyOf; of != nil {
		if p := sessionOf(of).wait.Load(); p != nil {
			p.Took.Add(int64(c.Server.Options.Stopwatch() - began))
		}
	}
}

// beginGroup starts a group of commands that were split off together. If the commands are not
// each timed, the group is timed as a whole.
func (w *Worker) beginGroup() {
	n := len(w.requests)
	w.exact, w.noted, w.ran = n <= exactCommands, false, 0
	if o := &w.Server.Limits().Observing; !w.exact {
		if o.EveryCall() {
			w.exact = true
		} else if w.groupBegan == 0 {
			w.groupBegan = w.Server.Options.Stopwatch()
			w.last = w.groupBegan
		}
	} else {
		w.groupBegan = 0
	}
}

// endGroup checks the duration of the current group. If the group took at least as long as the
// threshold of one call, the group's most expensive command is logged as slow with that duration,
// unless a call of the group was logged itself.
func (w *Worker) endGroup(s *Session) {
	if w.groupBegan == 0 {
		return
	}
	least := w.Server.Limits().Observing.Least()
	if least == math.MaxInt64 { // all thresholds are off
		w.groupBegan = 0
		return
	}
	now := w.Server.Options.Stopwatch()
	d := now - w.groupBegan
	w.groupBegan, w.last = now, now
	if d < least || w.noted {
		return
	}
	var costliest *request
	most := -1
	for i := range w.requests[:min(w.ran, len(w.requests))] {
		a := &w.requests[i]
		if a.cmd == nil || len(a.args) == 0 {
			continue
		}
		if units := command.Units(len(a.args), a.size); units > most {
			costliest, most = a, units
		}
	}
	if costliest != nil {
		cmd := resolve(costliest.cmd, costliest.args)
		noteSlow(w.Server, &s.Client, cmd, stats.CutArgs(cmd.Shown(costliest.args)), d)
	}
}

// Durations implements [command.Measures]: it returns the distribution of the durations of timed
// calls of the command with that id, and the number of all its calls.
func (e *Engine) Durations(id int) (d stats.Distribution, calls int64) {
	e.workersMu.Lock()
	defer e.workersMu.Unlock()
	for _, w := range e.everyWorker {
		w.counts[id].AddTo(&d)
		calls += w.counts[id].Calls.Load()
	}
	return d, calls
}

// ClassDurations returns the distribution of the durations of timed calls of all commands of a
// class.
func (e *Engine) ClassDurations(class stats.Class) (d stats.Distribution) {
	e.workersMu.Lock()
	defer e.workersMu.Unlock()
	for _, w := range e.everyWorker {
		for id, cmd := range e.Commands.Entries {
			if cmd.Class == class {
				w.counts[id].AddTo(&d)
			}
		}
	}
	return d
}

// noteSlow adds a call that took d to SLOWLOG and to LATENCY, if d reaches their thresholds.
// SLOWLOG leaves out commands with FlagSkipSlowlog. words are the arguments that SLOWLOG shows. Any
// goroutine may call it.
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

func resolve(c *command.Command, args [][]byte) *command.Command {
	if c.Sub != nil && len(args) > 1 {
		if sub := c.Subcommand(args[1]); sub != nil {
			return sub
		}
	}
	return c
}
