package server_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/transport"
)

// calls are sensible arguments for the commands that do not take the first words of
// everything: a key, then numbers.
var calls = map[string]string{
	"rl.multi":                "2 k l CL 1 1 1 SW 5 60",
	"cc.acquire":              "c 5 60 member",
	"cc.release":              "c member",
	"cc.renew":                "c member 60",
	"sw.allow":                "s 5 60",
	"tb.acquire":              "b 5 1 60",
	"cl.throttle":             "k 5 1 60",
	"rl.throttle":             "k 5 1 60",
	"rename":                  "k l",
	"renamenx":                "k l",
	"expire":                  "k 100",
	"pexpire":                 "k 100",
	"expireat":                "k 1800000000",
	"pexpireat":               "k 1800000000000",
	"scan":                    "0",
	"keys":                    "*",
	"select":                  "0",
	"hello":                   "2",
	"auth":                    "default x",
	"wait":                    "0 0",
	"info":                    "everything",
	"client|caching":          "YES",
	"client|capa":             "redirect",
	"client|kill":             "ID 999999",
	"client|list":             "",
	"client|no-evict":         "ON",
	"client|no-touch":         "ON",
	"client|reply":            "ON",
	"client|setinfo":          "lib-name x",
	"client|setname":          "x",
	"client|tracking":         "OFF",
	"client|unblock":          "999999",
	"command|getkeys":         "get k",
	"command|getkeysandflags": "get k",
	"config|get":              "*",
	"config|set":              "timeout 0",
	"memory|usage":            "k",
	"object|encoding":         "k",
	"object|freq":             "k",
	"object|idletime":         "k",
	"object|refcount":         "k",
	"latency|history":         "event",
}

// callOf is a call of the command that its arity allows.
func callOf(cmd *command.Command) string {
	words := strings.ReplaceAll(cmd.Name, "|", " ")
	if args, ok := calls[cmd.Name]; ok {
		return words + " " + args
	}
	for n := len(strings.Fields(words)); n < max(cmd.Arity, -cmd.Arity); n++ {
		words += " k"
	}
	return words
}

// TestEveryCommandInsideExec: whatever is queued, between commands that hold keys, EXEC
// answers as many replies as there were commands, and the server goes on.
func TestEveryCommandInsideExec(t *testing.T) {
	atOnce := map[string]bool{"exec": true, "discard": true, "multi": true, "watch": true, "quit": true, "reset": true}
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind)
		witness := f.dial()
		ran := 0
		for _, cmd := range f.Engine().Table().All() {
			if cmd.Run == nil || atOnce[cmd.Name] || cmd.Flags&command.FlagNoMulti != 0 {
				continue
			}
			c := f.dial()
			call := callOf(cmd)
			c.send("WATCH w\r\nMULTI\r\nCL.THROTTLE k 5 1 60\r\nSW.ALLOW s 5 60\r\n" + call + "\r\nCC.ACQUIRE c 5 60 member\r\nEXEC\r\nPING after\r\n")
			c.expect("+OK\r\n", "+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n")
			reply := c.reply()
			require.True(t, strings.HasPrefix(reply, "*4\r\n"), "%s: %q", call, reply)
			require.NotContains(t, reply, "internal error", call)
			require.Contains(t, []string{bulk("after"), array(bulk("pong"), bulk("after"))}, c.reply(), call)
			require.NoError(t, c.Close())
			require.Equal(t, "+PONG\r\n", witness.do("PING"), call)
			ran++
		}
		require.Greater(t, ran, 80)
	})
}

// words is what random calls are made of: names of everything, numbers at the edges,
// keys of every kind and bytes that mean nothing.
func words(table *command.Table) []string {
	all := []string{
		"", "k", "l", "s", "b", "c", "0", "1", "-1", "2", "5", "60", "1000000", "9223372036854775807", "-9223372036854775808",
		"9223372036854775808", "1e3", "+1", " 1", "0.5", "-0", "x", "\x00", "\xff\xfe", "*", "?", "[", "a b", "\r\n", "NX", "XX", "GT", "LT",
		"ID", "ADDR", "TYPE", "normal", "SKIPME", "no", "ON", "OFF", "YES", "OPTIN", "timeout", "maxclients", "requirepass", "AUTH", "default", "SETNAME",
	}
	for _, cmd := range table.All() {
		all = append(all, strings.Split(cmd.Name, "|")...)
		all = append(all, strings.FieldsFunc(cmd.Syntax, func(r rune) bool { return strings.ContainsRune("[]<>| .", r) })...)
	}
	return all
}

