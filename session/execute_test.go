package session_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/session"
)

// TestExecuteRunsACommandAsAUser: the command has the user's permissions, runs in the given
// database, also while the server runs scripts, and does not appear in CLIENT LIST.
func TestExecuteRunsACommandAsAUser(t *testing.T) {
	s, err := inproc.Feed(limit.Instant(1_700_000_000e9))
	require.NoError(t, err)
	defer s.Close()
	e := s.Server().Engine()
	app, _, err := e.Users.Set("app", []string{"on", "nopass", "~app:*", "+@all"})
	require.NoError(t, err)
	from := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 4}
	run := func(db int, words ...string) (string, error) {
		args := make([][]byte, len(words))
		for i, w := range words {
			args[i] = []byte(w)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		reply, err := e.Execute(ctx, app, from, db, args)
		return string(reply), err
	}
	for _, row := range []struct {
		db    int
		words []string
		reply string
	}{
		{0, []string{"SET", "app:a", "1\r\n\x00"}, "+OK\r\n"},
		{0, []string{"GET", "app:a"}, "$4\r\n1\r\n\x00\r\n"},
		{1, []string{"GET", "app:a"}, "_\r\n"},
		{0, []string{"GET", "other"}, "-NOPERM No permissions to access a key\r\n"},
		{0, []string{"NOSUCH"}, "-ERR unknown command 'NOSUCH', with args beginning with: \r\n"},
		{0, []string{"ACL", "WHOAMI"}, "$3\r\napp\r\n"},
		{0, []string{"EVAL", "return redis.call('GET', KEYS[1])", "1", "app:a"}, "$4\r\n1\r\n\x00\r\n"},
		{0, []string{"EVAL", "local n = 0 for i = 1, 300000 do n = n + 1 end return n", "0"}, ":300000\r\n"},
	} {
		reply, err := run(row.db, row.words...)
		require.NoError(t, err, "%q", row.words)
		require.Equal(t, row.reply, reply, "%q", row.words)
	}
	for _, words := range [][]string{{"BLPOP", "app:l", "0"}, {"SW.ALLOW", "app:w", "1", "60", "1", "BLOCK", "0"}} {
		_, err := run(0, words...)
		require.ErrorIs(t, err, session.ErrWaits, "%q", words)
	}
	_, err = run(0, "POST", "/")
	require.ErrorIs(t, err, session.ErrNoReply, "it closes the connection")
	open, blocked := e.CountClients()
	require.EqualValues(t, 1, open)
	require.Zero(t, blocked)
	entry := e.Refusals.Newest(1)[0]
	require.Equal(t, "app", entry.User)
	require.Contains(t, entry.Client, "addr=10.0.0.9:4")
	require.Contains(t, entry.Client, "name=admin-port")
}

// executing returns a server and a function that executes commands on it as the user default.
func executing(t *testing.T) (*inproc.Session, func(words ...string) (string, error)) {
	t.Helper()
	s, err := inproc.Feed(limit.Instant(1_700_000_000e9))
	require.NoError(t, err)
	t.Cleanup(s.Close)
	e := s.Server().Engine()
	return s, func(words ...string) (string, error) {
		args := make([][]byte, len(words))
		for i, w := range words {
			args[i] = []byte(w)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		reply, err := e.Execute(ctx, e.Users.Default, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 4}, 0, args)
		return string(reply), err
	}
}

// TestExecuteRefusesWhatNeedsAConnection: commands that change the state of their connection would
// reply OK, and change nothing.
func TestExecuteRefusesWhatNeedsAConnection(t *testing.T) {
	s, run := executing(t)
	for _, call := range []string{
		"SUBSCRIBE a", "psubscribe a*", "SSUBSCRIBE a", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "MONITOR", "MULTI", "EXEC", "DISCARD", "WATCH a", "UNWATCH",
		"HELLO 3", "HELLO", "AUTH default x", "QUIT", "RESET", "SELECT 1", "ASKING", "READONLY", "READWRITE",
		"CLIENT REPLY OFF", "CLIENT REPLY ON", "client setname a", "CLIENT GETNAME", "CLIENT SETINFO LIB-NAME a", "CLIENT ID", "CLIENT INFO", "CLIENT NO-EVICT ON",
		"CLIENT NO-TOUCH ON", "CLIENT TRACKING ON", "CLIENT CACHING YES", "CLIENT TRACKINGINFO", "CLIENT GETREDIR", "CLIENT CAPA redirect", "SUBSCRIBE", "CLIENT REPLY",
	} {
		reply, err := run(strings.Fields(call)...)
		require.ErrorIs(t, err, session.ErrNeedsConnection, "%s: %s", call, reply)
	}
	var of func(all []*command.Command)
	of = func(all []*command.Command) {
		for _, cmd := range all {
			words := strings.Split(cmd.Name, "|")
			if cmd.Flags&(command.FlagNoAuth|command.FlagBlocking) != 0 || cmd.Subscribes() || cmd.Categories&command.CatTransaction != 0 {
				_, err := run(words...)
				require.Error(t, err, cmd.Name)
			}
			of(cmd.Sub)
		}
	}
	of(s.Server().Engine().Commands.Entries)
	for _, call := range []string{"PING", "CLIENT LIST", "CLIENT KILL ID 99", "PUBLISH a b", "PUBSUB CHANNELS", "CLIENT", "CLIENT NOSUCH", "TIME"} {
		reply, err := run(strings.Fields(call)...)
		require.NoError(t, err, call)
		require.NotEmpty(t, reply)
	}
}

