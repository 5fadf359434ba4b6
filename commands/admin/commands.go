package admin

import (
	"slices"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

// store is the part of the store that OBJECT and MEMORY USAGE use.
type store interface {
	env.Store
	env.Keys
	env.Inspector
}

// storeCall is a call of OBJECT or MEMORY USAGE.
type storeCall = command.CallOn[store]

// Group returns the command group for operators: INFO, CONFIG, COMMAND, SAVE, SHUTDOWN, CLUSTER,
// OBJECT, MEMORY, RL.REPORT and others.
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
	return command.Entries(command.Defaults{Group: "server", Since: "1.0.0", Complexity: "O(1)"}, []*command.Command{
		{
			Name: "time", Arity: 1, Flags: command.FlagLoading | command.FlagStale | command.FlagFast,
			Summary: "Returns the server time.", Reply: "Unix seconds and the microseconds in them", Run: timeCommand,
		},
		{
			Name: "shutdown", Arity: -1,
			Flags:   command.FlagAdmin | command.FlagAudit | command.FlagNoMulti | calm | command.FlagAllowBusy | command.FlagFence,
			Summary: "Stops the server after the batches in flight.", Syntax: "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
			Reply: "nothing: the connection closes", Run: shutdown,
			RunsBusy: func(args [][]byte) bool { return len(args) == 2 && arg.IsWord(args[1], "NOSAVE") },
		},
		moduleCommand(),
	})
}

func moduleCommand() *command.Command {
	return &command.Command{
		Name: "module", Arity: -2, Group: "server", Summary: "A container for module commands.", Since: "1.0.0",
		Sub: []*command.Command{
			{
				Name: "module|list", Arity: 2, Flags: command.FlagNoScript, Group: "server",
				Summary: "Lists redis-cell, whose command is built in.", Since: "1.0.0", Complexity: "O(1)", Reply: "an array of maps",
				Run: func(c *command.Call) { command.WriteModules(c.W) },
			},
		},
	}
}

func objectCommand() *command.Command {
	return &command.Command{
		Name: "object", Arity: -2, Group: "generic", Summary: "A container for object introspection commands.", Since: "1.0.0",
		Sub: command.Entries(command.Defaults{
			Keys: command.KeySpec{First: 2, Last: 2, Step: 1, Use: command.UsesNothing}, Categories: command.CatKeyspace, Group: "generic",
			Since: "1.0.0", Complexity: "O(1)",
		}, []*command.Command{
			{
				Name: "object|encoding", Arity: 3, Flags: command.FlagReadonly,
				Summary: "Returns how a value is stored.", Syntax: "key",
				Reply: "embstr for CL.THROTTLE keys, the mode for other limiters, or null", RunOn: command.On(objectEncoding),
			},
			{
				Name: "object|freq", Arity: 3, Flags: command.FlagReadonly,
				Summary: "Replies that no access frequency is kept.", Syntax: "key", Reply: "an error", RunOn: command.On(objectFreq),
			},
			{
				Name: "object|idletime", Arity: 3, Flags: command.FlagReadonly,
				Summary: "Replies with 0: no idle time is kept.", Syntax: "key", Reply: "0, or null",
				RunOn: command.On(func(c storeCall) { objectNumber(c, 0) }),
			},
			{
				Name: "object|refcount", Arity: 3, Flags: command.FlagReadonly,
				Summary: "Returns the reference count of a value.", Syntax: "key", Reply: "1, or null",
				RunOn: command.On(func(c storeCall) { objectNumber(c, 1) }),
			},
		}),
	}
}

func objectEncoding(c storeCall) {
	encoding, ok := c.Store.Encoding(c.Client.Selected(), c.Args[2])
	if !ok {
		c.W.Null()
		return
	}
	c.W.BulkString(encoding)
}

func objectNumber(c storeCall, n int64) {
	if !c.Store.Exists(c.Client.Selected(), c.Args[2]) {
		c.W.Null()
		return
	}
	c.W.Int(n)
}

func objectFreq(c storeCall) {
	if !c.Store.Exists(c.Client.Selected(), c.Args[2]) {
		c.W.Null()
		return
	}
	c.Fail("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
}

func memoryCommand() *command.Command {
	return &command.Command{
		Name: "memory", Arity: -2, Group: "server", Summary: "A container for memory diagnostics commands.", Since: "1.0.0",
		Sub: command.Entries(command.Defaults{Group: "server", Since: "1.0.0", Complexity: "O(1)"}, []*command.Command{
			{
				Name: "memory|doctor", Arity: 2, Flags: command.FlagLocal,
				Summary: "Says whether memory use looks sound.", Reply: "text",
				Run: func(c *command.Call) {
					c.W.Verbatim("txt", "Nothing to report: limiter states are small and expire by themselves.\n")
				},
			},
			{
				Name: "memory|purge", Arity: 2, Flags: command.FlagLocal,
				Summary: "Requests the return of unused memory, which also happens by itself.", Reply: "OK", Run: (*command.Call).OK,
			},
			{
				Name: "memory|stats", Arity: 2, Flags: command.FlagLocal | command.FlagAllShards,
				Summary: "Returns how memory is used.", Reply: "a map of fields", Run: memoryStats,
			},
			{
				Name: "memory|usage", Arity: -3, Flags: command.FlagReadonly,
				Keys:    command.KeySpec{First: 2, Last: 2, Step: 1, Use: command.UsesNothing},
				Summary: "Returns the memory of a key in bytes.", Syntax: "key [SAMPLES count]", Reply: "bytes, or null", RunOn: command.On(memoryUsage),
			},
		}),
	}
}

// memoryStats is the Run function of MEMORY STATS. It replies with the parts of memory that can be
// distinguished: the keys, the rest of the Go heap, and the data that waits to be sent to clients.
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

func memoryUsage(c storeCall) {
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

// timeCommand is the Run function of TIME. It replies with the time of the wall clock, because
// clients compare it with their own clocks.
func timeCommand(c *command.Call) {
	us := int64(c.Store.Civil(c.Store.Now())) / int64(time.Microsecond)
	c.W.Array(2)
	c.W.BulkString(strconv.FormatInt(us/1e6, 10))
	c.W.BulkString(strconv.FormatInt(us%1e6, 10))
}

// shutdown is the Run function of SHUTDOWN. It closes the client without a reply and has the server
// stop. With ABORT it fails, as in Redis without a shutdown in progress. While a script is busy,
// only SHUTDOWN NOSAVE can run; it ends the script first.
func shutdown(c *command.Call) {
	var save, noSave, abort, force bool
	for _, a := range c.Args[1:] {
		switch {
		case arg.IsWord(a, "SAVE"):
			save = true
		case arg.IsWord(a, "NOSAVE"):
			noSave = true
		case arg.IsWord(a, "ABORT"):
			abort = true
		case arg.IsWord(a, "FORCE"):
			force = true
		case !arg.IsWord(a, "NOW"):
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
	case save && !force && c.Server.Options.MoveClock != nil: // --store keeps all state in the store; a server with a manual clock is for tests and keeps nothing
		c.Fail(errNoPersistence)
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
		c.Server.Host.Exclusives.EndExclusive(c.Client)
	}
	if c.Server.Options.Stop != nil {
		c.Server.Options.Stop(mode)
	}
}
