package connection

import (
	"strconv"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

func clientCommands() []*command.Command {
	const (
		ok   = "OK"
		calm = command.FlagNoScript | command.FlagLoading | command.FlagStale
		own  = command.FlagConnection
	)
	return []*command.Command{{
		Name: "client", Arity: -2, Categories: command.CatSlow, Group: "connection",
		Summary: "A container for client connection commands.", Since: "1.0.0", Complexity: "Depends on subcommand.",
		Sub: command.Entries(command.Defaults{
			Categories: command.CatConnection, Group: "connection", Since: "1.0.0", Complexity: "O(1)",
		}, []*command.Command{
			{
				Name: "client|capa", Arity: -3, Flags: calm | own,
				Summary: "Tells the server what the client supports. The server does not use it yet.",
				Syntax:  "capability [capability ...]",
				Reply:   ok, Run: (*command.Call).OK,
			},
			{
				Name: "client|getname", Arity: 2, Flags: calm | own,
				Summary: "Returns the name of the connection.", Reply: "the name, or null", Run: clientGetName,
			},
			{
				Name: "client|id", Arity: 2, Flags: calm | own,
				Summary: "Returns the unique id of the connection.", Reply: "an integer",
				Run: func(c *command.Call) { c.W.Int(c.Client.ID) },
			},
			{
				Name: "client|info", Arity: 2, Flags: calm | own,
				Summary: "Returns information about the connection.", Reply: "one line of text", Run: clientInfo,
			},
			{
				Name: "client|kill", Arity: -3,
				Flags:   calm | command.FlagAdmin | command.FlagAudit,
				Summary: "Closes connections.",
				Syntax:  "<ip:port | [ID client-id] [ADDR ip:port] [LADDR ip:port] [USER username] [TYPE NORMAL|MASTER|REPLICA|PUBSUB] [SKIPME YES|NO] [MAXAGE seconds]>",
				Reply:   "OK, or the number of connections closed", Run: clientKill,
				Disclosure: command.Disclosure{Change: "client"},
			},
			{
				Name: "client|list", Arity: -2, Flags: calm | command.FlagAdmin,
				Summary: "Lists open connections.",
				Syntax:  "[TYPE NORMAL|MASTER|REPLICA|PUBSUB] [ID client-id [client-id ...]] [ADDR ip:port] [LADDR ip:port] [USER username] [SKIPME YES|NO] [MAXAGE seconds]",
				Reply:   "a line of text for each", Run: clientList,
			},
			{
				Name: "client|no-evict", Arity: 3,
				Flags:   calm | command.FlagAdmin | own,
				Summary: "Protects the connection when maxmemory-clients closes clients.", Syntax: "<ON | OFF>", Reply: ok,
				Run: clientNoEvict,
			},
			{
				Name: "client|no-touch", Arity: 3, Flags: calm | own,
				Summary: "Controls whether reads count as use. Keys have no age here.", Syntax: "<ON | OFF>", Reply: ok, Run: clientOnOff,
			},
			{
				Name: "client|pause", Arity: -3,
				Flags:   calm | command.FlagAdmin | command.FlagAudit,
				Summary: "Delays the commands of all connections, or only those that write, for a time in milliseconds.",
				Syntax:  "timeout [WRITE | ALL]", Reply: ok, Run: clientPause,
				Disclosure: command.Disclosure{Change: "pause", Named: 1},
			},
			{
				Name: "client|reply", Arity: 3, Flags: calm | own,
				Summary: "Tells the server whether to reply to commands.", Syntax: "<ON | OFF | SKIP>", Reply: ok, Run: clientReply,
			},
			{
				Name: "client|setinfo", Arity: 4, Flags: calm | own,
				Summary: "Sets the name or version of the client's library.", Syntax: "<LIB-NAME libname | LIB-VER libver>", Reply: ok,
				Run: clientSetInfo,
			},
			{
				Name: "client|setname", Arity: 3, Flags: calm | own,
				Summary: "Sets the name of the connection.", Syntax: "connection-name", Reply: ok, Run: clientSetName,
			},
			{
				Name: "client|unblock", Arity: -3, Flags: calm | command.FlagAdmin,
				Summary: "Ends the wait of another connection.", Syntax: "client-id [TIMEOUT | ERROR]",
				Reply: "1 if it was waiting, 0 if not", Run: clientUnblock,
			},
			{
				Name: "client|unpause", Arity: 2,
				Flags:   calm | command.FlagAdmin | command.FlagAudit,
				Summary: "Ends a pause.", Reply: ok, Run: clientUnpause, Disclosure: command.Disclosure{Change: "pause"},
			},
		}),
	}}
}

func clientGetName(c *command.Call) {
	if name := c.Client.Name(); name != "" {
		c.W.BulkString(name)
		return
	}
	c.W.Null()
}

func clientSetName(c *command.Call) {
	if err := nameFault("Client names", c.Args[2]); err != "" {
		c.Fail(err)
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
	case arg.IsWord(c.Args[2], "LIB-NAME"):
	case arg.IsWord(c.Args[2], "LIB-VER"):
		target = &n.LibVer
	default:
		c.Fail(resp.Error("ERR Unrecognized option '" + string(command.Echo(c.Args[2], command.MaxEcho)) + "'"))
		return
	}
	if err := nameFault(string(c.Args[2]), value); err != "" {
		c.Fail(err)
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

// clientReply is the Run function of CLIENT REPLY. It replies with OK only for ON: the modes OFF
// and SKIP suppress their own reply. After OFF, SKIP changes nothing.
func clientReply(c *command.Call) {
	switch {
	case arg.IsWord(c.Args[2], "ON"):
		c.Client.Reply = command.ReplyOn
		c.OK()
	case arg.IsWord(c.Args[2], "OFF"):
		c.Client.Reply = command.ReplyOff
	case arg.IsWord(c.Args[2], "SKIP"):
		if c.Client.Reply != command.ReplyOff {
			c.Client.Reply = command.ReplySkipNext
		}
	default:
		c.Fail(resp.ErrSyntax)
	}
}

func clientInfo(c *command.Call) {
	c.Server.Host.Calls.NoteCommand(c.Client, c.Cmd)
	line := describe(c.Server, nil, c.Client, c.Server.Options.Now(), requestOf(c.Args))
	c.W.Verbatim("txt", string(append(line, '\n')))
}

func clientList(c *command.Call) {
	f, err := parseFilter(c.Args[2:], c.Server.Users, true)
	if err != "" {
		c.Fail(err)
		return
	}
	server, self, own := c.Server, c.Client.ID, requestOf(c.Args)
	server.Host.Calls.NoteCommand(c.Client, c.Cmd)
	list := func(_ env.Store, w *resp.Writer) {
		var text []byte
		now := server.Options.Now()
		for _, s := range server.Host.Registry.Clients() {
			if !s.Killed.Load() && f.matches(s, self, now) {
				running := request{}
				if s.ID == self {
					running = own
				}
				text = append(describe(server, text, s, now, running), '\n')
			}
		}
		w.Verbatim("txt", string(text))
	}
	if open, _ := server.Host.Registry.CountClients(); open > listInline {
		c.Offload(list)
		return
	}
	list(c.Store, c.W)
}

// listInline is the number of clients up to which an event loop itself runs CLIENT LIST.
const listInline = 200

// request has the sizes of a running command in bytes: arrived is the length of the command as it
// arrived, and words the sum of the lengths of its arguments.
type request struct{ arrived, words int64 }

func requestOf(args [][]byte) (r request) {
	header := func(n int) int64 { return int64(len(strconv.Itoa(n)) + len("$\r\n")) }
	r.arrived = header(len(args))
	for _, a := range args {
		r.words += int64(len(a))
		r.arrived += header(len(a)) + int64(len(a)) + int64(len("\r\n"))
	}
	return r
}

// describe appends the line of CLIENT LIST for s at the instant now to b, without a line end, and
// returns the result. It reads only fields that any goroutine may read. running has the sizes of
// the running command if s is the client that asks, and is zero for other clients.
func describe(e *command.Server, b []byte, s *command.Client, now limit.Instant, running request) []byte {
	who, a := s.Identity(), e.Host.Registry.Activity(s)
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
	num("fd", descriptor(s))
	word("name", who.Name)
	num("age", max(0, int64(now.Sub(s.Created).Seconds())))
	num("idle", max(0, int64(now.Sub(max(s.Created, a.Active)).Seconds())))
	word("flags", letters(s, &a))
	num("db", int64(s.Selected()))
	num("sub", int64(d.Channels))
	num("psub", int64(d.Patterns))
	num("ssub", int64(d.ShardChannels))
	num("multi", int64(a.Queued))
	input := max(a.Held.Input, running.arrived)
	num("qbuf", input)
	num("qbuf-free", 0)
	num("argv-mem", running.words)
	num("multi-mem", a.Held.Queued)
	for _, field := range absentFields {
		num(field, 0)
	}
	num("omem", a.Held.Output+a.Held.Messages)
	num("tot-mem", a.Held.Sum()-a.Held.Input+input+running.words)
	word("events", "r")
	word("cmd", cmd)
	word("user", s.UserName())
	num("redir", d.Redirect)
	num("resp", int64(s.Protocol.Load()))
	word("lib-name", who.LibName)
	word("lib-ver", who.LibVer)
	return b
}

// absentFields are fields of CLIENT LIST in Redis that have no counterpart here, because a client
// has no reply buffer. They are shown as 0, because redis-py 5 fails unless each of them is an
// integer.
var absentFields = []string{"rbs", "rbp", "obl", "oll"}

// descriptor returns the file descriptor of the socket of s, or -1 if it has none.
func descriptor(s *command.Client) int64 {
	if d, ok := s.Peer.(interface{ Descriptor() int }); ok {
		return int64(d.Descriptor())
	}
	return -1
}

// letters returns the flags of s in CLIENT LIST, in the order of Redis; "N" if there are none.
func letters(s *command.Client, a *command.Activity) string {
	var b []byte
	for _, f := range []struct {
		letter byte
		set    bool
	}{
		{'O', a.Monitors},
		{'S', s.Replica.Load()},
		{'M', s.Primary},
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

// clientUnblock is the Run function of CLIENT UNBLOCK. It ends the wait of a client with the reply
// of a timeout or, with the argument ERROR, with an error. It replies with 1 if it has ended a
// wait, and otherwise with 0.
func clientUnblock(c *command.Call) {
	if len(c.Args) > 4 {
		c.Fail(command.SubcommandSyntax(c))
		return
	}
	withError := false
	if len(c.Args) > 3 {
		withError = arg.IsWord(c.Args[3], "ERROR")
		if !withError && !arg.IsWord(c.Args[3], "TIMEOUT") {
			c.Fail("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
			return
		}
	}
	id, ok := arg.Int(c.Args[2])
	if !ok {
		c.Fail(resp.ErrNotInteger)
		return
	}
	if s := c.Server.Host.Registry.Client(id); s != nil && c.Server.Host.Waits.Unblock(s, withError) {
		c.W.Int(1)
		return
	}
	c.W.Int(0)
}

// clientKill is the Run function of CLIENT KILL. It closes clients by address (the old form) or by
// filters. The old form replies with OK, or with an error if it has closed none. The other form
// replies with the number of clients that it has closed.
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
	f, err := parseFilter(c.Args[2:], c.Server.Users, false)
	if err != "" {
		c.Fail(err)
		return
	}
	self, now := c.Client.ID, c.Server.Options.Now()
	c.W.Int(int64(kill(c, func(s *command.Client) bool { return f.matches(s, self, now) })))
}

// kill closes the clients for which match returns true, and returns their number. If the caller is
// among them, it is closed after its reply. A client that was killed before does not count, even if
// its transport has not closed it yet.
func kill(c *command.Call, match func(*command.Client) bool) int {
	n := 0
	for _, s := range c.Server.Host.Registry.Clients() {
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
