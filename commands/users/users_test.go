package users_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/inproc"
)

const (
	noKey     = "-NOPERM No permissions to access a key\r\n"
	noChannel = "-NOPERM No permissions to access a channel\r\n"
)

// noCommand returns the error for a command that a user may not call.
func noCommand(user, command string) string {
	return "-NOPERM User " + user + " has no permissions to run the '" + command + "' command\r\n"
}

const (
	noAuth    = "-NOAUTH Authentication required.\r\n"
	wrongPass = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
)

// TestUsersMayDoWhatTheirRulesSay makes calls as a restricted user.
func TestUsersMayDoWhatTheirRulesSay(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		admin, c := f.Dial(), f.Dial()
		require.Equal(t, "+OK\r\n", admin.Do("ACL", "SETUSER", "app", "on", ">p", "~a*", "%R~in:*", "&news.*",
			"+@string", "-mset", "+cl.throttle", "+@ratelimit", "+rename", "+@scripting", "+@transaction", "+@pubsub", "+client|setname", "+keys", "+flushall"))
		require.Equal(t, "+OK\r\n", c.Do("AUTH", "app", "p"))
		for call, want := range map[string]string{
			"SET a1 1":                 "+OK\r\n",
			"GET in:1":                 "$-1\r\n",
			"SET in:1 1":               noKey,
			"GET b":                    noKey,
			"MSET a1 1 a2 2":           noCommand("app", "mset"),
			"MGET a1 b":                noKey,
			"DEL a1":                   noCommand("app", "del"),
			"CONFIG GET x":             noCommand("app", "config|get"),
			"CLIENT SETNAME x":         "+OK\r\n",
			"CLIENT GETNAME":           noCommand("app", "client|getname"),
			"CL.THROTTLE b 1 1 1":      noKey,
			"CL.THROTTLE in:x 1 1 1 0": noKey,
			"RL.INFO in:x":             "$-1\r\n",
			"RL.MULTI 1 a1 TB 1 1 1":   "", // a key of another type: the call itself fails
			"RL.MULTI 1 a9:x TB 1 1 1": "",
			"RL.MULTI 1 b TB 1 1 1":    noKey,
			"RENAME in:1 a1":           noKey,
			"PUBLISH news.x m":         ":0\r\n",
			"PUBLISH old m":            noChannel,
			"KEYS *":                   noKey,
			"FLUSHALL":                 noKey,
			"EVAL return(1) 1 b":       noKey,
			"EVAL_RO return(1) 1 in:1": ":1\r\n",
			"EVAL return(1) 1 in:1":    noKey,
			"PSUBSCRIBE news.x*":       noChannel,
		} {
			got := c.Do(strings.Fields(call)...)
			if want != "" {
				require.Equal(t, want, got, call)
			} else {
				require.NotContains(t, got, "NOPERM", call)
			}
		}
		require.Contains(t, c.Do("EVAL", "return redis.call('GET', 'b')", "0"), "-NOPERM ACL failure in script: No permissions to access a key")
		require.Equal(t, "+OK\r\n", admin.Do("CONFIG", "SET", "acl-keyspace-needs-allkeys", "no"))
		require.Equal(t, "*1\r\n$2\r\na1\r\n", c.Do("KEYS", "a1"))
	})
}

// TestRulesThatChangeUnderATransaction: EXEC replies as Redis does to queued commands that are no
// longer allowed.
func TestRulesThatChangeUnderATransaction(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		admin, c := f.Dial(), f.Dial()
		admin.Do("ACL", "SETUSER", "app", "on", ">p", "~*", "+@all")
		c.Do("AUTH", "app", "p")
		c.Do("MULTI")
		c.Do("SET", "a", "1")
		c.Do("GET", "b")
		c.Do("GET", "a")
		require.Equal(t, "+OK\r\n", admin.Do("ACL", "SETUSER", "app", "-set", "resetkeys", "~a"))
		const changed = "-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: "
		require.Equal(t, "*3\r\n"+changed+"no permission to execute the command or subcommand\r\n"+
			changed+"no permission to touch the specified keys\r\n$-1\r\n", c.Do("EXEC"))
		c.Do("MULTI")
		require.Equal(t, noCommand("app", "set"), c.Do("SET", "a", "1"))
		require.Contains(t, c.Do("EXEC"), "-EXECABORT")
		require.Contains(t, admin.Do("ACL", "LOG"), "multi")
	})
}

// TestClientsOfUsersThatChange: clients of changed users are closed in the same cases as in
// Redis.
func TestClientsOfUsersThatChange(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		admin, gone, off, listener := f.Dial(), f.Dial(), f.Dial(), f.Dial()
		for name, c := range map[string]*inproc.Client{"gone": gone, "off": off, "listener": listener} {
			admin.Do("ACL", "SETUSER", name, "on", "nopass", "+@all", "~*", "&news")
			require.Equal(t, "+OK\r\n", c.Do("AUTH", name, "x"))
		}
		require.Contains(t, listener.Do("SUBSCRIBE", "news"), "subscribe")
		require.Equal(t, ":1\r\n", admin.Do("ACL", "DELUSER", "gone", "nobody"))
		gone.ExpectEnd()
		require.Equal(t, "+OK\r\n", admin.Do("ACL", "SETUSER", "off", "off"))
		require.Equal(t, "+PONG\r\n", off.Do("PING"), "who is off may go on, and not log in again")
		require.Equal(t, wrongPass, off.Do("AUTH", "off", "x"))
		require.Equal(t, "+OK\r\n", admin.Do("ACL", "SETUSER", "listener", "-get"))
		require.Contains(t, admin.Do("CLIENT", "LIST"), "user=listener")
		require.Equal(t, "+OK\r\n", admin.Do("ACL", "SETUSER", "listener", "resetchannels"))
		listener.ExpectEnd()
		require.Equal(t, "-ERR The 'default' user cannot be removed\r\n", admin.Do("ACL", "DELUSER", "default"))
	})
}

