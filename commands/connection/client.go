package connection

import (
	"bytes"
	"strconv"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/resp"
)

func clientCommands() []*command.Command {
	sub := func(name string, arity int, syntax, summary, reply string, flags command.Flag, run func(*command.Call)) *command.Command {
		return &command.Command{
			Name: "client|" + name, Arity: arity, Flags: flags | command.FlagNoScript | command.FlagLoading | command.FlagStale,
			Categories: command.CatConnection, Group: "connection", Summary: summary, Syntax: syntax,
			Since: "1.0.0", Complexity: "O(1)", Reply: reply, Run: run,
		}
	}
	const ok = "OK"
	client := &command.Command{
		Name: "client", Arity: -2, Categories: command.CatSlow, Group: "connection",
		Summary: "A container for client connection commands.", Since: "1.0.0", Complexity: "Depends on subcommand.",
		Sub: []*command.Command{
			sub("capa", -3, "capability [capability ...]", "Tells the server what the client supports. The server does not use it yet.", ok, 0, (*command.Call).OK),
			sub("getname", 2, "", "Returns the name of the connection.", "the name, or null", 0, clientGetName),
			sub("id", 2, "", "Returns the unique id of the connection.", "an integer", 0, func(c *command.Call) { c.W.Int(c.Client.ID) }),
			sub("info", 2, "", "Returns information about the connection.", "one line of text", 0, clientInfo),
			sub("kill", -3, "<ip:port | [ID client-id] [ADDR ip:port] [LADDR ip:port] [USER username] [TYPE NORMAL|PUBSUB] [SKIPME YES|NO]>",
				"Closes connections.", "OK, or the number of connections closed", command.FlagAdmin|command.FlagAudit, clientKill),
			sub("list", -2, "[TYPE type] [ID client-id [client-id ...]]", "Lists open connections.", "a line of text for each", command.FlagAdmin, clientList),
			sub("no-evict", 3, "<ON | OFF>", "Protects the connection when maxmemory-clients closes clients.", ok, command.FlagAdmin, clientNoEvict),
			sub("no-touch", 3, "<ON | OFF>", "Controls whether reads count as use. Keys have no age here.", ok, 0, clientOnOff),
			sub("pause", -3, "timeout [WRITE | ALL]", "Delays the commands of all connections, or only those that write, for a time in milliseconds.", ok, command.FlagAdmin|command.FlagAudit, clientPause),
			sub("reply", 3, "<ON | OFF | SKIP>", "Tells the server whether to reply to commands.", ok, 0, clientReply),
			sub("setinfo", 4, "<LIB-NAME libname | LIB-VER libver>", "Sets the name or version of the client's library.", ok, 0, clientSetInfo),
			sub("setname", 3, "connection-name", "Sets the name of the connection.", ok, 0, clientSetName),
			sub("unblock", -3, "client-id [TIMEOUT | ERROR]", "Ends the wait of another connection.", "1 if it was waiting, 0 if not", command.FlagAdmin, clientUnblock),
			sub("unpause", 2, "", "Ends a pause.", ok, command.FlagAdmin|command.FlagAudit, clientUnpause),
		},
	}
	return []*command.Command{client}
}

func clientGetName(c *command.Call) {
	if name := c.Client.Name(); name != "" {
		c.W.BulkString(name)
		return
	}
	c.W.Null()
}

func clientSetName(c *command.Call) {
	if !validName(c.Args[2]) {
		c.Fail(errClientName)
		return
	}
	c.Client.SetName(c.Args[2])
	c.OK()
}

func clientSetInfo(c *command.Call) {
	value := c.Args[3]
	n := c.Client.Identity()
	target := &n.LibName
	switch {
	case parse.IsWord(c.Args[2], "LIB-NAME"):
	case parse.IsWord(c.Args[2], "LIB-VER"):
		target = &n.LibVer
	default:
		c.Fail(resp.Error("ERR Unrecognized option '" + string(command.Echo(c.Args[2], command.MaxEcho)) + "'"))
		return
	}
	if !validName(value) {
		c.Fail(resp.Error("ERR " + string(c.Args[2]) + " cannot contain spaces, newlines or special characters."))
		return
	}
	*target = string(value)
	c.Client.Identify(n)
	c.OK()
}

func clientOnOff(c *command.Call) {
	if _, ok := command.OnOff(c.Args[2]); !ok {
		c.Fail(resp.ErrSyntax)
		return
	}
	c.OK()
}

func clientNoEvict(c *command.Call) {
	if on, ok := command.OnOff(c.Args[2]); ok {
		c.Client.Spared.Store(on)
	}
	clientOnOff(c)
}

