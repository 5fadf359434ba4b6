package commands_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/session"
)

const (
	readOnly   = "READONLY You can't write against a read only replica."
	noReplicas = "NOREPLICAS Not enough good replicas to write."
	masterDown = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
)

// looks are calls of commands that write which change nothing whatever their keys hold, and takes
// are similar calls that may change something.
var (
	looks = []string{
		"CL.THROTTLE k 3 1 60 0", "RL.THROTTLE k 3 1 60 0", "SW.ALLOW k 5 60 0", "SW.ALLOW k 5 60 1 PEEK", "TB.ACQUIRE k 10 1 1 0",
		"TB.ACQUIRE k 10 1 1 2 PEEK", "CC.ACQUIRE k 3 10 m PEEK", "RL.MULTI 1 k SW 5 60 1 PEEK", "RL.MULTI 2 a b SW 5 60 0 TB 10 1 1 0",
		"RL.USE p k PEEK", "RL.USE p k 0 MEMBER m", "RL.USE rls.p k 0 LIMIT 5 60",
	}
	takes = []string{
		"CL.THROTTLE k 3 1 60", "CL.THROTTLE k 3 1 60 1", "CL.THROTTLE k 3 1 60 -1", "CL.THROTTLE k x", "SW.ALLOW k 5 60", "TB.ACQUIRE k 10 1 1 1",
		"CC.ACQUIRE k 3 10 m", "CC.RELEASE k m", "CC.RENEW k 10 m", "RL.COMMIT k a 1", "RL.CANCEL k a", "RL.RENEW k a 5", "RL.MULTI 1 k SW 5 60 1", "RL.MULTI 2 a b SW 5 60 0 TB 10 1 1 1",
		"RL.USE p k", "RL.USE p k -1", "RL.USE p k 0 x", "RL.USE rls.p k LIMIT 5 60", "RL.BLOCK p k EX 1",
		"SET a b", "DEL a", "FLUSHALL", "LPUSH l a", "BLPOP l 0", "EXPIRE a 1",
	}
)

// TestHaltsOfAllCommands: a replica refuses exactly the commands that may write, and without its
// primary also those that Redis refuses then.
func TestHaltsOfAllCommands(t *testing.T) {
	s, err := inproc.Feed(limit.Instant(1_700_000_000e9), "--min-replicas-to-write", "1") // there is no replica
	require.NoError(t, err)
	defer s.Close()
	e := s.Server().Engine()
	w := e.NewWorker().(*session.Worker)
	c := command.Call{Worker: &w.Worker, Client: &command.Client{Server: &e.Server}}
	halted := func(halts uint32, cmd *command.Command, args [][]byte) string {
		e.SetHalt(command.HaltReplication, false)
		e.SetHalt(halts, true)
		return string(c.Halted(cmd, args))
	}
	call := func(line string) (*command.Command, [][]byte) {
		var args [][]byte
		for _, word := range strings.Fields(line) {
			args = append(args, []byte(word))
		}
		cmd := e.Commands.Lookup(args[0])
		require.NotNil(t, cmd, line)
		require.True(t, cmd.ArityOK(len(args)), line)
		return cmd, args
	}

	for _, cmd := range e.Commands.Entries {
		args := [][]byte{[]byte(cmd.Name)}
		for n := max(cmd.Arity, -cmd.Arity); len(args) < n; {
			args = append(args, []byte("1"))
		}
		writes := cmd.Flags&command.FlagWrite != 0 || cmd.Categories&command.CatPolicy != 0 && cmd.Flags&command.FlagAdmin != 0
		want := map[bool][2]string{true: {readOnly, noReplicas}, false: {}}[writes]
		require.Equal(t, want[0], halted(command.HaltReadOnly, cmd, args), cmd.Name)
		require.Equal(t, want[1], halted(command.HaltNoReplicas, cmd, args), cmd.Name)
		stale := map[bool]string{true: "", false: masterDown}[cmd.Flags&command.FlagStale != 0]
		require.Equal(t, stale, halted(command.HaltMasterDown, cmd, args), cmd.Name)
		require.Empty(t, halted(command.HaltServing|command.HaltMonitor, cmd, args), cmd.Name)
	}
	for _, line := range looks {
		cmd, args := call(line)
		require.Empty(t, halted(command.HaltReadOnly|command.HaltNoReplicas, cmd, args), line)
		require.Equal(t, masterDown, halted(command.HaltReadOnly|command.HaltMasterDown, cmd, args), line)
	}
	for _, line := range takes {
		cmd, args := call(line)
		require.Equal(t, readOnly, halted(command.HaltReplication, cmd, args), line)
	}
}

