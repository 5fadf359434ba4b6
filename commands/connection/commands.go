package connection

import (
	"fmt"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/stats"
)

func commands() []*command.Command {
	const always = command.FlagNoScript | command.FlagLoading | command.FlagStale | command.FlagFast | command.FlagAllowBusy | command.FlagFence | command.FlagConnection
	return command.Entries(command.Defaults{
		Categories: command.CatConnection, Group: "connection", Since: "1.0.0", Complexity: "O(1)",
	}, []*command.Command{
		{
			Name: "ping", Arity: -1, Flags: command.FlagFast | command.FlagSubscriber,
			Summary: "Returns the server's liveliness response.", Syntax: "[message]", Reply: "PONG, or the message", Run: ping,
		},
		{
			Name: "echo", Arity: 2, Flags: command.FlagLoading | command.FlagStale | command.FlagFast,
			Summary: "Returns the given string.", Syntax: "message", Reply: "the message", Run: echoCommand,
		},
		{
			Name: "hello", Arity: -1, Flags: always | command.FlagNoAuth,
			Summary: "Handshakes with the server.", Syntax: "[protover [AUTH username password] [SETNAME clientname]]",
			Reply: "a map of server properties", Run: hello, Disclosure: command.Disclosure{Secrets: helloSecrets},
		},
		{
			Name: "auth", Arity: -2, Flags: always | command.FlagNoAuth,
			Summary: "Authenticates the connection.", Syntax: "[username] password", Reply: "OK", Run: auth,
			Disclosure: command.Disclosure{Secrets: stats.SecretsFrom(1)},
		},
		{
			Name: "select", Arity: 2,
			Flags:   command.FlagLoading | command.FlagStale | command.FlagFast | command.FlagFence | command.FlagConnection | command.FlagSelects,
			Summary: "Changes the selected database.", Syntax: "index", Reply: "OK", Run: selectDB,
		},
		{
			Name: "quit", Arity: -1, Flags: always | command.FlagNoAuth | command.FlagImmediate | command.FlagSubscriber,
			Summary: "Closes the connection.", Reply: "OK", Run: quit,
		},
		{
			Name: "reset", Arity: 1,
			Flags:   always | command.FlagNoAuth | command.FlagImmediate | command.FlagSubscriber | command.FlagUnwatches,
			Summary: "Resets the connection.", Reply: "RESET", Run: reset,
		},
	})
}

func ping(c *command.Call) {
	switch {
	case len(c.Args) > 2:
		c.Fail(resp.WrongArity("ping"))
	case c.Client.ListensOnly():
		pong(c)
	case len(c.Args) == 2:
		c.W.Bulk(c.Args[1])
	default:
		c.W.Status("PONG")
	}
}

// pong replies to PING of a RESP2 client with subscriptions. The reply has the form of a message.
func pong(c *command.Call) {
	c.W.Array(2)
	c.W.BulkString("pong")
	if len(c.Args) > 1 {
		c.W.Bulk(c.Args[1])
		return
	}
	c.W.BulkString("")
}

func echoCommand(c *command.Call) { c.W.Bulk(c.Args[1]) }

func quit(c *command.Call) {
	c.Client.Closing = true
	c.OK()
}

func reset(c *command.Call) {
	c.RunInSlices(func(c *command.Call) (more bool) {
		if c.Server.Reset(c) {
			return true
		}
		c.Client.Reset(c.Store.Now())
		c.W.Proto = 2
		c.W.Status("RESET")
		return false
	})
}

func selectDB(c *command.Call) {
	n, ok := arg.Int(c.Args[1])
	if !ok {
		c.Fail(resp.ErrNotInteger)
		return
	}
	switch {
	case n != int64(int32(n)):
		c.Fail("ERR value is out of range, value must between -2147483648 and 2147483647")
		return
	case n < 0 || n >= int64(c.Server.Limits().Databases):
		c.Fail(resp.ErrDBIndex)
		return
	}
	c.Client.Database.Store(int32(n))
	c.OK()
}

func auth(c *command.Call) {
	user, password := acl.DefaultUser, c.Args[len(c.Args)-1]
	switch {
	case len(c.Args) > 3:
		c.Fail(resp.ErrSyntax)
		return
	case len(c.Args) == 3:
		user = string(c.Args[1])
	case c.Server.Users.Default.Rules().NoPass:
		c.Fail(resp.ErrNoPassword)
		return
	}
	tryLogin(c, user, password, func(w *resp.Writer) { w.Status("OK") })
}

