package commands_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/internal/script"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

const start = limit.Instant(1_700_000_000 * int64(time.Second))

func storeServer(t *testing.T) *remotedouble.Server {
	t.Helper()
	s, err := remotedouble.NewServer(start, 1, nil)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// scriptedCalls returns all calls of the scripts of commands, which cover every command.
func scriptedCalls(t *testing.T) (all [][]string) {
	t.Helper()
	scripts, err := script.Load("..", script.Folders...)
	require.NoError(t, err)
	for _, s := range scripts {
		all = append(all, s.Commands()...)
	}
	return all
}

// call feeds one call to its own session, which may be in a transaction, and returns the reply
// and the state of the client before and after.
func call(t *testing.T, s *remotedouble.Server, w transport.Worker, words []string, inside bool) (reply string, before, after clientState, blocked bool) {
	t.Helper()
	c, err := remotedouble.OpenWith(s.Engine, w)
	require.NoError(t, err)
	clients := s.Clients()
	client := clients[len(clients)-1]
	in := inproc.Encode(nil, words...)
	if inside {
		in = append(inproc.Encode(nil, "MULTI"), append(in, inproc.Encode(nil, "EXEC")...)...)
	}
	before = stateOf(client)
	rest, out, _ := c.Turn(in, nil)
	after, blocked = stateOf(client), s.Activity(client).Blocked
	if !blocked {
		more, _ := c.Feed(rest)
		out = append(out, more...)
	}
	c.Closed()
	return string(out), before, after, blocked
}

// clientState is what a command may change of a client.
type clientState struct {
	proto, db                     int
	reply                         command.ReplyMode
	authed, closing, spared, told bool
	marks                         command.Mark
	identity                      command.Identity
	locked                        int64
	subscriptions                 int32
}

func stateOf(cl *command.Client) clientState {
	return clientState{
		proto: cl.Proto, db: cl.Selected(), reply: cl.Reply, authed: cl.Authed, closing: cl.Closing, spared: cl.Spared.Load(),
		told: cl.Invalidated.Load(), marks: cl.Marks, identity: cl.Identity(), locked: cl.Locked.Load(), subscriptions: cl.Subscriptions.Load(),
	}
}

// entryOf returns the entry of a call, or nil.
func entryOf(t *command.Table, words []string) *command.Command {
	cmd := t.Lookup([]byte(words[0]))
	if cmd == nil || cmd.Sub == nil || len(words) == 1 {
		return cmd
	}
	if sub := cmd.Subcommand([]byte(words[1])); sub != nil {
		return sub
	}
	return cmd
}

// TestWithAStoreNoCommandReachesAKeyspace: with --store, each command asks the store, accesses no
// key, or is refused by name. The stores of the test server have no keyspace, so a command that
// looks for a key panics.
func TestWithAStoreNoCommandReachesAKeyspace(t *testing.T) {
	s := storeServer(t)
	w := s.NewWorker()
	table, ran := s.Engine.Commands, map[string]bool{}
	for _, words := range scriptedCalls(t) {
		for _, inside := range []bool{false, true} {
			reply, _, _, _ := call(t, s, w, words, inside)
			require.Zero(t, s.Statistics().Panics, "%q: %q", words, reply)
		}
		if cmd := entryOf(table, words); cmd != nil {
			ran[cmd.Name] = true
		}
	}
	for _, full := range commands.NewTable().All() {
		cmd := table.Find([]byte(full.Name))
		if cmd == nil {
			words := strings.Split(full.Name, "|")
			if table.Lookup([]byte(words[0])) == nil {
				words[0] = strings.ToUpper(words[0])
			}
			name := full.Name
			if table.Lookup([]byte(words[0])) == nil {
				name = strings.ToLower(words[0])
			}
			reply, _, _, _ := call(t, s, w, append(words, "k", "v"), false)
			want := "-ERR '" + name + "' is not served with --store; ask the store itself\r\n"
			if strings.HasPrefix(name, "rl.") { // not in the table with a store
				want = "-ERR '" + name + "' is not served with --store\r\n"
			}
			require.Equal(t, want, reply)
			continue
		}
		if cmd.Run == nil || strings.HasSuffix(cmd.Name, "|help") {
			continue
		}
		require.NotEqual(t, cmd.Parse != nil, cmd.Flags&command.FlagLocal != 0, cmd.Name)
		require.Equal(t, cmd.Parse != nil, cmd.Answer != nil, cmd.Name)
		require.True(t, ran[cmd.Name], "no call of %s was tried", cmd.Name)
	}
}

// served are the commands of a server with a store, except subcommands.
const served = "acl asking auth cc.acquire cc.list cc.release cc.renew cl.throttle client cluster command config dbsize debug del discard echo exec " +
	"exists expire expireat expiretime failover flushdb get hello increx info latency memory module monitor multi persist pexpire pexpireat " +
	"pexpiretime ping psync pttl quit readonly readwrite replconf replicaof reset rl.block rl.boost rl.cancel rl.changes rl.commit rl.exempt " +
	"rl.explain rl.info rl.match rl.multi rl.override rl.policy rl.renew rl.report rl.reset rl.rules rl.throttle rl.top rl.unblock rl.unboost rl.unexempt " +
	"rl.use role scan select shutdown slaveof slowlog sw.allow sync tb.acquire time touch ttl type unlink wait"

// TestWithAStoreTheTableHasWhatIsServed: COMMAND lists exactly the commands that are served.
func TestWithAStoreTheTableHasWhatIsServed(t *testing.T) {
	table, err := commands.NewStoreTable(nil)
	require.NoError(t, err)
	var names []string
	for _, c := range table.Top() {
		names = append(names, c.Name)
	}
	require.Equal(t, served, strings.Join(names, " "))
	require.Nil(t, table.Find([]byte("object")))
	require.Nil(t, table.Find([]byte("client|tracking")))
	require.Nil(t, table.Find([]byte("memory|usage")))
	require.NotNil(t, table.Find([]byte("memory|doctor")))
	require.Equal(t, resp.Error("ERR 'client|tracking' is not served with --store; ask the store itself"),
		table.UnknownSub(table.Find([]byte("client")), []byte("Tracking")))
	require.Equal(t, resp.Error("ERR unknown subcommand 'nope'. Try CLIENT HELP."), table.UnknownSub(table.Find([]byte("client")), []byte("nope")))
}

// TestWithAStoreCommandsMayHaveOtherNames: rename-command also applies to commands that are
// refused.
func TestWithAStoreCommandsMayHaveOtherNames(t *testing.T) {
	table, err := commands.NewStoreTable([][2]string{{"SET", "put"}, {"DEL", "remove"}, {"LPUSH", ""}})
	require.NoError(t, err)
	require.Nil(t, table.Lookup([]byte("del")))
	require.Equal(t, "del", table.Lookup([]byte("remove")).Name)
	unknown := func(name string) resp.Error { return table.Unknown([][]byte{[]byte(name)}) }
	require.Equal(t, resp.Error("ERR 'set' is not served with --store; ask the store itself"), unknown("PUT"))
	require.Contains(t, string(unknown("SET")), "ERR unknown command 'SET'")
	require.Contains(t, string(unknown("LPUSH")), "ERR unknown command 'LPUSH'")
	require.Contains(t, string(unknown("del")), "ERR unknown command 'del'")
}

// TestCommandsThatChangeTheClientOrWaitAreFences: a command that changes the client, or waits,
// runs only after the asks before it are answered.
func TestCommandsThatChangeTheClientOrWaitAreFences(t *testing.T) {
	s := storeServer(t)
	w := s.NewWorker()
	fences := 0
	for _, words := range scriptedCalls(t) {
		cmd := entryOf(s.Engine.Commands, words)
		if cmd == nil {
			continue
		}
		args := make([][]byte, len(words))
		for i, word := range words {
			args[i] = []byte(word)
		}
		if cmd.Flags&command.FlagFence != 0 || cmd.Waits != nil && cmd.Waits(&s.Server, args) {
			fences++
			continue
		}
		reply, before, after, blocked := call(t, s, w, words, false)
		require.Equal(t, before, after, "%q changes its client and is no fence: %q", words, reply)
		require.False(t, blocked, "%q waits and is no fence", words)
	}
	require.Greater(t, fences, 100)
	for _, c := range s.Engine.Commands.All() {
		require.Empty(t, strings.Join((c.Flags&(command.FlagFence|command.FlagLocal)).Names(), " "), "a flag that no client knows")
	}
}