// TestExecuteBoundsTheReply: a reply that is too long is discarded, whether it is copied or refers
// to a value of the store.
func TestExecuteBoundsTheReply(t *testing.T) {
	s, run := executing(t)
	dataset := func() int {
		info, err := s.Do("INFO", "memory")
		require.NoError(t, err)
		_, field, _ := strings.Cut(string(info), "\r\nused_memory_dataset:")
		field, _, _ = strings.Cut(field, "\r\n")
		n, err := strconv.Atoi(field)
		require.NoError(t, err)
		return n
	}
	_, err := run("SET", "long", strings.Repeat("v", session.MaxExecuted))
	require.NoError(t, err)
	_, err = run("SET", "fits", strings.Repeat("v", session.MaxExecuted-20))
	require.NoError(t, err)
	reply, err := run("GET", "fits")
	require.NoError(t, err)
	require.Len(t, reply, len("$1048556\r\n\r\n")+session.MaxExecuted-20)
	for _, call := range []string{"GET long", "MGET fits fits", "EVAL return{redis.call('get','fits'),redis.call('get','fits')} 0", "GETDEL long"} {
		reply, err := run(strings.Fields(call)...)
		require.ErrorIs(t, err, session.ErrReplyTooLong, call)
		require.Empty(t, reply)
	}
	reply, err = run("DEL", "long", "fits")
	require.NoError(t, err)
	require.Equal(t, ":1\r\n", reply, "GETDEL has run")
	require.Less(t, dataset(), session.MaxExecuted/10, "nothing is referred to any more")
}

// TestExecutionsEndWithTheServer: a waiting execution returns an error, and no more begin.
func TestExecutionsEndWithTheServer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, run := executing(t)
		e := s.Server().Engine()
		_, err := s.Do("CLIENT", "PAUSE", "1000000", "WRITE")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := e.Execute(ctx, e.Users.Default, &net.TCPAddr{}, 0, [][]byte{[]byte("SET"), []byte("a"), []byte("1")})
			ended <- err
		}()
		untilPaused(t, e)
		e.EndExecutions()
		require.ErrorIs(t, <-ended, session.ErrStopping)
		_, err = run("PING")
		require.ErrorIs(t, err, session.ErrStopping)
		e.EndExecutions()
	})
}

// TestTheAdminPortIsNamedInWhatIsKeptOfIt: a request has no client ID that operators could look up.
func TestTheAdminPortIsNamedInWhatIsKeptOfIt(t *testing.T) {
	s, run := executing(t)
	reply, err := run("CONFIG", "SET", "maxmemory", "1gb")
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", reply)
	changes := s.Server().Engine().Changes.Since(0)
	require.Equal(t, "admin port, user default from 10.0.0.9:4", changes[len(changes)-1].By)
}

// TestExecuteLeavesACommandAloneThatTakesTooLong: the caller gets an error, and nothing stays
// behind.
func TestExecuteLeavesACommandAloneThatTakesTooLong(t *testing.T) {
	s, err := inproc.Feed(limit.Instant(1_700_000_000e9))
	require.NoError(t, err)
	defer s.Close()
	e := s.Server().Engine()
	_, err = s.Do("CLIENT", "PAUSE", "1000000", "ALL")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = e.Execute(ctx, e.Users.Default, &net.TCPAddr{}, 0, [][]byte{[]byte("SET"), []byte("a"), []byte("1")})
	require.ErrorIs(t, err, context.Canceled)
}

// untilPaused waits until one command waits for the end of a pause.
func untilPaused(t *testing.T, e *session.Engine) {
	t.Helper()
	synctest.Wait()
	require.Equal(t, 1, e.BehindPause())
}

// TestExecuteGoesOnAfterAPause: a command of the admin port continues at the end of CLIENT PAUSE.
func TestExecuteGoesOnAfterAPause(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, err := inproc.Feed(limit.Instant(1_700_000_000e9))
		require.NoError(t, err)
		defer s.Close()
		e := s.Server().Engine()
		_, err = s.Do("CLIENT", "PAUSE", "1000000", "WRITE")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		from, answered := &net.TCPAddr{}, make(chan string, 1)
		go func() {
			reply, err := e.Execute(ctx, e.Users.Default, from, 0, [][]byte{[]byte("SET"), []byte("a"), []byte("1")})
			answered <- fmt.Sprintf("%s%v", reply, err)
		}()
		untilPaused(t, e)
		_, err = s.Do("CLIENT", "UNPAUSE")
		require.NoError(t, err)
		require.Equal(t, "+OK\r\n<nil>", <-answered)
	})
}