// TestHaltedCommandsChangeNothing: refused commands change nothing, alone, in EXEC and in
// scripts, and other commands work.
func TestHaltedCommandsChangeNothing(t *testing.T) {
	s, err := inproc.Feed(limit.Instant(1_700_000_000e9), "--min-replicas-to-write", "1") // there is no replica
	require.NoError(t, err)
	defer s.Close()
	e := s.Server().Engine()
	do := func(words ...string) string {
		reply, err := s.Do(words...)
		require.NoError(t, err)
		return string(reply)
	}
	e.SetHalt(command.HaltReplication, false)
	do("SET", "a", "1")
	const script = "return redis.call('SET', KEYS[1], '2')"
	do("MULTI")
	do("GET", "a")
	do("INCR", "a")
	e.SetHalt(command.HaltReadOnly, true)
	require.Equal(t, "-EXECABORT Transaction discarded because of: "+readOnly+"\r\n", do("EXEC"), "queued before")
	for _, row := range []struct{ want, line string }{
		{"-" + readOnly + "\r\n", "SET a 2"},
		{"-" + readOnly + "\r\n", "CL.THROTTLE k 3 1 60"},
		{"*5\r\n:0\r\n:4\r\n:4\r\n:-1\r\n:0\r\n", "CL.THROTTLE k 3 1 60 0"},
		{":0\r\n", "PUBLISH c m"},
		{"$1\r\n1\r\n", "GET a"},
		{"+OK\r\n", "MULTI"},
		{"+QUEUED\r\n", "GET a"},
		{"-" + readOnly + "\r\n", "INCR a"},
		{"-EXECABORT Transaction discarded because of previous errors.\r\n", "EXEC"},
		{"+OK\r\n", "MULTI"},
		{"+QUEUED\r\n", "CL.THROTTLE k 3 1 60 0"},
		{"*1\r\n*5\r\n:0\r\n:4\r\n:4\r\n:-1\r\n:0\r\n", "EXEC"},
	} {
		require.Equal(t, row.want, do(strings.Fields(row.line)...), row.line)
	}
	require.True(t, strings.HasPrefix(do("EVAL", script, "1", "a"), "-"+readOnly+" script: "))
	require.Equal(t, "-"+readOnly+"\r\n", do("EVAL", "#!lua\nreturn 1", "0"))
	require.Equal(t, ":1\r\n", do("EVAL", "#!lua flags=no-writes\nreturn 1", "0"))
	require.Equal(t, "$1\r\n1\r\n", do("EVAL", "return redis.call('GET', KEYS[1])", "1", "a"))
	require.Contains(t, do("HELLO"), "replica")

	e.SetHalt(command.HaltReadOnly, false)
	e.SetHalt(command.HaltNoReplicas, true)
	require.Equal(t, "-"+noReplicas+"\r\n", do("SET", "a", "2"))
	require.Equal(t, "-"+noReplicas+"\r\n", do("EVAL", "#!lua\nreturn 1", "0"))

	e.SetHalt(command.HaltMasterDown, true)
	require.Equal(t, "-"+masterDown+"\r\n", do("GET", "a"))
	require.Equal(t, "-"+masterDown+"\r\n", do("PING"))
	require.Contains(t, do("EVAL", "return redis.call('GET', KEYS[1])", "1", "a"), masterDown)
	require.Contains(t, do("INFO", "replication"), "role:master")
	e.SetHalt(command.HaltReplication, false)
	require.Equal(t, "$1\r\n1\r\n", do("GET", "a"))
}

// TestScriptsOfAReplicaThatHasLostItsPrimary: with replica-serve-stale-data no, a script needs
// the flag that allows it, and may call only commands that are allowed then. The expected replies
// are those of Redis 7.0.15.
func TestScriptsOfAReplicaThatHasLostItsPrimary(t *testing.T) {
	s, err := inproc.Feed(limit.Instant(1_700_000_000e9))
	require.NoError(t, err)
	defer s.Close()
	do := func(words ...string) string {
		reply, err := s.Do(words...)
		require.NoError(t, err)
		return strings.TrimSuffix(string(reply), "\r\n")
	}
	e := s.Server().Engine()
	e.SetHalt(command.HaltReadOnly|command.HaltMasterDown, true)
	const staleCommand = "-ERR Can not execute the command on a stale replica script: "
	for _, row := range []struct{ script, want string }{
		{"return 1", "-" + masterDown},
		{"return redis.call('PING')", "-" + masterDown},
		{"for i = 1, 100000 do end return 1", "-" + masterDown},
		{"#!lua\nreturn 1", "-" + readOnly},
		{"#!lua flags=allow-stale\nreturn 1", "-" + readOnly},
		{"#!lua flags=no-writes\nreturn 1", "-" + masterDown},
		{"#!lua flags=no-writes,allow-stale\nreturn 1", ":1"},
		{"#!lua flags=no-writes,allow-stale\nfor i = 1, 100000 do end return 1", ":1"},
		{"#!lua flags=no-writes,allow-stale\nreturn redis.call('ECHO', 'a')", "$1\r\na"},
		{"#!lua flags=no-writes,allow-stale\nreturn redis.call('GET', 'a')", staleCommand},
		{"#!lua flags=no-writes,allow-stale\nreturn redis.call('PING')", staleCommand},
	} {
		sha := strings.Split(do("SCRIPT", "LOAD", row.script), "\r\n")[1]
		for _, call := range [][]string{{"EVAL", row.script, "0"}, {"EVAL_RO", row.script, "0"}, {"EVALSHA", sha, "0"}, {"EVALSHA_RO", sha, "0"}} {
			got := do(call...)
			if row.want == staleCommand {
				require.Contains(t, got, row.want, "%s of %s", call[0], row.script)
				continue
			}
			require.Equal(t, row.want, got, "%s of %s", call[0], row.script)
		}
	}
	require.Equal(t, "+OK", do("MULTI"))
	require.Equal(t, "+QUEUED", do("EVAL", "return 1", "0"))
	require.Equal(t, "*1\r\n-"+masterDown, do("EXEC"))
	for call, want := range map[string]string{
		"SCRIPT EXISTS abc": "-" + masterDown, "SCRIPT FLUSH": "-" + masterDown, "SCRIPT KILL": "-" + masterDown, "FUNCTION LIST": "-" + masterDown,
		"FUNCTION FLUSH": "-" + readOnly, "FCALL f 0": "-ERR Function not found", "EVALSHA abc 0": "-NOSCRIPT No matching script. Please use EVAL.",
	} {
		require.Equal(t, want, do(strings.Fields(call)...), call)
	}
	e.SetHalt(command.HaltMasterDown, false)
	require.Equal(t, ":1", do("EVAL", "return 1", "0"))
}