// clientReply answers OK only when replies are on: the other modes begin with
// their own silence.
func clientReply(c *command.Call) {
	switch {
	case parse.IsWord(c.Args[2], "ON"):
		c.Client.Reply = command.ReplyOn
		c.OK()
	case parse.IsWord(c.Args[2], "OFF"):
		c.Client.Reply = command.ReplyOff
	case parse.IsWord(c.Args[2], "SKIP"):
		if c.Client.Reply != command.ReplyOff {
			c.Client.Reply = command.ReplySkipNext
		}
	default:
		c.Fail(resp.ErrSyntax)
	}
}

func clientInfo(c *command.Call) {
	c.Server.Host.NoteCommand(c.Client, c.Cmd)
	line := describe(c.Server, nil, c.Client)
	c.W.Verbatim("txt", string(append(line, '\n')))
}

func clientList(c *command.Call) {
	wanted, err := parseClientList(c.Args[2:])
	if err != "" {
		c.Fail(err)
		return
	}
	server := c.Server
	server.Host.NoteCommand(c.Client, c.Cmd)
	list := func(_ command.Store, w *resp.Writer) {
		var text []byte
		for _, s := range server.Host.Clients() {
			if !s.Killed.Load() && wanted(s) {
				text = append(describe(server, text, s), '\n')
			}
		}
		w.Verbatim("txt", string(text))
	}
	if open, _ := server.Host.CountClients(); open > listInline {
		c.Offload(list)
		return
	}
	list(c.Store, c.W)
}

// listInline is how many clients are listed on the loop itself.
const listInline = 200

func parseClientList(args [][]byte) (wanted func(*command.Client) bool, err resp.Error) {
	switch {
	case len(args) == 0:
		return func(*command.Client) bool { return true }, ""
	case len(args) == 2 && parse.IsWord(args[0], "TYPE"):
		wanted, err := clientType(args[1])
		return wanted, err
	case len(args) >= 2 && parse.IsWord(args[0], "ID"):
		ids := make(map[int64]bool)
		for _, a := range args[1:] {
			id, ok := parse.Int(a)
			if !ok {
				return nil, "ERR Invalid client ID"
			}
			ids[id] = true
		}
		return func(s *command.Client) bool { return ids[s.ID] }, ""
	}
	return nil, resp.ErrSyntax
}

// clientType returns what makes a client one of the type: those that have subscribed
// to something are pubsub, all others normal. The types of replicas are accepted and
// match nobody.
func clientType(b []byte) (matches func(*command.Client) bool, err resp.Error) {
	switch {
	case parse.IsWord(b, "NORMAL"):
		return func(s *command.Client) bool { return !s.Subscribed() }, ""
	case parse.IsWord(b, "PUBSUB"):
		return func(s *command.Client) bool { return s.Subscribed() }, ""
	case parse.IsWord(b, "MASTER"), parse.IsWord(b, "REPLICA"), parse.IsWord(b, "SLAVE"):
		return func(*command.Client) bool { return false }, ""
	}
	return nil, resp.Error("ERR Unknown client type '" + string(command.Echo(b, command.MaxEcho)) + "'")
}

// describe appends the line of CLIENT LIST about s. Everything it reads may be
// read from any goroutine.
func describe(e *command.Server, b []byte, s *command.Client) []byte {
	now := e.Options.Now()
	who, a := s.Identity(), e.Host.Activity(s)
	d := &a.Description
	cmd := "NULL"
	if a.LastCommand != nil {
		cmd = a.LastCommand.Name
	}
	num := func(key string, n int64) {
		b = append(append(append(b, ' '), key...), '=')
		b = strconv.AppendInt(b, n, 10)
	}
	word := func(key, value string) {
		b = append(append(append(append(b, ' '), key...), '='), value...)
	}
	b = strconv.AppendInt(append(b, "id="...), s.ID, 10)
	word("addr", s.Addr())
	word("laddr", s.Laddr())
	word("name", who.Name)
	num("age", max(0, int64(now.Sub(s.Created).Seconds())))
	num("idle", max(0, int64(now.Sub(max(s.Created, a.Active)).Seconds())))
	word("flags", letters(s, &a))
	num("db", int64(s.Selected()))
	num("sub", int64(d.Channels))
	num("psub", int64(d.Patterns))
	num("ssub", int64(d.ShardChannels))
	num("multi", int64(a.Queued))
	num("qbuf", a.Held.Input)
	for _, field := range absentFields {
		num(field, 0)
	}
	num("multi-mem", a.Held.Queued)
	num("omem", a.Held.Output+a.Held.Messages)
	num("tot-mem", a.Held.Sum())
	word("events", "r")
	word("cmd", cmd)
	word("user", command.DefaultUser)
	num("redir", d.Redirect)
	num("resp", int64(s.Protocol.Load()))
	word("lib-name", who.LibName)
	word("lib-ver", who.LibVer)
	return b
}