// TestExecuteRunsNothingForADeletedUser: a command that waits for the end of a pause has no
// connection that DELUSER could close.
func TestExecuteRunsNothingForADeletedUser(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, err := inproc.Feed(limit.Instant(1_700_000_000e9))
		require.NoError(t, err)
		defer s.Close()
		e := s.Server().Engine()
		app, _, err := e.Users.Set("app", []string{"on", "nopass", "~*", "+@all"})
		require.NoError(t, err)
		_, err = s.Do("CLIENT", "PAUSE", "1000000", "WRITE")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		from, answered := &net.TCPAddr{}, make(chan string, 1)
		go func() {
			reply, err := e.Execute(ctx, app, from, 0, [][]byte{[]byte("SET"), []byte("a"), []byte("1")})
			answered <- fmt.Sprintf("%s%v", reply, err)
		}()
		untilPaused(t, e)
		for _, words := range [][]string{{"ACL", "DELUSER", "app"}, {"CLIENT", "UNPAUSE"}} {
			_, err = s.Do(words...)
			require.NoError(t, err)
		}
		require.Equal(t, "-NOPERM User app has no permissions to run the 'set' command\r\n<nil>", <-answered)
	})
}

// TestAPrimaryRunsEverythingOnAReplica: neither the role of this server nor a pause stops commands
// of a followed Redis, on its loop, in the background or with all keys locked.
func TestAPrimaryRunsEverythingOnAReplica(t *testing.T) {
	effort.Alone(t)
	s, err := inproc.Feed(limit.Instant(1_700_000_000e9))
	require.NoError(t, err)
	defer s.Close()
	e := s.Server().Engine()
	p := e.OpenPrimary(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 4})
	defer p.Close()
	run := func(words ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // the scripts are long
		defer cancel()
		args := make([][]byte, len(words))
		for i, w := range words {
			args[i] = []byte(w)
		}
		require.NoError(t, p.Run(ctx, 0, args), words[0])
	}
	pairs, keys := []string{"MSET"}, []string{}
	for i := range 5_000 {
		keys = append(keys, "k"+strconv.Itoa(i))
		pairs = append(pairs, keys[i], "v")
	}
	_, err = s.Do("CLIENT", "PAUSE", "1000000", "WRITE")
	require.NoError(t, err)
	e.SetHalt(command.HaltReplication, true)
	const long = "for i = 1, 300000 do redis.call('SET', KEYS[1], i) end"
	for _, call := range [][]string{
		append([]string{"DEL"}, keys...), append([]string{"UNLINK"}, keys...),
		{"FLUSHDB"},
		{"FLUSHALL"},
		{"FLUSHALL", "SYNC"},
		{"EVAL", "redis.call('FLUSHALL')", "0"},
		{"EVAL", "#!lua\nredis.call('FLUSHALL')", "0"},
		{"EVAL", long + " redis.call('FLUSHALL')", "1", "k0"},
	} {
		run(pairs...)
		run(call...)
		require.Zero(t, s.Server().Keyspace().Stats().Databases[0].Keys, "%s", call[0])
	}
	run("MULTI")
	run(pairs...)
	run("EVAL", long, "1", "k0")
	run(append([]string{"DEL"}, keys[1:]...)...)
	run("EXEC")
	require.Equal(t, 1, s.Server().Keyspace().Stats().Databases[0].Keys)
}

// TestAPrimarySelectsInATransaction: commands that a followed Redis has queued run in the databases
// that it named, whichever database EXEC has.
func TestAPrimarySelectsInATransaction(t *testing.T) {
	s, err := inproc.Feed(limit.Instant(1_700_000_000e9))
	require.NoError(t, err)
	defer s.Close()
	p := s.Server().Engine().OpenPrimary(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 4})
	defer p.Close()
	run := func(db int, words ...string) error {
		args := make([][]byte, len(words))
		for i, w := range words {
			args[i] = []byte(w)
		}
		return p.Run(t.Context(), db, args)
	}
	holds := func(want map[string]string) {
		t.Helper()
		v := s.Server().Keyspace().NewHandle()
		defer v.Close()
		got := map[string]string{}
		for db := range 4 {
			for _, key := range []string{"a", "b", "c", "d"} {
				if e, there := v.Load(db, []byte(key)); there {
					got[fmt.Sprint(db, key)] = string(e.Value)
				}
			}
		}
		require.Equal(t, want, got)
	}
	require.NoError(t, run(1, "MULTI"))
	require.NoError(t, run(1, "SET", "a", "1"))
	require.NoError(t, run(0, "SET", "b", "2"))
	require.NoError(t, run(3, "SET", "c", "3"))
	require.NoError(t, run(3, "SET", "d", "4"))
	require.NoError(t, run(2, "EXEC"))
	holds(map[string]string{"1a": "1", "0b": "2", "3c": "3", "3d": "4"})

	require.NoError(t, run(2, "MULTI"))
	require.NoError(t, run(3, "FLUSHDB"))
	require.NoError(t, run(1, "DISCARD"))
	require.NoError(t, run(1, "SET", "b", "5"))
	holds(map[string]string{"1a": "1", "0b": "2", "3c": "3", "3d": "4", "1b": "5"})
}
