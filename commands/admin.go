package commands

import (
	"strconv"
	"time"

	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/resp"
)

func adminCommands() []*Command {
	const calm = FlagNoScript | FlagLoading | FlagStale
	return []*Command{
		{
			Name: "time", Arity: 1, Flags: FlagLoading | FlagStale | FlagFast, Group: "server",
			Summary: "Returns the server time.",
			Since:   "1.0.0", Complexity: "O(1)", Reply: "Unix seconds and the microseconds in them", Run: timeCommand,
		},
		{
			Name: "role", Arity: 1, Flags: calm | FlagFast, Categories: CatAdmin | CatDangerous, Group: "server",
			Summary: "Returns the replication role.",
			Since:   "1.0.0", Complexity: "O(1)", Reply: "master, offset 0 and no replicas", Run: role,
		},
		{
			Name: "wait", Arity: 3, Flags: FlagBlocking, Categories: CatConnection, Group: "generic",
			Summary: "Waits for replicas; there are none, so it answers at once.", Syntax: "numreplicas timeout",
			Since: "1.0.0", Complexity: "O(1)", Reply: "0", Run: waitCommand,
		},
		{
			Name: "lolwut", Arity: -1, Flags: FlagReadonly | FlagFast, Group: "server",
			Summary: "Shows the version.", Syntax: "[VERSION version]",
			Since: "1.0.0", Complexity: "O(1)", Reply: "text", Run: lolwut,
		},
		{
			Name: "shutdown", Arity: -1, Flags: FlagAdmin | FlagAudit | FlagNoMulti | calm | FlagAllowBusy, Group: "server",
			Summary: "Stops the server after the batches in flight.", Syntax: "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
			Since: "1.0.0", Complexity: "O(1)", Reply: "nothing: the connection closes", Run: shutdown,
		},
		moduleCommand(), objectCommand(), memoryCommand(),
		slowlogCommand(), latencyCommand(), aclCommand(),
	}
}

// subcommand is an entry of a small container.
func subcommand(container, name string, arity int, flags Flag, syntax, summary, reply string, run func(*Ctx)) *Command {
	return &Command{
		Name: container + "|" + name, Arity: arity, Flags: flags, Group: "server", Summary: summary, Syntax: syntax,
		Since: "1.0.0", Complexity: "O(1)", Reply: reply, Run: run,
	}
}

func moduleCommand() *Command {
	return &Command{
		Name: "module", Arity: -2, Group: "server", Summary: "A container for module commands.", Since: "1.0.0",
		Sub: []*Command{
			subcommand("module", "list", 2, FlagNoScript, "", "Names redis-cell, whose command this server answers.", "an array of maps",
				func(c *Ctx) { writeModules(c.W) }),
		},
	}
}

func objectCommand() *Command {
	keyed := func(name, summary, reply string, run func(*Ctx)) *Command {
		cmd := subcommand("object", name, 3, FlagReadonly, "key", summary, reply, run)
		cmd.Keys, cmd.Categories, cmd.Group = KeySpec{First: 2, Last: 2, Step: 1}, CatKeyspace, "generic"
		return cmd
	}
	return &Command{
		Name: "object", Arity: -2, Group: "generic", Summary: "A container for object introspection commands.", Since: "1.0.0",
		Sub: []*Command{
			keyed("encoding", "Returns how a value is stored.", "embstr for CL.THROTTLE keys, the mode for other limiters, or null", objectEncoding),
			keyed("freq", "Says that no access frequency is kept.", "an error", objectFreq),
			keyed("idletime", "Says that no idle time is kept: every key counts as just used.", "0, or null", func(c *Ctx) { objectNumber(c, 0) }),
			keyed("refcount", "Returns the reference count of a value.", "1, or null", func(c *Ctx) { objectNumber(c, 1) }),
		},
	}
}

func objectEncoding(c *Ctx) {
	encoding, ok := c.Store.Encoding(c.Client.selected(), c.Args[2])
	if !ok {
		c.W.Null()
		return
	}
	c.W.BulkString(encoding)
}

func objectNumber(c *Ctx, n int64) {
	if !c.Store.Exists(c.Client.selected(), c.Args[2]) {
		c.W.Null()
		return
	}
	c.W.Int(n)
}

