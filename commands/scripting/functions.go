package scripting

import (
	"encoding/binary"
	"hash/crc64"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// This file implements the commands about functions for a server that never has any. They reply as
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

// functionCommands returns the commands FCALL and FCALL_RO, and FUNCTION with its subcommands.
func functionCommands() []*command.Command {
	return command.Entries(command.Defaults{Group: "scripting", Since: "1.0.0", Complexity: "O(1)"}, []*command.Command{
		{
			Name: "fcall", Arity: -3, Flags: command.FlagNoScript | command.FlagStale, Categories: command.CatScripting,
			Summary: "Replies that the function does not exist.", Syntax: "function numkeys [key [key ...]] [arg [arg ...]]",
			Reply: "an error", Run: func(c *command.Call) { c.Fail(errNoFunction) },
		},
		{
			Name: "fcall_ro", Arity: -3, Flags: command.FlagNoScript | command.FlagStale | command.FlagReadonly,
			Categories: command.CatScripting,
			Summary:    "Replies that the function does not exist.", Syntax: "function numkeys [key [key ...]] [arg [arg ...]]",
			Reply: "an error", Run: func(c *command.Call) { c.Fail(errNoFunction) },
		},
		{
			Name: "function", Arity: -2,
			Summary: "A container for function commands. There are no functions, only scripts.",
			Sub: command.Entries(command.Defaults{
				Categories: command.CatScripting, Group: "scripting", Since: "1.0.0", Complexity: "O(1)",
			}, []*command.Command{
				{
					Name: "function|delete", Arity: 3, Flags: command.FlagNoScript | command.FlagWrite,
					Summary: "Replies that the library does not exist.", Syntax: "library-name", Reply: "an error",
					Run: func(c *command.Call) { c.Fail(errNoLibrary) },
				},
				{
					Name: "function|dump", Arity: 2, Flags: command.FlagNoScript,
					Summary: "Returns all functions for FUNCTION RESTORE: none.", Reply: "bytes", Run: functionDump,
				},
				{
					Name: "function|flush", Arity: -2, Flags: command.FlagNoScript | command.FlagWrite,
					Summary: "Deletes all functions. There are none.", Syntax: "[ASYNC | SYNC]", Reply: "OK", Run: functionFlush,
				},
				{
					Name: "function|kill", Arity: 2, Flags: command.FlagNoScript | command.FlagAllowBusy,
					Summary: "Replies that no function runs.", Reply: "an error",
					Run: func(c *command.Call) { functionBusy(c, func() { c.Fail(command.ErrNotBusy) }) },
				},
				{
					Name: "function|list", Arity: -2, Flags: command.FlagNoScript,
					Summary: "Lists the libraries of functions. There are none.", Syntax: "[LIBRARYNAME library-name-pattern] [WITHCODE]",
					Reply: "an empty array", Run: functionList,
				},
				{
					Name: "function|load", Arity: -3, Flags: command.FlagNoScript | command.FlagWrite | command.FlagDenyOOM,
					Summary: "Replies that functions are not supported.", Syntax: "[REPLACE] function-code", Reply: "an error",
					Run: func(c *command.Call) { c.Fail(errNoFunctions) },
				},
				{
					Name: "function|restore", Arity: -3, Flags: command.FlagNoScript | command.FlagWrite | command.FlagDenyOOM,
					Summary: "Accepts what FUNCTION DUMP returned, if it contains no functions.",
					Syntax:  "serialized-value [FLUSH | APPEND | REPLACE]", Reply: "OK, or an error", Run: functionRestore,
				},
				{
					Name: "function|stats", Arity: 2, Flags: command.FlagNoScript | command.FlagAllowBusy,
					Summary: "Returns how many functions there are and which one runs.", Reply: "a map",
					Run: func(c *command.Call) { functionBusy(c, func() { functionStats(c) }) },
				},
			}),
		},
	})
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

// functionBusy calls f, or replies with a BUSY error if a script is busy. FUNCTION KILL and
// FUNCTION STATS may run while a script is busy, but they concern functions only.
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
	// dumpVersion is the version of the format of dumps of Redis 7.2.
	dumpVersion = 11
	// dumpFooter is the length, in bytes, of the end of a dump: its version and its checksum.
	dumpFooter = 2 + 8
)

// dumpChecksum returns the CRC-64 of b as Redis computes it: with an initial value of 0 and without
// a final inversion. The polynomial is that of Redis in the bit-reversed form that package crc64
// takes.
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

// checkDump reports in ok whether b is a complete dump of a supported version, and in empty whether
// it contains no functions.
func checkDump(b []byte) (empty, ok bool) {
	n := len(b) - dumpFooter
	if n < 0 || binary.LittleEndian.Uint16(b[n:]) > dumpVersion {
		return false, false
	}
	return n == 0, binary.LittleEndian.Uint64(b[n+2:]) == dumpChecksum(b[:n+2])
}
