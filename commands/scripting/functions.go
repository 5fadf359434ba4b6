package scripting

import (
	"encoding/binary"
	"hash/crc64"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

// This file implements the commands for functions as a server without any function. They reply as
// Redis 7.2 does while no library is loaded, so that programs which list, flush, save and restore
// functions work.

const (
	errNoFunctions    resp.Error = "ERR functions are not supported, only scripts with EVAL and EVALSHA are"
	errNoFunction     resp.Error = "ERR Function not found"
	errNoLibrary      resp.Error = "ERR Library not found"
	errLibraryName    resp.Error = "ERR library name argument was not given"
	errFunctionFlush  resp.Error = "ERR FUNCTION FLUSH only supports SYNC|ASYNC option"
	errRestorePolicy  resp.Error = "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE."
	errRestorePayload resp.Error = "ERR DUMP payload version or checksum are wrong"
)

// functionCommands returns FUNCTION with its subcommands, FCALL and FCALL_RO.
func functionCommands() []*command.Command {
	sub := func(name string, arity int, f command.Flag, syntax, summary, reply string, run func(*command.Call)) *command.Command {
		cmd := command.Subcommand("function", name, arity, command.FlagNoScript|f, syntax, summary, reply, run)
		cmd.Categories, cmd.Group = command.CatScripting, "scripting"
		return cmd
	}
	call := func(name string, f command.Flag) *command.Command {
		return &command.Command{
			Name: name, Arity: -3, Flags: command.FlagNoScript | command.FlagStale | f, Categories: command.CatScripting, Group: "scripting",
			Summary: "Replies that the function does not exist.", Syntax: "function numkeys [key [key ...]] [arg [arg ...]]",
			Since: "1.0.0", Complexity: "O(1)", Reply: "an error", Run: func(c *command.Call) { c.Fail(errNoFunction) },
		}
	}
	return []*command.Command{
		call("fcall", 0),
		call("fcall_ro", command.FlagReadonly),
		{
			Name: "function", Arity: -2, Group: "scripting", Summary: "A container for function commands. There are no functions, only scripts.", Since: "1.0.0",
			Sub: []*command.Command{
				sub("delete", 3, command.FlagWrite, "library-name", "Replies that the library does not exist.", "an error",
					func(c *command.Call) { c.Fail(errNoLibrary) }),
				sub("dump", 2, 0, "", "Returns all functions for FUNCTION RESTORE: none.", "bytes", functionDump),
				sub("flush", -2, command.FlagWrite, "[ASYNC | SYNC]", "Deletes all functions. There are none.", "OK", functionFlush),
				sub("kill", 2, command.FlagAllowBusy, "", "Replies that no function runs.", "an error", func(c *command.Call) { functionBusy(c, func() { c.Fail(command.ErrNotBusy) }) }),
				sub("list", -2, 0, "[LIBRARYNAME library-name-pattern] [WITHCODE]", "Lists the libraries of functions. There are none.",
					"an empty array", functionList),
				sub("load", -3, command.FlagWrite|command.FlagDenyOOM, "[REPLACE] function-code", "Replies that functions are not supported.", "an error",
					func(c *command.Call) { c.Fail(errNoFunctions) }),
				sub("restore", -3, command.FlagWrite|command.FlagDenyOOM, "serialized-value [FLUSH | APPEND | REPLACE]",
					"Accepts what FUNCTION DUMP returned, if it contains no functions.", "OK, or an error", functionRestore),
				sub("stats", 2, command.FlagAllowBusy, "", "Returns how many functions there are and which one runs.", "a map", func(c *command.Call) { functionBusy(c, func() { functionStats(c) }) }),
			},
		},
	}
}

func functionList(c *command.Call) {
	named, withCode := false, false
	for args := c.Args[2:]; len(args) > 0; args = args[1:] {
		switch {
		case !withCode && arg.IsWord(args[0], "WITHCODE"):
			withCode = true
		case !named && arg.IsWord(args[0], "LIBRARYNAME"):
			if len(args) == 1 {
				c.Fail(errLibraryName)
				return
			}
			named, args = true, args[1:]
		default:
			c.Fail(resp.Error("ERR Unknown argument " + string(command.Echo(args[0], command.MaxEcho))))
			return
		}
	}
	c.W.Array(0)
}

func functionFlush(c *command.Call) {
	switch {
	case len(c.Args) > 3:
		c.Fail(command.SubcommandSyntax(c))
	case len(c.Args) == 3 && !arg.IsWord(c.Args[2], "SYNC") && !arg.IsWord(c.Args[2], "ASYNC"):
		c.Fail(errFunctionFlush)
	default:
		c.OK()
	}
}

// functionBusy runs f, unless a script has been running for long. FUNCTION KILL and FUNCTION
// STATS are allowed then, but do not apply to scripts.
func functionBusy(c *command.Call, f func()) {
	if c.Busy {
		c.Fail(command.ErrBusy)
		return
	}
	f()
}

func functionStats(c *command.Call) {
	c.W.Map(2)
	c.W.BulkString("running_script")
	c.W.Null()
	c.W.BulkString("engines")
	c.W.Map(1)
	c.W.BulkString("LUA")
	c.W.Map(2)
	c.W.BulkString("libraries_count")
	c.W.Int(0)
	c.W.BulkString("functions_count")
	c.W.Int(0)
}

const (
	// dumpVersion is the version of the dump format of Redis 7.2.
	dumpVersion = 11
	// dumpFooter is the length of the end of a dump: its version and its checksum.
	dumpFooter = 2 + 8
)

// dumpChecksum is the CRC-64 of Redis: the polynomial as Go's package represents it, an initial
// value of 0, and no final inversion.
func dumpChecksum(b []byte) uint64 {
	return ^crc64.Update(^uint64(0), crc64.MakeTable(0x95ac9329ac4bc9b5), b)
}

func functionDump(c *command.Call) {
	dump := binary.LittleEndian.AppendUint16(nil, dumpVersion)
	c.W.Bulk(binary.LittleEndian.AppendUint64(dump, dumpChecksum(dump)))
}

func functionRestore(c *command.Call) {
	switch {
	case len(c.Args) > 4:
		c.Fail(command.SubcommandSyntax(c))
		return
	case len(c.Args) == 4 && !arg.IsWord(c.Args[3], "FLUSH") && !arg.IsWord(c.Args[3], "APPEND") && !arg.IsWord(c.Args[3], "REPLACE"):
		c.Fail(errRestorePolicy)
		return
	}
	dump := c.Args[2]
	switch empty, ok := checkDump(dump); {
	case !ok:
		c.Fail(errRestorePayload)
	case !empty:
		c.Fail(errNoFunctions)
	default:
		c.OK()
	}
}

// checkDump reports whether b is a complete dump of a supported version, and whether it contains
// no function.
func checkDump(b []byte) (empty, ok bool) {
	n := len(b) - dumpFooter
	if n < 0 || binary.LittleEndian.Uint16(b[n:]) > dumpVersion {
		return false, false
	}
	return n == 0, binary.LittleEndian.Uint64(b[n+2:]) == dumpChecksum(b[:n+2])
}
