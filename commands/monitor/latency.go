package monitor

import (
	"math"
	"strings"
	"time"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

func latencyCommand() *command.Command {
	return &command.Command{
		Name: "latency", Arity: -2, Group: "server", Summary: "A container for latency diagnostics commands.", Since: "1.0.0",
		Sub: command.Entries(command.Defaults{Group: "server", Since: "1.0.0", Complexity: "O(1)"}, []*command.Command{
			{
				Name: "latency|doctor", Arity: 2, Flags: calm,
				Summary: "Says in words what took long, and what may help.", Reply: "text",
				Run: func(c *command.Call) {
					c.W.Verbatim("txt", diagnose(c.Server.Events.All(), c.Server.Events.Threshold()))
				},
			},
			{
				Name: "latency|graph", Arity: 3, Flags: calm,
				Summary: "Draws the samples of an event.", Syntax: "event", Reply: "text", Run: latencyGraph,
			},
			{
				Name: "latency|histogram", Arity: -2, Flags: calm,
				Summary: "Returns how many calls of commands took less than a time.", Syntax: "[command [command ...]]",
				Reply: "a map by command: calls, and how many of them took up to so many microseconds", Run: latencyHistogram, WordWork: 50,
			},
			{
				Name: "latency|history", Arity: 3, Flags: calm,
				Summary: "Returns the samples of an event, one a second at most.", Syntax: "event",
				Reply: "an array of pairs: Unix time and milliseconds", Run: latencyHistory,
			},
			{
				Name: "latency|latest", Arity: 2, Flags: calm,
				Summary: "Returns the latest samples of all events.",
				Reply:   "an array of entries: event, Unix time, milliseconds, the most ever", Run: latencyLatest,
			},
			{
				Name: "latency|reset", Arity: -2, Flags: calm,
				Summary: "Forgets the samples of events, or of all.", Syntax: "[event [event ...]]", Reply: "how many events had samples",
				Run: latencyReset,
			},
		}),
	}
}

// eventOf returns the event called word, in any case, and whether there is such an event.
func eventOf(word []byte) (stats.Event, bool) { return stats.EventNamed(strings.ToLower(string(word))) }

func latencyHistory(c *command.Call) {
	var s stats.Samples
	if e, ok := eventOf(c.Args[2]); ok {
		s, _ = c.Server.Events.Of(e)
	}
	c.W.Array(len(s.List))
	for _, at := range s.List {
		c.W.Array(2)
		c.W.Int(at.At)
		c.W.Int(at.Took)
	}
}

func latencyLatest(c *command.Call) {
	all := c.Server.Events.All()
	c.W.Array(len(all))
	for _, s := range all {
		latest := s.List[len(s.List)-1]
		c.W.Array(4)
		c.W.BulkString(s.Event.String())
		c.W.Int(latest.At)
		c.W.Int(latest.Took)
		c.W.Int(s.Worst)
	}
}

func latencyReset(c *command.Call) {
	if len(c.Args) == 2 {
		c.W.Int(int64(c.Server.Events.ResetAll()))
		return
	}
	n := int64(0)
	for _, word := range c.Args[2:] {
		if e, ok := eventOf(word); ok && c.Server.Events.Reset(e) {
			n++
		}
	}
	c.W.Int(n)
}

func latencyGraph(c *command.Call) {
	var s stats.Samples
	e, ok := eventOf(c.Args[2])
	if ok {
		s, ok = c.Server.Events.Of(e)
	}
	if !ok {
		c.Fail(resp.Error("ERR No samples available for event '" + string(command.Echo(c.Args[2], command.MaxEcho)) + "'"))
		return
	}
	c.W.Verbatim("txt", graph(&s, c.Server.CivilMillis()/1000))
}

// called is a command with the number of all its calls, and with the distribution of the durations
// of those calls that were timed.
type called struct {
	cmd   *command.Command
	took  stats.Distribution
	calls int64
}

// latencyHistogram is the Run function of LATENCY HISTOGRAM. Without names it shows all commands;
// the name of a container also stands for its subcommands. It leaves out unknown names and commands
// without timed calls.
func latencyHistogram(c *command.Call) {
	var asked []*command.Command
	seen := make(map[*command.Command]bool)
	ask := func(cmd *command.Command) {
		if !seen[cmd] {
			seen[cmd] = true
			asked = append(asked, cmd)
		}
	}
	t := c.Server.Commands
	if len(c.Args) == 2 {
		asked = t.Entries
	}
	for _, name := range c.Args[2:] {
		container, sub, is := strings.Cut(string(name), "|")
		cmd := t.Lookup([]byte(container))
		if cmd != nil && is {
			cmd = cmd.Subcommand([]byte(sub))
		}
		if cmd == nil {
			continue
		}
		ask(cmd)
		for _, s := range cmd.Sub {
			ask(s)
		}
	}
	var all []called
	for _, cmd := range asked {
		if took, calls := c.Server.Host.Measures.Durations(cmd.ID); took.Calls > 0 {
			all = append(all, called{cmd, took, max(calls, 1)})
		}
	}
	c.W.Map(len(all))
	for i := range all {
		all[i].write(c.W)
	}
}

// leastBound is the first bound of LATENCY HISTOGRAM, which the reply shows as one microsecond.
const leastBound = 1024 * time.Nanosecond

// mostBound is the last bound of LATENCY HISTOGRAM with a measured number of calls, about 17 s. The
// bound after it includes all longer calls.
const mostBound = leastBound << 24

// write writes the number of calls and the histogram of the command. Not all pipelined calls are
// timed, so the counts are scaled up to all calls. As in Redis each bound is twice the one before
// it, and a bound is left out if no calls are between it and the one before it.
func (h *called) write(w *resp.Writer) {
	w.BulkString(h.cmd.Name)
	w.Map(2)
	w.BulkString("calls")
	w.Int(h.calls)
	w.BulkString("histogram_usec")
	var bounds []int64
	scale, last, shown := float64(h.calls)/float64(h.took.Calls), int64(0), int64(0)
	for bound := leastBound; last < h.took.Calls; bound *= 2 {
		if last = h.took.Below(bound); bound > mostBound {
			last = h.took.Calls
		}
		if n := int64(math.Ceil(float64(last) * scale)); n > shown {
			bounds = append(bounds, int64(bound/1000), n)
			shown = n
		}
	}
	w.Map(len(bounds) / 2)
	for _, n := range bounds {
		w.Int(n)
	}
}