// helloCall has the parsed arguments of HELLO. login says that AUTH was given, and setName that
// SETNAME was.
type helloCall struct {
	proto    int
	user     string
	password []byte
	login    bool
	name     []byte
	setName  bool
}

func hello(c *command.Call) {
	h := helloCall{proto: c.Client.Proto}
	if err := parseHello(c.Args[1:], &h); err != "" {
		c.Fail(err)
		return
	}
	s := c.Client
	if !h.login {
		if !s.Admitted() {
			c.Fail(resp.ErrNoAuthHello)
			return
		}
		greet(s, c.W, &h)
		return
	}
	h.name = append([]byte(nil), h.name...) // the name is copied, because the reply may be written after the input is gone
	tryLogin(c, h.user, h.password, func(w *resp.Writer) { greet(s, w, &h) })
}

// helloSecrets is the Secrets function of HELLO: it calls hide with the indices of the user and the
// password.
func helloSecrets(args [][]byte, hide func(i int)) {
	for i := 2; i < len(args); i++ {
		switch {
		case arg.IsWord(args[i], "AUTH"):
			for at := i + 1; at <= min(i+2, len(args)-1); at++ {
				hide(at)
			}
			i += 2
		case arg.IsWord(args[i], "SETNAME"):
			i++
		}
	}
}

func parseHello(args [][]byte, h *helloCall) resp.Error {
	if len(args) == 0 {
		return ""
	}
	proto, ok := arg.Int(args[0])
	if !ok {
		return resp.ErrProtoNotInteger
	}
	if proto != 2 && proto != 3 {
		return resp.ErrNoProto
	}
	h.proto = int(proto)
	for i := 1; i < len(args); i++ {
		left := len(args) - 1 - i
		switch {
		case arg.IsWord(args[i], "AUTH") && left >= 2:
			h.user, h.password, h.login = string(args[i+1]), args[i+2], true
			i += 2
		case arg.IsWord(args[i], "SETNAME") && left >= 1:
			if err := nameFault("Client names", args[i+1]); err != "" {
				return err
			}
			h.name, h.setName = args[i+1], true
			i++
		default:
			return resp.Error("ERR Syntax error in HELLO option '" + string(command.Echo(args[i], command.MaxEcho)) + "'")
		}
	}
	return ""
}

// greet writes the reply of HELLO, which describes the server. Before, it sets the protocol of s
// and, if SETNAME was given, its name. The order and the types of the fields matter, because some
// clients read the fields by position.
func greet(s *command.Client, w *resp.Writer, h *helloCall) {
	if h.setName {
		s.SetName(h.name)
	}
	s.SetProtocol(h.proto)
	w.Proto = h.proto
	w.Map(7)
	w.BulkString("server")
	w.BulkString("redis")
	w.BulkString("version")
	w.BulkString(command.RedisVersion)
	w.BulkString("proto")
	w.Int(int64(h.proto))
	w.BulkString("id")
	w.Int(s.ID)
	w.BulkString("mode")
	w.BulkString("standalone")
	w.BulkString("role")
	if s.Server.Halts.Load()&command.HaltReadOnly != 0 {
		w.BulkString("replica")
	} else {
		w.BulkString("master")
	}
	w.BulkString("modules")
	command.WriteModules(w)
}

// maxName is the maximum length, in bytes, of the name of a client or its library. Redis has no
// such bound. CLIENT LIST shows the names of all clients, so they must be short.
const maxName = 1 << 10

// nameFault returns the error for name if it is not allowed as the name of a client or its library;
// "" if it is. A name must be printable ASCII without spaces. what names the kind of name in the
// error.
func nameFault(what string, name []byte) resp.Error {
	if len(name) > maxName {
		return resp.Error(fmt.Sprintf("ERR %s cannot be longer than %d characters: this one has %d", what, maxName, len(name)))
	}
	for _, c := range name {
		if c < '!' || c > '~' {
			return resp.Error("ERR " + what + " cannot contain spaces, newlines or special characters.")
		}
	}
	return ""
}
