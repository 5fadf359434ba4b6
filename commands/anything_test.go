package commands_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/transport"
)

// calls has valid arguments for the commands that do not accept the default ones: a key, then
// numbers.
var calls = map[string]string{
	"rl.multi":                "2 k l CL 1 1 1 SW 5 60",
	"cc.acquire":              "c 5 60 member",
	"cc.release":              "c member",
	"cc.list":                 "c",
	"cc.renew":                "c member 60",
	"rl.commit":               "b id 1",
	"rl.cancel":               "b id",
	"rl.renew":                "b id 60",
	"rl.match":                "domain key=value",
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

// callOf returns a call of the command that its arity allows.
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

// TestEveryCommandInsideExec: with any command in the queue, between commands that lock keys,
// EXEC has a reply for each command, and the server continues.
func TestEveryCommandInsideExec(t *testing.T) {
	atOnce := map[string]bool{"exec": true, "discard": true, "multi": true, "watch": true, "quit": true, "reset": true}
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		witness := s.Dial()
		ran := 0
		for _, cmd := range s.Engine().Table().All() {
			if cmd.Run == nil || atOnce[cmd.Name] || cmd.Flags&command.FlagNoMulti != 0 {
				continue
			}
			c := s.Dial()
			call := callOf(cmd)
			c.Send("WATCH w\r\nMULTI\r\nCL.THROTTLE k 5 1 60\r\nSW.ALLOW s 5 60\r\n" + call + "\r\nCC.ACQUIRE c 5 60 member\r\nEXEC\r\nPING after\r\n")
			c.Expect(inproc.OK, inproc.OK, inproc.Queued, inproc.Queued, inproc.Queued, inproc.Queued)
			reply := c.Reply()
			require.True(t, strings.HasPrefix(reply, "*4\r\n"), "%s: %q", call, reply)
			require.NotContains(t, reply, "internal error", call)
			require.Contains(t, []string{inproc.Bulk("after"), inproc.Array(inproc.Bulk("pong"), inproc.Bulk("after"))}, c.Reply(), call)
			require.NoError(t, c.Close())
			require.Equal(t, inproc.Pong, witness.Do("PING"), call)
			ran++
		}
		require.Greater(t, ran, 80)
	})
}

// words are the parts of random calls: all names, numbers at the limits of types, keys of every
// kind, and random bytes.
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

// TestRandomCommands: calls of random words, alone, pipelined and in transactions, never cause an
// internal error, and never leave the server unable to reply.
func TestRandomCommands(t *testing.T) {
	effort.Alone(t)
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := effort.Steps(20_000, 200_000)
		s := w.Start("--maxclients", "100000")
		table := s.Engine().Table()
		vocabulary := words(table)
		worker := s.Engine().NewWorker()
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
				session, _ = s.Engine().Open(inproc.NewPeer())
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
				w.Advance(time.Second)
				s.Engine().CloseOverdue(s.Engine().Options.Now())
			}
		}
		closeOld()
		session = nil
		w.Settle()
		require.Zero(t, s.Keyspace().Waiting())
	})
}

// randomCall returns a command of the table with mostly unsuitable arguments.
func randomCall(r *rand.Rand, table *command.Table, vocabulary []string) []byte {
	cmd := table.All()[r.IntN(len(table.All()))]
	switch cmd.Name {
	case "shutdown", "config|set", "config":
		return inproc.Encode(nil, "PING") // these commands would end or change the test
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
		return inproc.Encode(nil, "PING")
	}
	return inproc.Encode(nil, args...)
}

// FuzzFeed feeds a session arbitrary bytes in two pieces: nothing panics, unconsumed bytes are
// not lost, and replies stay within their bounds.
func FuzzFeed(f *testing.F) {
	for _, seed := range []string{
		"PING\r\n*1\r\n$4\r\nPING\r\n", "MULTI\r\nCL.THROTTLE k 1 1 1\r\nEXEC\r\n", "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*-1\r\n*0\r\n",
		"HELLO 3\r\nSW.ALLOW k 5 60 1 LOG\r\nRL.INFO k\r\n", "WATCH k\r\nMULTI\r\nTB.ACQUIRE b 1 1 1 WAIT 5\r\nEXEC\r\nRESET\r\n",
		"SW.ALLOW s 5 60 3 RESERVE a 30\r\nRL.RENEW s a 60\r\nRL.COMMIT s a 2\r\nRL.CANCEL s a\r\n",
		"RL.POLICY SET p LIMITS SW 5 60 TB 9 1 1\r\nRL.USE p k 3 RESERVE a 30\r\nRL.RENEW k a 60 POLICY p\r\nRL.COMMIT k a 2 1 POLICY p\r\nRL.CANCEL k a POLICY p\r\n",
		"RL.USE rls.p k 3 LIMIT 5 60\r\nRL.USE rls.p k LIMIT 0 1 MS\r\nRL.USE rls.p k LIMIT -1 99999999999\r\n",
		"CLIENT REPLY SKIP\r\nPING\r\nCLIENT REPLY OFF\r\nPING\r\n*x\r\n", "POST / HTTP/1.1\r\nHost: x\r\n", "\x00\r\nPING \"a\\x00\" 'b'\r\n",
	} {
		f.Add([]byte(seed), uint16(len(seed)/2))
	}
	b := inproc.OpenTimed(f, "--maxclients", "1000")
	worker, out := b.Server().Engine().NewWorker(), make([]byte, 0, 1<<16)
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		for _, word := range []string{"config", "save", "rewrite", "pause"} {
			if strings.Contains(strings.ToLower(string(stream)), word) {
				return // it would change the server of the other inputs, or the folder
			}
		}
		session, rejection := b.Server().Engine().Open(inproc.NewPeer())
		require.Empty(t, rejection)
		defer session.Closed()
		at := min(int(cut), len(stream))
		turn := session.Feed(worker, stream[:at], out[:0])
		require.LessOrEqual(t, turn.Consumed, at)
		require.NotContains(t, string(turn.Whole()), "ERR internal error")
		if turn.Next == transport.Read {
			turn = session.Feed(worker, stream[turn.Consumed:], out[:0])
			require.NotContains(t, string(turn.Whole()), "ERR internal error")
		}
	})
}