// TestRandomCommands: calls made of random words, alone, pipelined and in transactions,
// never end in an internal error, and never leave the server unable to answer.
func TestRandomCommands(t *testing.T) {
	n := 200_000
	if testing.Short() {
		n = 20_000
	}
	f := start(t, "goroutine", "--maxclients", "100000")
	table := f.Engine().Table()
	vocabulary := words(table)
	worker := f.Engine().NewWorker()
	r := rand.New(rand.NewPCG(11, 12))
	out := make([]byte, 0, 1<<20)
	var session transport.Session
	closeOld := func() {
		if session != nil {
			session.Closed()
		}
	}
	defer func() { closeOld() }()
	for i := range n {
		if session == nil {
			session, _ = f.Engine().Open(quietPeer{})
			require.NotNil(t, session)
		}
		var packet []byte
		for range 1 + r.IntN(4) {
			packet = append(packet, randomCall(r, table, vocabulary)...)
		}
		turn := session.Feed(worker, packet, out[:0])
		require.NotContains(t, string(turn.Whole()), "ERR internal error", "%q", packet)
		if turn.Next == transport.Close || turn.Next == transport.Park || turn.Next == transport.Wait || r.IntN(50) == 0 {
			closeOld()
			session = nil
		}
		if i%1000 == 0 {
			f.clock.Advance(time.Second)
			f.Engine().CloseOverdue(f.clock.Now())
		}
	}
	closeOld()
	session = nil
	eventually(t, "nobody waits", func() bool { return f.Keyspace().Waiting() == 0 })
}

// randomCall is a command of the table with words of which most are none that it wants.
func randomCall(r *rand.Rand, table *command.Table, vocabulary []string) []byte {
	cmd := table.All()[r.IntN(len(table.All()))]
	switch cmd.Name {
	case "shutdown", "config|set", "config":
		return frame("PING") // these would end or change the test
	}
	args := strings.Fields(callOf(cmd))
	for range r.IntN(4) {
		switch i := r.IntN(len(args)); r.IntN(3) {
		case 0:
			args = append(args, vocabulary[r.IntN(len(vocabulary))])
		case 1:
			if i > 0 {
				args[i] = vocabulary[r.IntN(len(vocabulary))]
			}
		case 2:
			if i > 0 {
				args = args[:i]
			}
		}
	}
	if strings.EqualFold(args[0], "config") || strings.EqualFold(args[0], "shutdown") || len(args) > 1 && strings.EqualFold(args[1], "pause") {
		return frame("PING")
	}
	return frame(args...)
}

// FuzzFeed gives a session arbitrary bytes, in two pieces: nothing panics, what is not
// consumed is not lost, and replies stay within their bounds.
func FuzzFeed(f *testing.F) {
	for _, seed := range []string{
		"PING\r\n*1\r\n$4\r\nPING\r\n", "MULTI\r\nCL.THROTTLE k 1 1 1\r\nEXEC\r\n", "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*-1\r\n*0\r\n",
		"HELLO 3\r\nSW.ALLOW k 5 60 1 LOG\r\nRL.INFO k\r\n", "WATCH k\r\nMULTI\r\nTB.ACQUIRE b 1 1 1 WAIT 5\r\nEXEC\r\nRESET\r\n",
		"CLIENT REPLY SKIP\r\nPING\r\nCLIENT REPLY OFF\r\nPING\r\n*x\r\n", "POST / HTTP/1.1\r\nHost: x\r\n", "\x00\r\nPING \"a\\x00\" 'b'\r\n",
	} {
		f.Add([]byte(seed), uint16(len(seed)/2))
	}
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		for _, word := range []string{"config", "save", "rewrite", "pause"} {
			if strings.Contains(strings.ToLower(string(stream)), word) {
				return // would change the server under the others, or the folder
			}
		}
		b := sharedBench(t)
		session, rejection := b.server.Engine().Open(quietPeer{})
		require.Empty(t, rejection)
		defer session.Closed()
		at := min(int(cut), len(stream))
		turn := session.Feed(b.worker, stream[:at], b.out[:0])
		require.LessOrEqual(t, turn.Consumed, at)
		require.NotContains(t, string(turn.Whole()), "ERR internal error")
		if turn.Next == transport.Read {
			turn = session.Feed(b.worker, stream[turn.Consumed:], b.out[:0])
			require.NotContains(t, string(turn.Whole()), "ERR internal error")
		}
	})
}
