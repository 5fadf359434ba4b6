package admin

import (
	"slices"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

// Group returns the commands for operators.
func Group() command.Group {
	names := new(optionNames)
	return command.Group{
		Commands: slices.Concat(
			command.With(command.FlagLocal, introspectCommands()...),
			command.With(command.FlagLocal|command.FlagFence, slices.Concat(infoCommands(), configCommands(names))...),
			command.With(command.FlagLocal, slices.Concat(commands(), clusterCommands())...),
			saveCommands(), []*command.Command{objectCommand(), memoryCommand(), reportCommand()},
		),
		Server: func(s *command.Server, _ command.Slot) (any, command.Hooks) {
			names.settings = s.Options.Settings
			return new(highest), command.Hooks{}
		},
	}
}

func commands() []*command.Command {
	const calm = command.FlagNoScript | command.FlagLoading | command.FlagStale
	return []*command.Command{
		{
			Name: "time", Arity: 1, Flags: command.FlagLoading | command.FlagStale | command.FlagFast, Group: "server",
			Summary: "Returns the server time.",
			Since:   "1.0.0", Complexity: "O(1)", Reply: "Unix seconds and the microseconds in them", Run: timeCommand,
		},
		{
			Name: "shutdown", Arity: -1, Flags: command.FlagAdmin | command.FlagAudit | command.FlagNoMulti | calm | command.FlagAllowBusy | command.FlagFence, Group: "server",
			Summary: "Stops the server after the batches in flight.", Syntax: "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
			Since: "1.0.0", Complexity: "O(1)", Reply: "nothing: the connection closes", Run: shutdown,
		},
		moduleCommand(),
	}
}

func moduleCommand() *command.Command {
	return &command.Command{
		Name: "module", Arity: -2, Group: "server", Summary: "A container for module commands.", Since: "1.0.0",
		Sub: []*command.Command{
			command.Subcommand("module", "list", 2, command.FlagNoScript, "", "Lists redis-cell, whose command is built in.", "an array of maps",
				func(c *command.Call) { command.WriteModules(c.W) }),
		},
	}
}

func objectCommand() *command.Command {
	keyed := func(name, summary, reply string, run func(*command.Call)) *command.Command {
		cmd := command.Subcommand("object", name, 3, command.FlagReadonly, "key", summary, reply, run)
		cmd.Keys, cmd.Categories, cmd.Group = command.KeySpec{First: 2, Last: 2, Step: 1, Use: command.UsesNothing}, command.CatKeyspace, "generic"
		return cmd
	}
	return &command.Command{
		Name: "object", Arity: -2, Group: "generic", Summary: "A container for object introspection commands.", Since: "1.0.0",
		Sub: []*command.Command{
			keyed("encoding", "Returns how a value is stored.", "embstr for CL.THROTTLE keys, the mode for other limiters, or null", objectEncoding),
			keyed("freq", "Replies that no access frequency is kept.", "an error", objectFreq),
			keyed("idletime", "Replies with 0: no idle time is kept.", "0, or null", func(c *command.Call) { objectNumber(c, 0) }),
			keyed("refcount", "Returns the reference count of a value.", "1, or null", func(c *command.Call) { objectNumber(c, 1) }),
		},
	}
}

func objectEncoding(c *command.Call) {
	encoding, ok := c.Store.Encoding(c.Client.Selected(), c.Args[2])
	if !ok {
		c.W.Null()
		return
	}
	c.W.BulkString(encoding)
}

func objectNumber(c *command.Call, n int64) {
	if !c.Store.Exists(c.Client.Selected(), c.Args[2]) {
		c.W.Null()
		return
	}
	c.W.Int(n)
}

func objectFreq(c *command.Call) {
	if !c.Store.Exists(c.Client.Selected(), c.Args[2]) {
		c.W.Null()
		return
	}
	c.Fail("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
}

func memoryCommand() *command.Command {
	usage := command.Subcommand("memory", "usage", -3, command.FlagReadonly, "key [SAMPLES count]", "Returns the memory of a key in bytes.", "bytes, or null", memoryUsage)
	usage.Keys = command.KeySpec{First: 2, Last: 2, Step: 1, Use: command.UsesNothing}
	return &command.Command{
		Name: "memory", Arity: -2, Group: "server", Summary: "A container for memory diagnostics commands.", Since: "1.0.0",
		Sub: []*command.Command{
			command.Subcommand("memory", "doctor", 2, command.FlagLocal, "", "Says whether memory use looks sound.", "text",
				func(c *command.Call) {
					c.W.Verbatim("txt", "Nothing to report: limiter states are small and expire by themselves.\n")
				}),
			command.Subcommand("memory", "purge", 2, command.FlagLocal, "", "Requests the return of unused memory, which also happens by itself.", "OK", (*command.Call).OK),
			command.Subcommand("memory", "stats", 2, command.FlagLocal, "", "Returns how memory is used.", "a map of fields", memoryStats),
			usage,
		},
	}
}

// memoryStats replies with the parts of memory that can be told apart: the keys, the rest of the
// Go heap, and the data that waits to be sent to clients.
func memoryStats(c *command.Call) {
	p := c.Server.Process()
	rss, heap := p.Memory()
	store := c.Store.Stats()
	used, keys := store.Memory, int64(0)
	for _, db := range store.Databases {
		keys += db.Keys
	}
	fields := []struct {
		name  string
		value int64
	}{
		{"total.allocated", used.Used(heap)},
		{"dataset.bytes", used.Dataset},
		{"keys.count", keys},
		{"keys.bytes-per-key", used.Dataset / max(1, keys)},
		{"overhead.total", used.Used(heap) - used.Dataset},
		{"clients.normal", p.Network().Pending},
		{"allocator.resident", rss},
	}
	c.W.Map(len(fields))
	for _, f := range fields {
		c.W.BulkString(f.name)
		c.W.Int(f.value)
	}
}

func memoryUsage(c *command.Call) {
	for rest := c.Args[3:]; len(rest) > 0; rest = rest[2:] {
		if len(rest) < 2 || !arg.IsWord(rest[0], "SAMPLES") {
			c.Fail(resp.ErrSyntax)
			return
		}
		n, ok := arg.Int(rest[1])
		if !ok {
			c.Fail(resp.ErrNotInteger)
			return
		}
		if n < 0 {
			c.Fail(resp.ErrSyntax)
			return
		}
	}
	bytes, ok := c.Store.MemoryUsage(c.Client.Selected(), c.Args[2])
	if !ok {
		c.W.Null()
		return
	}
	c.W.Int(bytes)
}

// timeCommand replies with wall-clock time, because clients compare it with their own clocks.
func timeCommand(c *command.Call) {
	us := int64(c.Store.Civil(c.Store.Now())) / int64(time.Microsecond)
	c.W.Array(2)
	c.W.BulkString(strconv.FormatInt(us/1e6, 10))
	c.W.BulkString(strconv.FormatInt(us%1e6, 10))
}

// shutdown stops the server after the clients have been served.
func shutdown(c *command.Call) {
	var save, noSave, abort bool
	for _, a := range c.Args[1:] {
		switch {
		case arg.IsWord(a, "SAVE"):
			save = true
		case arg.IsWord(a, "NOSAVE"):
			noSave = true
		case arg.IsWord(a, "ABORT"):
			abort = true
		case !arg.IsWord(a, "NOW") && !arg.IsWord(a, "FORCE"):
			c.Fail(resp.ErrSyntax)
			return
		}
	}
	switch {
	case save && noSave, abort && len(c.Args) > 2:
		c.Fail(resp.ErrSyntax)
		return
	case abort:
		c.Fail("ERR No shutdown in progress.")
		return
	}
	c.Client.Closing = true
	mode := env.StopAsConfigured
	if save {
		mode = env.StopSaving
	} else if noSave {
		mode = env.StopWithoutSaving
	}
	if c.Busy {
		c.Server.Host.EndExclusive(c.Client)
	}
	if c.Server.Options.Stop != nil {
		c.Server.Options.Stop(mode)
	}
}