func objectFreq(c *Ctx) {
	if !c.Store.Exists(c.Client.selected(), c.Args[2]) {
		c.W.Null()
		return
	}
	c.Fail("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
}

func memoryCommand() *Command {
	usage := subcommand("memory", "usage", -3, FlagReadonly, "key [SAMPLES count]", "Returns the bytes that a key takes.", "bytes, or null", memoryUsage)
	usage.Keys = KeySpec{First: 2, Last: 2, Step: 1}
	return &Command{
		Name: "memory", Arity: -2, Group: "server", Summary: "A container for memory diagnostics commands.", Since: "1.0.0",
		Sub: []*Command{
			subcommand("memory", "doctor", 2, 0, "", "Says whether memory use looks sound.", "text",
				func(c *Ctx) {
					c.W.Verbatim("txt", "Nothing to report: limiter states are small and expire by themselves.\n")
				}),
			subcommand("memory", "purge", 2, 0, "", "Asks for unused memory to be returned; this happens by itself.", "OK", (*Ctx).OK),
			subcommand("memory", "stats", 2, 0, "", "Returns where memory goes.", "a map of fields", memoryStats),
			usage,
		},
	}
}

// memoryStats names what can be told apart: the keys, the Go heap beside them and
// what waits to be sent to clients.
func memoryStats(c *Ctx) {
	p := c.server.process()
	rss, heap := p.Memory()
	_, _, pending := p.Network()
	store := c.Store.Stats()
	used, keys := store.Memory, int64(0)
	for _, db := range store.Databases {
		keys += db.Keys
	}
	fields := []struct {
		name  string
		value int64
	}{
		{"total.allocated", used.used(heap)},
		{"dataset.bytes", used.Dataset},
		{"keys.count", keys},
		{"keys.bytes-per-key", used.Dataset / max(1, keys)},
		{"overhead.total", used.used(heap) - used.Dataset},
		{"clients.normal", pending},
		{"allocator.resident", rss},
	}
	c.W.Map(len(fields))
	for _, f := range fields {
		c.W.BulkString(f.name)
		c.W.Int(f.value)
	}
}

func memoryUsage(c *Ctx) {
	for rest := c.Args[3:]; len(rest) > 0; rest = rest[2:] {
		if len(rest) < 2 || !parse.IsWord(rest[0], "SAMPLES") {
			c.Fail(resp.ErrSyntax)
			return
		}
		n, ok := parse.Int(rest[1])
		if !ok {
			c.Fail(resp.ErrNotInteger)
			return
		}
		if n < 0 {
			c.Fail(resp.ErrSyntax)
			return
		}
	}
	bytes, ok := c.Store.MemoryUsage(c.Client.selected(), c.Args[2])
	if !ok {
		c.W.Null()
		return
	}
	c.W.Int(bytes)
}

func slowlogCommand() *Command {
	return &Command{
		Name: "slowlog", Arity: -2, Group: "server", Summary: "A container for slow log commands; no slow log is kept.", Since: "1.0.0",
		Sub: []*Command{
			subcommand("slowlog", "get", -2, FlagAdmin|FlagLoading|FlagStale, "[count]", "Returns the slow log, which is empty.", "an empty array",
				slowlogGet),
			subcommand("slowlog", "len", 2, FlagAdmin|FlagLoading|FlagStale, "", "Returns the length of the slow log.", "0",
				func(c *Ctx) { c.W.Int(0) }),
			subcommand("slowlog", "reset", 2, FlagAdmin|FlagLoading|FlagStale, "", "Clears the slow log.", "OK", (*Ctx).OK),
		},
	}
}

func slowlogGet(c *Ctx) {
	if len(c.Args) > 3 {
		c.Fail(subcommandSyntax(c))
		return
	}
	if len(c.Args) == 3 {
		if n, ok := parse.Int(c.Args[2]); !ok || n < -1 {
			c.Fail("ERR count should be greater than or equal to -1")
			return
		}
	}
	c.W.Array(0)
}

func latencyCommand() *Command {
	empty := func(c *Ctx) { c.W.Array(0) }
	return &Command{
		Name: "latency", Arity: -2, Group: "server", Summary: "A container for latency diagnostics commands; no events are recorded.", Since: "1.0.0",
		Sub: []*Command{
			subcommand("latency", "histogram", -2, FlagAdmin|FlagLoading|FlagStale, "[command ...]", "Returns latency histograms; none are kept.", "an empty map",
				func(c *Ctx) { c.W.Map(0) }),
			subcommand("latency", "history", 3, FlagAdmin|FlagLoading|FlagStale, "event", "Returns the samples of an event.", "an empty array", empty),
			subcommand("latency", "latest", 2, FlagAdmin|FlagLoading|FlagStale, "", "Returns the latest samples of all events.", "an empty array", empty),
			subcommand("latency", "reset", -2, FlagAdmin|FlagLoading|FlagStale, "[event ...]", "Forgets recorded events.", "0",
				func(c *Ctx) { c.W.Int(0) }),
		},
	}
}

func aclCommand() *Command {
	return &Command{
		Name: "acl", Arity: -2, Group: "server", Summary: "A container for access list commands; there is one user, default.", Since: "1.0.0",
		Sub: []*Command{
			subcommand("acl", "cat", -2, FlagNoScript|FlagLoading|FlagStale, "[category]", "Lists the categories, or the commands of one.", "an array of names", aclCat),
			subcommand("acl", "list", 2, FlagAdmin|FlagNoScript|FlagLoading|FlagStale, "", "Lists the rules of all users.", "one rule", aclList),
			subcommand("acl", "users", 2, FlagAdmin|FlagNoScript|FlagLoading|FlagStale, "", "Lists the users.", "default",
				func(c *Ctx) {
					c.W.Array(1)
					c.W.BulkString(defaultUser)
				}),
			subcommand("acl", "whoami", 2, FlagNoScript|FlagLoading|FlagStale, "", "Returns the user of the connection.", "default",
				func(c *Ctx) { c.W.BulkString(defaultUser) }),
		},
	}
}

func aclCat(c *Ctx) {
	if len(c.Args) > 3 {
		c.Fail(subcommandSyntax(c))
		return
	}
	if len(c.Args) == 2 {
		c.W.Array(len(categoryNames))
		for _, n := range categoryNames {
			c.W.BulkString(n.name)
		}
		return
	}
	name := string(c.Args[2])
	var members []string
	for _, cmd := range c.server.table.All() {
		if cmd.AllCategories().has(name) {
			members = append(members, cmd.Name)
		}
	}
	if members == nil {
		c.Fail(resp.Error("ERR Unknown category '" + string(echo(c.Args[2], maxEcho)) + "'"))
		return
	}
	c.W.Array(len(members))
	for _, m := range members {
		c.W.BulkString(m)
	}
}

func aclList(c *Ctx) {
	rule := "user default on nopass sanitize-payload ~* &* +@all"
	if c.server.passwordSet() {
		rule = "user default on sanitize-payload ~* &* +@all"
	}
	c.W.Array(1)
	c.W.BulkString(rule)
}

// timeCommand replies civil time, as everybody who compares it with a clock of
// their own expects.
func timeCommand(c *Ctx) {
	us := int64(c.Store.Civil(c.Store.Now())) / int64(time.Microsecond)
	c.W.Array(2)
	c.W.BulkString(strconv.FormatInt(us/1e6, 10))
	c.W.BulkString(strconv.FormatInt(us%1e6, 10))
}

// waitCommand answers at once: no replica could ever acknowledge anything.
func waitCommand(c *Ctx) {
	if _, ok := parse.Int(c.Args[1]); !ok {
		c.Fail(resp.ErrNotInteger)
		return
	}
	switch timeout, ok := parse.Int(c.Args[2]); {
	case !ok:
		c.Fail("ERR timeout is not an integer or out of range")
	case timeout < 0:
		c.Fail(resp.ErrTimeoutNegative)
	default:
		c.W.Int(0)
	}
}

func role(c *Ctx) {
	c.W.Array(3)
	c.W.BulkString("master")
	c.W.Int(0)
	c.W.Array(0)
}

func lolwut(c *Ctx) {
	c.W.Verbatim("txt", "One cell at a time.\ncellserver ver. "+c.server.process().Version()+"\n")
}

// shutdown stops the server once the clients are served.
func shutdown(c *Ctx) {
	var save, noSave, abort bool
	for _, a := range c.Args[1:] {
		switch {
		case parse.IsWord(a, "SAVE"):
			save = true
		case parse.IsWord(a, "NOSAVE"):
			noSave = true
		case parse.IsWord(a, "ABORT"):
			abort = true
		case !parse.IsWord(a, "NOW") && !parse.IsWord(a, "FORCE"):
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
	c.Client.closing = true
	mode := StopAsConfigured
	if save {
		mode = StopSaving
	} else if noSave {
		mode = StopWithoutSaving
	}
	if c.busy {
		engineOf(c.server).killAlone(sessionOf(c.Client))
	}
	if c.server.opts.Stop != nil {
		c.server.opts.Stop(mode)
	}
}