// TestDryrunTellsWhatIsNotAllowed: ACL DRYRUN replies as Redis 7.2 and Valkey 8 do.
func TestDryrunTellsWhatIsNotAllowed(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start().Dial()
		require.Equal(t, inproc.OK, c.Do("ACL", "SETUSER", "app", "on", "~a*", "%R~r*", "&ch*", "+@string", "+config|get", "+select|0", "+publish", "+rename", "+eval", "+scan", "+keys", "+flushall"))
		for call, want := range map[string]string{
			"app get a":              inproc.OK,
			"app get b":              inproc.Bulk("User app has no permissions to access the 'b' key"),
			"app set r1 x":           inproc.Bulk("User app has no permissions to access the 'r1' key"),
			"app mget a1 b1":         inproc.Bulk("User app has no permissions to access the 'b1' key"),
			"app rename r1 a1":       inproc.Bulk("User app has no permissions to access the 'r1' key"),
			"app del a":              inproc.Bulk("User app has no permissions to run the 'del' command"),
			"app CONFIG SET a b":     inproc.Bulk("User app has no permissions to run the 'config|set' command"),
			"app select 0":           inproc.OK,
			"app select 1":           inproc.Bulk("User app has no permissions to run the 'select' command"),
			"app publish foo m":      inproc.Bulk("User app has no permissions to access the 'foo' channel"),
			"app eval return(1) 1 b": inproc.Bulk("User app has no permissions to access the 'b' key"),
			"app scan 0":             inproc.Bulk("User app has no permissions to access all keys, which the 'scan' command needs"),
			"app keys *":             inproc.Bulk("User app has no permissions to access all keys, which the 'keys' command needs"),
			"app flushall":           inproc.Bulk("User app has no permissions to access all keys, which the 'flushall' command needs"),
			"default flushall":       inproc.OK,
			"nobody get a":           "-ERR User 'nobody' not found\r\n",
			"app nosuch a":           "-ERR Command 'nosuch' not found\r\n",
			"app get a b c":          "-ERR wrong number of arguments for 'get' command\r\n",
		} {
			require.Equal(t, want, c.Do(append([]string{"ACL", "DRYRUN"}, strings.Fields(call)...)...), call)
		}
	})
}

// TestUserLines: the configuration may define users.
func TestUserLines(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		c := w.Start("--user", "app", "on", ">p", "+get", "~a*", "--user", "default", "on", ">secret", "+@all", "~*", "&*").Dial()
		require.Equal(t, noAuth, c.Do("GET", "a"))
		require.Equal(t, "+OK\r\n", c.Do("AUTH", "secret"))
		require.Contains(t, c.Do("ACL", "LIST"), "user app on sanitize-payload #148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940 ~a* resetchannels -@all +get")
		path := written(t, "user app +foo\nuser app on")
		err := w.Node(nil, path).Run()
		require.EqualError(t, err, path+":1: user app: Unknown command or category name in ACL\n"+path+":2: user app: Duplicate user found. A user can only be defined once in config files")
		err = w.Node(nil, written(t, "user app on\naclfile x.acl")).Run()
		require.ErrorContains(t, err, "exclude each other")
		_, err = config.Load([]string{written(t, "user")}, nil)
		require.ErrorContains(t, err, "user")
	})
}

// TestUsersOfCommandsTakeATenthOfMaxmemory: ACL SETUSER is refused beyond a tenth of maxmemory
// for users. A call that shortens a rule or deletes a user is accepted.
func TestUsersOfCommandsTakeATenthOfMaxmemory(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--maxmemory", "32mb")
		c := s.Dial()
		rules := []string{"ACL", "SETUSER", ""}
		for i := range 100 {
			rules = append(rules, fmt.Sprint("~", i, strings.Repeat("k", 1000)))
		}
		made, reply := 0, inproc.OK
		for ; reply == inproc.OK && made < 100; made++ {
			rules[2] = fmt.Sprint("user", made)
			reply = c.Do(rules...)
		}
		require.Equal(t, "-ERR too many users, or rules that are too long\r\n", reply)
		require.LessOrEqual(t, s.Engine().Users.Memory(), int64(32<<20/10))
		require.Greater(t, made, 10)
		require.Equal(t, inproc.OK, c.Do("ACL", "SETUSER", "user0", "resetkeys"))
		require.Equal(t, ":1\r\n", c.Do("ACL", "DELUSER", "user1"))
		require.Equal(t, inproc.OK, c.Do(rules...), "there is room again")
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "maxmemory", "0"))
		rules[2] = "another"
		require.Equal(t, inproc.OK, c.Do(rules...))
	})
}