// absentFields are numbers of Redis that have no counterpart here. redis-py 5 reads
// each of them as an integer and fails without it.
var absentFields = []string{"qbuf-free", "argv-mem", "rbs", "rbp", "obl", "oll"}

// letters is what CLIENT LIST says of a client in letters, in the order of Redis.
func letters(s *command.Client, a *command.Activity) string {
	var b []byte
	for _, f := range []struct {
		letter byte
		set    bool
	}{
		{'P', s.Subscribed()},
		{'x', a.Queued >= 0},
		{'b', a.Blocked},
		{'t', a.Tracks},
		{'R', a.BrokenRedirect},
		{'B', a.Broadcasting},
		{'e', s.Spared.Load()},
	} {
		if f.set {
			b = append(b, f.letter)
		}
	}
	if b == nil {
		return "N"
	}
	return string(b)
}

// clientUnblock ends a wait: with the answer that its timeout would have given,
// or, with ERROR, with an error.
func clientUnblock(c *command.Call) {
	if len(c.Args) > 4 {
		c.Fail(command.SubcommandSyntax(c))
		return
	}
	withError := false
	if len(c.Args) > 3 {
		withError = parse.IsWord(c.Args[3], "ERROR")
		if !withError && !parse.IsWord(c.Args[3], "TIMEOUT") {
			c.Fail("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
			return
		}
	}
	id, ok := parse.Int(c.Args[2])
	if !ok {
		c.Fail(resp.ErrNotInteger)
		return
	}
	if s := c.Server.Host.Client(id); s != nil && c.Server.Host.Unblock(s, withError) {
		c.W.Int(1)
		return
	}
	c.W.Int(0)
}

// clientKill closes connections by address (the old form) or by filters.
func clientKill(c *command.Call) {
	if len(c.Args) == 3 {
		addr := string(c.Args[2])
		if kill(c, func(s *command.Client) bool { return s.Addr() == addr }) == 0 {
			c.Fail("ERR No such client")
			return
		}
		c.OK()
		return
	}
	f, err := parseKill(c.Args[2:])
	if err != "" {
		c.Fail(err)
		return
	}
	self := c.Client
	c.W.Int(int64(kill(c, func(s *command.Client) bool { return f.matches(s) && (s.ID != self.ID || !f.skipMe) })))
}

// kill closes the clients that match; the caller's own goes after its reply. One that
// was killed before is gone, although its transport may not have said so yet.
func kill(c *command.Call, match func(*command.Client) bool) int {
	n := 0
	for _, s := range c.Server.Host.Clients() {
		if s.Killed.Load() || !match(s) {
			continue
		}
		n++
		if s.ID == c.Client.ID {
			c.Client.Closing = true
		} else {
			s.Kill()
		}
	}
	return n
}

// killFilter is the conjunction of the filters of CLIENT KILL.
type killFilter struct {
	id          int64
	addr, laddr []byte
	typed       func(*command.Client) bool // nil: of any type
	skipMe      bool
}

func parseKill(args [][]byte) (killFilter, resp.Error) {
	f := killFilter{skipMe: true}
	if len(args)%2 != 0 {
		return f, resp.ErrSyntax
	}
	for ; len(args) > 0; args = args[2:] {
		value := args[1]
		switch {
		case parse.IsWord(args[0], "ID"):
			id, ok := parse.Int(value)
			if !ok || id < 1 {
				return f, "ERR client-id should be greater than 0"
			}
			f.id = id
		case parse.IsWord(args[0], "TYPE"):
			typed, err := clientType(value)
			if err != "" {
				return f, err
			}
			f.typed = typed
		case parse.IsWord(args[0], "ADDR"):
			f.addr = value
		case parse.IsWord(args[0], "LADDR"):
			f.laddr = value
		case parse.IsWord(args[0], "USER"):
			if string(value) != command.DefaultUser {
				return f, resp.Error("ERR No such user '" + string(command.Echo(value, command.MaxEcho)) + "'")
			}
		case parse.IsWord(args[0], "SKIPME") && (parse.IsWord(value, "YES") || parse.IsWord(value, "NO")):
			f.skipMe = parse.IsWord(value, "YES")
		default:
			return f, resp.ErrSyntax
		}
	}
	return f, ""
}

func (f *killFilter) matches(s *command.Client) bool {
	return (f.typed == nil || f.typed(s)) &&
		(f.id == 0 || f.id == s.ID) &&
		(f.addr == nil || bytes.Equal(f.addr, []byte(s.Addr()))) &&
		(f.laddr == nil || bytes.Equal(f.laddr, []byte(s.Laddr())))
}
