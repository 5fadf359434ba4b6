package users

import (
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// dryrun is the Run function of ACL DRYRUN. It replies with OK if the user may run the command, and
// otherwise with what the user may not do. It fails if there is no such user or command, or if the
// number of arguments is wrong.
func dryrun(c *command.Call) {
	name, args := string(c.Args[2]), c.Args[3:]
	u := c.Server.Users.Find(name)
	if u == nil {
		c.Fail(resp.Error("ERR User '" + string(command.Echo(c.Args[2], command.MaxEcho)) + "' not found"))
		return
	}
	cmd := c.Server.Commands.Lookup(args[0])
	if cmd != nil && cmd.Sub != nil && len(args) > 1 {
		cmd = cmd.Subcommand(args[1])
	}
	switch {
	case cmd == nil:
		c.Fail(resp.Error("ERR Command '" + string(command.Echo(args[0], command.MaxEcho)) + "' not found"))
		return
	case !cmd.ArityOK(len(args)), cmd.Run == nil:
		c.Fail(resp.WrongArity(cmd.Name))
		return
	}
	is := cmd.Refused(u.Rules(), args, c.Server.Limits().EveryKey)
	switch is.Reason {
	case acl.DeniedNothing:
		c.OK()
	case acl.DeniedKey:
		if is.At == 0 { // is.At is 0 if the command names no key but accesses all keys: see acl-keyspace-needs-allkeys
			c.W.BulkString("User " + name + " has no permissions to access all keys, which the '" + cmd.Name + "' command needs")
			return
		}
		c.W.BulkString("User " + name + " has no permissions to access the '" + string(cmd.Keys.Name(args, is.At)) + "' key")
	case acl.DeniedChannel:
		c.W.BulkString("User " + name + " has no permissions to access the '" + string(args[is.At]) + "' channel")
	default:
		c.W.BulkString("User " + name + " has no permissions to run the '" + cmd.Name + "' command")
	}
}

// defaultEntries is the number of entries that ACL LOG lists by default.
const defaultEntries = 10

// aclLog is the Run function of ACL LOG. It replies with the newest entries, defaultEntries or as
// many as the argument says, or removes all entries for RESET.
func aclLog(c *command.Call) {
	n := int64(defaultEntries)
	switch {
	case len(c.Args) > 3:
		c.Fail(command.SubcommandSyntax(c))
		return
	case len(c.Args) == 3 && arg.IsWord(c.Args[2], "RESET"):
		c.Server.Refusals.Reset()
		c.OK()
		return
	case len(c.Args) == 3:
		var ok bool
		if n, ok = arg.Int(c.Args[2]); !ok {
			c.Fail(resp.ErrNotInteger)
			return
		}
	}
	now := int64(c.Store.Civil(c.Store.Now())) / int64(time.Millisecond)
	entries := c.Server.Refusals.Newest(int(min(max(0, n), 1<<30)))
	c.W.Array(len(entries))
	for i := range entries {
		writeEntry(c.W, &entries[i], now)
	}
}

func writeEntry(w *resp.Writer, e *acl.LogEntry, nowMillis int64) {
	text := func(name, value string) {
		w.BulkString(name)
		w.BulkString(value)
	}
	number := func(name string, value int64) {
		w.BulkString(name)
		w.Int(value)
	}
	w.Map(10)
	number("count", e.Count)
	text("reason", e.Reason.String())
	text("context", e.Context.String())
	text("object", e.Object)
	text("username", e.User)
	w.BulkString("age-seconds")
	w.Double(float64(max(0, nowMillis-e.Created)) / 1000)
	text("client-info", e.Client)
	number("entry-id", e.ID)
	number("timestamp-created", e.Created)
	number("timestamp-last-updated", e.Updated)
}
